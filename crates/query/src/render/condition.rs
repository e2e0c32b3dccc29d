//! Renders conditions: data becomes comparisons with bound values, text becomes one checked expression.
//!
//! Patterns of text have the same meaning in each database. `like` and the operators based on it are case-sensitive,
//! `ilike` is not, and a backslash escapes a wildcard. LIKE of SQLite ignores the case of ASCII letters and has no
//! default escape, so there `like` becomes GLOB and `ilike` becomes LIKE. LIKE of MySQL follows the collation of the
//! column, so there the text of the column is compared by its characters, for `ilike` in lower case.

use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, Expr, FunctionArgExpr, Ident, ObjectName, UnaryOperator, Value, VisitMut, VisitorMut,
};
use tidegate_sql::{Parameter, SqlDialect, check_expression, parse_expression};

use super::build::{binary_expression, call_expression, join_conditions, parenthesize, placeholder};
use super::{OutputColumn, QueryRenderer};
use crate::spec::{BoundExpression, Comparison, ComparisonOperator, JoinOn, Operand, QueryCondition, QueryJoin};

/// The expressions behind the aliases of `select`, for `having`.
pub(super) struct AliasBindings {
    names: Vec<(String, Expr)>,
}

impl AliasBindings {
    pub(super) fn empty() -> Self {
        Self { names: Vec::new() }
    }

    pub(super) fn from_outputs(outputs: &[OutputColumn]) -> Self {
        let named = |output: &OutputColumn| Some((output.name.clone()?, output.expr.clone()?));
        Self { names: outputs.iter().filter_map(named).collect() }
    }

    fn get(&self, name: &str) -> Option<&Expr> {
        let exact = self.names.iter().find(|(known, _)| known == name);
        let any = || self.names.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        exact.or_else(any).map(|(_, expr)| expr)
    }

    fn names(&self) -> Vec<&str> {
        self.names.iter().map(|(name, _)| name.as_str()).collect()
    }
}

