//! Replaces comparisons of rows, such as `(a, b) < (c, d)`, with comparisons of their values, and `(a, b) IN (SELECT …)` with
//! EXISTS; rewrites other comparisons of a row with a subquery.

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{
    AccessExpr, BinaryOperator, Expr, Query, SelectItem, TableAlias, TableFactor, Value,
};

use crate::syntax::{self, argument_values, binary, boolean, is_named, nested, not, quoted, without_parentheses};

/// Rewrites `expression` if it compares rows.
pub(super) fn rewrite_comparison(expression: &mut Expr) -> Result<()> {
    let rewritten = match &*expression {
        Expr::BinaryOp { left, op, right } => match (row_values(left), row_values(right)) {
            (Some(left), Some(right)) => compare_rows(&left, op, &right)?,
            _ => None,
        },
        Expr::InList { expr, list, negated } => match row_values(expr) {
            Some(left) if !list.is_empty() => Some(in_list(&left, list, *negated)?),
            _ => None,
        },
        Expr::IsNull(inner) => {
            row_values(inner).map(|values| all_of(values.into_iter().map(|value| Expr::IsNull(parenthesized(value)))))
        }
        Expr::IsNotNull(inner) => row_values(inner)
            .map(|values| all_of(values.into_iter().map(|value| Expr::IsNotNull(parenthesized(value))))),
        Expr::Between { expr, negated, low, high } => between_symmetric(expr, *negated, low, high),
        Expr::CompoundFieldAccess { root, access_chain } => field(root, access_chain),
        _ => None,
    };
    if let Some(rewritten) = rewritten {
        *expression = nested(rewritten);
    }
    Ok(())
}

/// Returns the value of `(ROW(a, b)).f2`.
fn field(root: &Expr, chain: &[AccessExpr]) -> Option<Expr> {
    let name = match chain {
        [AccessExpr::Dot(Expr::Identifier(name))] => &name.value,
        [AccessExpr::Dot(Expr::Value(name))] => match &name.value {
            Value::SingleQuotedString(name) => name,
            _ => return None,
        },
        _ => return None,
    };
    let position = name.strip_prefix('f')?.parse::<usize>().ok()?.checked_sub(1)?;
    row_values(root)?.into_iter().nth(position)
}

/// Returns the values of a row constructor.
pub(super) fn row_values(expression: &Expr) -> Option<Vec<Expr>> {
    match expression {
        Expr::Tuple(values) if values.len() > 1 => Some(values.clone()),
        Expr::Nested(inner) => row_values(inner),
        Expr::Function(function) if is_named(&function.name, "row") => argument_values(function),
        _ => None,
    }
}

fn parenthesized(expression: Expr) -> Box<Expr> {
    Box::new(nested(expression))
}

fn operation(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    binary(nested(left), op, nested(right))
}

fn join_conditions(mut parts: impl Iterator<Item = Expr>, op: &BinaryOperator) -> Expr {
    let first = parts.next().unwrap_or_else(|| boolean(true));
    parts.fold(first, |left, right| operation(left, op.clone(), right))
}

fn all_of(parts: impl Iterator<Item = Expr>) -> Expr {
    join_conditions(parts, &BinaryOperator::And)
}

fn any_of(parts: impl Iterator<Item = Expr>) -> Expr {
    join_conditions(parts, &BinaryOperator::Or)
}

fn compare_rows(left: &[Expr], op: &BinaryOperator, right: &[Expr]) -> Result<Option<Expr>> {
    if left.len() != right.len() {
        return plan_err!("a row of {} values is compared with one of {}", left.len(), right.len());
    }
    let pairs = |op: BinaryOperator| {
        left.iter().zip(right).map(move |(left, right)| operation(left.clone(), op.clone(), right.clone()))
    };
    Ok(Some(match op {
        BinaryOperator::Eq => all_of(pairs(BinaryOperator::Eq)),
        BinaryOperator::NotEq => any_of(pairs(BinaryOperator::NotEq)),
        BinaryOperator::Lt | BinaryOperator::LtEq => order_rows(left, &BinaryOperator::Lt, op, right),
        BinaryOperator::Gt | BinaryOperator::GtEq => order_rows(left, &BinaryOperator::Gt, op, right),
        _ => return Ok(None),
    }))
}

/// Compares rows by the first values that differ: the last ones with `last`, the others with `strict`.
fn order_rows(left: &[Expr], strict: &BinaryOperator, last: &BinaryOperator, right: &[Expr]) -> Expr {
    let mut pairs = left.iter().cloned().zip(right.iter().cloned()).rev();
    let decided = pairs.next().map_or_else(|| boolean(true), |(left, right)| operation(left, last.clone(), right));
    pairs.fold(decided, |rest, (left, right)| {
        let equal = operation(left.clone(), BinaryOperator::Eq, right.clone());
        let differs = operation(left, strict.clone(), right);
        operation(differs, BinaryOperator::Or, operation(equal, BinaryOperator::And, rest))
    })
}

fn in_list(left: &[Expr], list: &[Expr], negated: bool) -> Result<Expr> {
    let mut equalities = Vec::new();
    for item in list {
        let Some(right) = row_values(item) else {
            return plan_err!("a row of {} values is compared with {item}", left.len());
        };
        equalities.extend(compare_rows(left, &BinaryOperator::Eq, &right)?);
    }
    let is_listed = any_of(equalities.into_iter());
    Ok(if negated { not(is_listed) } else { is_listed })
}

/// Rewrites `x BETWEEN SYMMETRIC a AND b`.
fn between_symmetric(value: &Expr, negated: bool, low: &Expr, high: &Expr) -> Option<Expr> {
    let Expr::Prefixed { prefix, value: low } = low else { return None };
    if !prefix.value.eq_ignore_ascii_case("symmetric") {
        return None;
    }
    let between = |low: &Expr, high: &Expr| Expr::Between {
        expr: parenthesized(value.clone()),
        negated,
        low: parenthesized(low.clone()),
        high: parenthesized(high.clone()),
    };
    let op = if negated { BinaryOperator::And } else { BinaryOperator::Or };
    Some(operation(between(low, high), op, between(high, low)))
}

/// The alias of the subquery.
const ALIAS: &str = "rows in\u{1}";

/// Rewrites the parts of `condition` for which false and NULL have the same effect.
pub(super) fn rewrite_condition(condition: &mut Expr) -> Result<()> {
    let mut pending = vec![condition];
    while let Some(condition) = pending.pop() {
        match condition {
            Expr::BinaryOp { left, op: BinaryOperator::And, right } => pending.extend([right.as_mut(), left.as_mut()]),
            Expr::Nested(inner) => pending.push(inner),
            Expr::InSubquery { expr, subquery, negated } => {
                let Some(values) = row_values(expr) else { continue };
                let equal = rows_equal(&values);
                let is_met = if *negated { Expr::IsNotFalse(Box::new(equal)) } else { equal };
                *condition =
                    Expr::Exists { subquery: select_matching_rows(subquery, values.len(), is_met)?, negated: *negated };
            }
            _ => {}
        }
    }
    Ok(())
}