impl QueryRenderer {
    /// The expression of `condition`; `None`, and a violation, when it is invalid.
    pub(super) fn render_condition(
        &mut self,
        path: &str,
        condition: &QueryCondition,
        names: &AliasBindings,
    ) -> Option<Expr> {
        match condition {
            QueryCondition::Expression(text) => self.render_expression(path, text, names),
            QueryCondition::Bound(expression) => self.render_bound_expression(path, expression),
            QueryCondition::And(parts) => self.render_combined(path, "and", parts, names, BinaryOperator::And),
            QueryCondition::Or(parts) => self.render_combined(path, "or", parts, names, BinaryOperator::Or),
            QueryCondition::Not(inner) => {
                let inner = self.render_condition(&format!("{path}.not"), inner, names)?;
                Some(Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(parenthesize(inner)) })
            }
            QueryCondition::Comparison(comparison) => self.render_comparison(path, comparison, names),
        }
    }

    fn render_combined(
        &mut self,
        path: &str,
        key: &str,
        parts: &[QueryCondition],
        names: &AliasBindings,
        op: BinaryOperator,
    ) -> Option<Expr> {
        let parts = parts.iter().enumerate();
        let parts: Vec<Expr> = parts
            .filter_map(|(index, part)| self.render_condition(&format!("{path}.{key}[{index}]"), part, names))
            .collect();
        join_conditions(parts, op)
    }

    fn render_comparison(&mut self, path: &str, comparison: &Comparison, names: &AliasBindings) -> Option<Expr> {
        let column = match names.get(&comparison.column) {
            Some(expr) => expr.clone(),
            None => match self.scope.resolve(&comparison.column) {
                Ok(position) => self.scope.column_expression(position, self.dialect),
                Err(_) => {
                    let reason = self.scope.column_problem(&comparison.column, &names.names());
                    self.add_violation(path, reason);
                    return None;
                }
            },
        };
        Some(self.compare(column, comparison.operator, &comparison.operand))
    }

    fn compare(&mut self, column: Expr, operator: ComparisonOperator, operand: &Operand) -> Expr {
        let column = Box::new(column);
        match operand {
            Operand::None if operator == ComparisonOperator::IsNotNull => Expr::IsNotNull(column),
            Operand::None => Expr::IsNull(column),
            Operand::List(values) => {
                let list = values.iter().map(|value| self.bind(value.clone())).collect();
                Expr::InList { expr: column, list, negated: operator == ComparisonOperator::NotIn }
            }
            Operand::Range(low, high) => {
                let (low, high) = (self.bind(low.clone()), self.bind(high.clone()));
                Expr::Between { expr: column, negated: false, low: Box::new(low), high: Box::new(high) }
            }
            Operand::One(value) => self.compare_one(column, operator, value),
        }
    }

    fn compare_one(&mut self, column: Box<Expr>, operator: ComparisonOperator, value: &Parameter) -> Expr {
        let op = match operator {
            ComparisonOperator::NotEqual => BinaryOperator::NotEq,
            ComparisonOperator::Less => BinaryOperator::Lt,
            ComparisonOperator::LessOrEqual => BinaryOperator::LtEq,
            ComparisonOperator::Greater => BinaryOperator::Gt,
            ComparisonOperator::GreaterOrEqual => BinaryOperator::GtEq,
            ComparisonOperator::Like
            | ComparisonOperator::NotLike
            | ComparisonOperator::Ilike
            | ComparisonOperator::Contains
            | ComparisonOperator::StartsWith => {
                let pattern = self.bind(build_pattern(operator, value, self.dialect));
                return match_expression(column, operator, pattern, self.dialect);
            }
            ComparisonOperator::Equal
            | ComparisonOperator::In
            | ComparisonOperator::NotIn
            | ComparisonOperator::Between
            | ComparisonOperator::IsNull
            | ComparisonOperator::IsNotNull => BinaryOperator::Eq,
        };
        let value = self.bind(value.clone());
        binary_expression(*column, op, value)
    }

    fn bind(&mut self, value: Parameter) -> Expr {
        self.parameters.push(value);
        placeholder(self.parameters.len())
    }

    pub(super) fn render_join_condition(&mut self, index: usize, join: &QueryJoin) -> Option<Expr> {
        let path = format!("joins[{index}].on");
        let pairs = match &join.on {
            JoinOn::Expression(text) => return self.render_expression(&path, text, &AliasBindings::empty()),
            JoinOn::Columns(pairs) => pairs,
        };
        let mut parts = Vec::with_capacity(pairs.len());
        for (position, (left, right)) in pairs.iter().enumerate() {
            let sides = [
                ("left", self.scope.resolve_before(left, index + 1)),
                ("right", self.scope.resolve_joined(right, index + 1)),
            ];
            let mut columns = Vec::with_capacity(2);
            for (side, column) in sides {
                match column {
                    Ok(column) => columns.push(self.scope.column_expression(column, self.dialect)),
                    Err(reason) => self.add_violation(&format!("{path}[{position}].{side}"), reason),
                }
            }
            if let [left, right] = columns.as_slice() {
                parts.push(binary_expression(left.clone(), BinaryOperator::Eq, right.clone()));
            }
        }
        parts.into_iter().reduce(|left, right| binary_expression(left, BinaryOperator::And, right))
    }

    /// Parses text as a single expression and resolves its names.
    pub(super) fn render_expression(&mut self, path: &str, text: &str, names: &AliasBindings) -> Option<Expr> {
        self.render_text(path, text, names, &[])
    }

    /// The same with parentheses, because it may be a part of any other condition.
    fn render_bound_expression(&mut self, path: &str, expression: &BoundExpression) -> Option<Expr> {
        let rendered = self.render_text(path, &expression.text, &AliasBindings::empty(), &expression.values)?;
        Some(parenthesize(rendered))
    }

    fn render_text(&mut self, path: &str, text: &str, names: &AliasBindings, values: &[Parameter]) -> Option<Expr> {
        let parsed =
            parse_expression(text, self.dialect).and_then(|expr| check_expression(&expr, self.dialect).map(|()| expr));
        let mut expr = match parsed {
            Ok(expr) => expr,
            Err(error) => {
                let hint = error.hint().map(|hint| format!(". {hint}")).unwrap_or_default();
                self.add_violation(path, format!("{}{hint}", error.message()));
                return None;
            }
        };
        let mut resolver = NameResolver { renderer: self, path, names, values, calls: 0 };
        // The visitor never breaks.
        let _ = VisitMut::visit(&mut expr, &mut resolver);
        Some(expr)
    }
}