/// Rewrites `(a, b) = (SELECT x, y …)`, and with other operators or ANY and ALL.
pub(super) fn rewrite_subquery_comparison(expression: &mut Expr) -> Result<()> {
    let (left, op, subquery) = match &*expression {
        Expr::BinaryOp { left, op, right } => (left, op, right),
        Expr::AnyOp { left, compare_op: op @ BinaryOperator::Eq, right, .. }
        | Expr::AllOp { left, compare_op: op @ BinaryOperator::NotEq, right } => (left, op, right),
        _ => return Ok(()),
    };
    let (Some(values), Expr::Subquery(subquery)) = (row_values(left), without_parentheses(subquery)) else {
        return Ok(());
    };
    if !matches!(&*expression, Expr::BinaryOp { .. }) {
        let negated = *op == BinaryOperator::NotEq;
        *expression = Expr::InSubquery { expr: left.clone(), subquery: subquery.clone(), negated };
        return rewrite_value(expression);
    }
    let columns = (0..values.len()).map(|index| Expr::CompoundIdentifier(vec![quoted(ALIAS), quoted(column(index))]));
    let compared = binary(Expr::Tuple(values.clone()), op.clone(), Expr::Tuple(columns.collect()));
    let mut outer = select_matching_rows(subquery, values.len(), boolean(true))?;
    syntax::change_select(&mut outer, |select| {
        select.projection = vec![SelectItem::ExprWithAlias { expr: compared, alias: quoted("compared") }];
    });
    *expression = Expr::Subquery(outer);
    Ok(())
}

/// Rewrites `expression` with a result of NULL where a comparison with NULL could decide.
pub(super) fn rewrite_value(expression: &mut Expr) -> Result<()> {
    let Expr::InSubquery { expr, subquery, negated } = expression else { return Ok(()) };
    let Some(values) = row_values(expr) else { return Ok(()) };
    let equal = rows_equal(&values);
    let unknown = Expr::IsNull(Box::new(nested(equal.clone())));
    let is_there = Expr::Exists { subquery: select_matching_rows(subquery, values.len(), equal)?, negated: false };
    let may_be_there =
        Expr::Exists { subquery: select_matching_rows(subquery, values.len(), unknown)?, negated: false };
    let mut outcome =
        syntax::parse_expression("CASE WHEN a THEN true WHEN b THEN CAST(NULL AS boolean) ELSE false END")?;
    if let Expr::Case { conditions, .. } = &mut outcome {
        for (when, condition) in conditions.iter_mut().zip([is_there, may_be_there]) {
            when.condition = condition;
        }
    }
    if *negated {
        outcome = not(outcome);
    }
    *expression = outcome;
    Ok(())
}

/// Builds the condition that the values are those of a row of the subquery.
fn rows_equal(values: &[Expr]) -> Expr {
    let pairs = values.iter().enumerate().map(|(index, value)| {
        let column = Expr::CompoundIdentifier(vec![quoted(ALIAS), quoted(column(index))]);
        binary(column, BinaryOperator::Eq, nested(value.clone()))
    });
    let all = pairs.reduce(|left, right| binary(left, BinaryOperator::And, right));
    nested(all.unwrap_or_else(|| Expr::Tuple(Vec::new())))
}

fn column(index: usize) -> String {
    format!("{}\u{1}in", index + 1)
}

/// Selects the rows of `subquery`, which has `columns` columns, that meet `condition`.
fn select_matching_rows(subquery: &Query, columns: usize, condition: Expr) -> Result<Box<Query>> {
    let mut outer = syntax::parse_query("SELECT 1 FROM (SELECT 1) AS t WHERE true")?;
    syntax::put_subquery(&mut outer, &mut subquery.clone());
    let names: Vec<String> = (0..columns).map(column).collect();
    syntax::change_select(&mut outer, |select| {
        select.selection = Some(condition);
        for from in &mut select.from {
            if let TableFactor::Derived { alias, .. } = &mut from.relation {
                *alias = Some(syntax::table_alias(ALIAS, &names));
            }
        }
    });
    Ok(Box::new(outer))
}

/// Fails if an alias of this module names another number of columns.
pub(super) fn check_columns(alias: &TableAlias, columns: usize) -> Result<()> {
    if alias.name.value == ALIAS && alias.columns.len() != columns {
        let few_or_many = if columns < alias.columns.len() { "few" } else { "many" };
        return plan_err!("subquery has too {few_or_many} columns");
    }
    Ok(())
}