struct NameResolver<'a> {
    renderer: &'a mut QueryRenderer,
    path: &'a str,
    names: &'a AliasBindings,
    /// The values of placeholders.
    values: &'a [Parameter],
    /// Enclosing function calls: their arguments refer to columns, not to aliases of `select`.
    calls: usize,
}

impl VisitorMut for NameResolver<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        self.calls += usize::from(matches!(expr, Expr::Function(_)));
        ControlFlow::Continue(())
    }

    // After the children, so that replaced nodes are not visited again.
    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let resolved = match expr {
            Expr::Function(_) => {
                self.calls -= 1;
                None
            }
            Expr::Identifier(name) => self.resolve_identifier(name),
            Expr::CompoundIdentifier(parts) => self.resolve_compound(parts),
            Expr::Value(value) if matches!(value.value, Value::Placeholder(_)) => {
                if let Some(bound) = self.bound_value(&value.value) {
                    *expr = self.renderer.bind(bound);
                    return ControlFlow::Continue(());
                }
                let message = format!("{} has no value here; write the value itself", value.value);
                self.renderer.add_violation(self.path, message);
                None
            }
            _ => None,
        };
        if let Some(resolved) = resolved {
            *expr = resolved;
        }
        ControlFlow::Continue(())
    }
}

impl NameResolver<'_> {
    fn bound_value(&self, placeholder: &Value) -> Option<Parameter> {
        let Value::Placeholder(name) = placeholder else { return None };
        let number: usize = name.strip_prefix('$')?.parse().ok()?;
        self.values.get(number.checked_sub(1)?).cloned()
    }

    fn resolve_identifier(&mut self, name: &Ident) -> Option<Expr> {
        if let Some(bound) = self.names.get(&name.value).filter(|_| self.calls == 0) {
            return Some(bound.clone());
        }
        match self.renderer.scope.resolve(&name.value) {
            Ok(position) => Some(self.renderer.scope.column_expression(position, self.renderer.dialect)),
            Err(_) => {
                let mut reason = self.renderer.scope.column_problem(&name.value, &self.names.names());
                if name.quote_style == Some('"') {
                    reason.push_str("; write text in single quotes");
                }
                self.renderer.add_violation(self.path, reason);
                None
            }
        }
    }

    /// `table.column`, or a field of a column, whose name stays as it is.
    fn resolve_compound(&mut self, parts: &[Ident]) -> Option<Expr> {
        let joined: Vec<&str> = parts.iter().map(|part| part.value.as_str()).collect();
        let scope = &self.renderer.scope;
        if let Ok(position) = scope.resolve(&joined.join(".")) {
            return Some(scope.column_expression(position, self.renderer.dialect));
        }
        // The longest prefix that is a column; the rest are fields.
        let column =
            (1..parts.len()).rev().find_map(|length| Some((length, scope.resolve(&joined[..length].join(".")).ok()?)));
        let Some((length, position)) = column else {
            let reason = scope.column_problem(&joined.join("."), &self.names.names());
            self.renderer.add_violation(self.path, reason);
            return None;
        };
        let mut resolved = match scope.column_expression(position, self.renderer.dialect) {
            Expr::CompoundIdentifier(column) => column,
            Expr::Identifier(column) => vec![column],
            other => return Some(other),
        };
        resolved.extend_from_slice(&parts[length..]);
        Some(Expr::CompoundIdentifier(resolved))
    }
}

/// The pattern for `value`; values that are not text stay unchanged.
fn build_pattern(operator: ComparisonOperator, value: &Parameter, dialect: SqlDialect) -> Parameter {
    let Parameter::Text(text) = value else { return value.clone() };
    let like = match operator {
        ComparisonOperator::Contains => format!("%{}%", escape_wildcards(text)),
        ComparisonOperator::StartsWith => format!("{}%", escape_wildcards(text)),
        _ => text.clone(),
    };
    let is_glob = dialect.has_glob() && operator != ComparisonOperator::Ilike;
    Parameter::Text(if is_glob { like_to_glob(&like) } else { like })
}

fn match_expression(column: Box<Expr>, operator: ComparisonOperator, pattern: Expr, dialect: SqlDialect) -> Expr {
    let negated = operator == ComparisonOperator::NotLike;
    match (dialect, operator) {
        (SqlDialect::Sqlite, ComparisonOperator::Ilike) => {
            let escape_char = Some(Value::SingleQuotedString("\\".to_owned()).into());
            Expr::Like { negated, any: false, expr: column, pattern: Box::new(pattern), escape_char }
        }
        (SqlDialect::Sqlite, _) => {
            let op = BinaryOperator::Custom(if negated { "NOT GLOB" } else { "GLOB" }.to_owned());
            binary_expression(*column, op, pattern)
        }
        (SqlDialect::MySql, _) => {
            let is_folded = operator == ComparisonOperator::Ilike;
            let fold = |expr| match is_folded {
                true => call_expression("lower", vec![FunctionArgExpr::Expr(expr)], false),
                false => expr,
            };
            let (expr, pattern) = (Box::new(by_characters(fold(*column))), Box::new(fold(pattern)));
            Expr::Like { negated, any: false, expr, pattern, escape_char: None }
        }
        (SqlDialect::DataFusion | SqlDialect::Postgres, ComparisonOperator::Ilike) => {
            Expr::ILike { negated, any: false, expr: column, pattern: Box::new(pattern), escape_char: None }
        }
        (SqlDialect::DataFusion | SqlDialect::Postgres, _) => {
            Expr::Like { negated, any: false, expr: column, pattern: Box::new(pattern), escape_char: None }
        }
    }
}

/// `text` of MySQL in any character set, compared by its characters.
fn by_characters(text: Expr) -> Expr {
    let charset = Some(ObjectName::from(vec![Ident::new("utf8mb4")]));
    let (is_try, target_before_value) = (false, false);
    let text = Expr::Convert {
        is_try,
        expr: Box::new(text),
        data_type: None,
        charset,
        target_before_value,
        styles: Vec::new(),
    };
    Expr::Collate { expr: Box::new(text), collation: ObjectName::from(vec![Ident::new("utf8mb4_bin")]) }
}

fn escape_wildcards(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '%' | '_' | '\\') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

/// The GLOB pattern with the same meaning as `like`.
fn like_to_glob(like: &str) -> String {
    let mut glob = String::with_capacity(like.len());
    let mut characters = like.chars();
    while let Some(character) = characters.next() {
        match character {
            '%' => glob.push('*'),
            '_' => glob.push('?'),
            '\\' => push_glob_literal(characters.next().unwrap_or('\\'), &mut glob),
            other => push_glob_literal(other, &mut glob),
        }
    }
    glob
}

fn push_glob_literal(character: char, glob: &mut String) {
    match character {
        '*' | '?' | '[' => glob.extend(['[', character, ']']),
        other => glob.push(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn translates_like_to_glob() {
        assert_eq!(like_to_glob("a%b_"), "a*b?");
        assert_eq!(like_to_glob("100\\%*[x]?\\\\"), "100%[*][[]x][?]\\");
        assert_eq!(like_to_glob("end\\"), "end\\");
        assert_eq!(like_to_glob(&escape_wildcards("50%_\\*")), "50%_\\[*]");
    }
}
