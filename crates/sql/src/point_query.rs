//! Point queries: statements that read one table and filter it only by comparisons of columns with literals.
//!
//! All other expressions of such a statement are computed only for rows that pass the filter.

use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, Expr, Function, Ident, ObjectName, Query, Select, SetExpr, Statement as Tree, TableFactor,
    UnaryOperator, Value, ValueWithSpan, Visit, Visitor,
};

use crate::statement::Statement;

/// The table and the filter columns of a point query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PointQuery {
    /// The name of the only table, part by part, unquoted.
    pub table: Vec<String>,
    /// The columns in the filter.
    pub filter_columns: Vec<String>,
}

impl Statement {
    /// The point query of this statement, if it is one.
    pub fn point_query(&self) -> Option<PointQuery> {
        let Tree::Query(query) = self.ast()? else { return None };
        let select = only_select(query)?;
        let table = name_identifiers(table_name(select)?)?;
        let mut compared = Vec::new();
        let is_plain = select.selection.as_ref().is_none_or(|condition| is_literal_filter(condition, &mut compared));
        let mut counter = NestedQueryDetector { queries: 0 };
        let is_single = Visit::visit(query, &mut counter).is_continue();
        let table = table.into_iter().map(|part| part.value).collect();
        (is_plain && is_single).then_some(PointQuery { table, filter_columns: compared })
    }
}

fn only_select(query: &Query) -> Option<&Select> {
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    let is_bare = query.with.is_none() && query.fetch.is_none() && query.pipe_operators.is_empty();
    // Without an aggregate, HAVING is another condition in SQLite, which may evaluate it in any order.
    let is_simple = select.having.is_none() && select.qualify.is_none() && select.prewhere.is_none();
    let has_more = !select.lateral_views.is_empty() || !select.connect_by.is_empty() || !select.named_window.is_empty();
    (is_bare && is_simple && !has_more).then_some(select)
}

fn table_name(select: &Select) -> Option<&ObjectName> {
    let [from] = select.from.as_slice() else { return None };
    match &from.relation {
        TableFactor::Table { name, args: None, sample: None, .. } if from.joins.is_empty() => Some(name),
        _ => None,
    }
}

fn name_identifiers(name: &ObjectName) -> Option<Vec<Ident>> {
    name.0.iter().map(|part| part.as_ident().cloned()).collect()
}

fn is_literal_filter(condition: &Expr, compared: &mut Vec<String>) -> bool {
    use BinaryOperator::{And, Eq, Gt, GtEq, Lt, LtEq, NotEq, Or};
    match condition {
        Expr::Nested(inner) | Expr::UnaryOp { op: UnaryOperator::Not, expr: inner } => {
            is_literal_filter(inner, compared)
        }
        Expr::BinaryOp { left, op: And | Or, right } => {
            is_literal_filter(left, compared) && is_literal_filter(right, compared)
        }
        Expr::BinaryOp { left, op: Eq | NotEq | Lt | LtEq | Gt | GtEq, right } => {
            collect_column(left, compared) && is_literal(right) || is_literal(left) && collect_column(right, compared)
        }
        Expr::IsNull(inner) | Expr::IsNotNull(inner) => collect_column(inner, compared),
        Expr::Between { expr, low, high, .. } => collect_column(expr, compared) && is_literal(low) && is_literal(high),
        Expr::InList { expr, list, .. } => collect_column(expr, compared) && list.iter().all(is_literal),
        _ => false,
    }
}

fn collect_column(expr: &Expr, compared: &mut Vec<String>) -> bool {
    let name = match expr {
        Expr::Identifier(name) => Some(name),
        Expr::CompoundIdentifier(parts) => parts.last(),
        _ => None,
    };
    compared.extend(name.map(|name| name.value.clone()));
    name.is_some()
}

fn is_literal(expr: &Expr) -> bool {
    match expr {
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => is_literal(expr),
        Expr::Value(ValueWithSpan { value, .. }) => matches!(
            value,
            Value::Number(..) | Value::SingleQuotedString(_) | Value::Boolean(_) | Value::Null | Value::Placeholder(_)
        ),
        _ => false,
    }
}

struct NestedQueryDetector {
    queries: usize,
}

impl Visitor for NestedQueryDetector {
    type Break = ();

    fn pre_visit_query(&mut self, _query: &Query) -> ControlFlow<()> {
        self.queries += 1;
        if self.queries > 1 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Function(Function { over: Some(_), .. }) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::SqlDialect;

    #[test]
    fn accepts_only_comparisons_with_literals() {
        let lookup = |sql: &str| Statement::parse(sql, SqlDialect::Sqlite).unwrap().point_query();
        for (sql, compared) in [
            ("SELECT abs(a), max(b) FROM t GROUP BY abs(a) ORDER BY f(c)", ""),
            (
                "SELECT * FROM main.t AS x WHERE x.a = 1 AND (b < 'x' OR NOT c IS NULL) AND d IN (1, -2, NULL)",
                "a b c d",
            ),
            ("SELECT a FROM t WHERE a BETWEEN ? AND 5 LIMIT 3", "a"),
        ] {
            assert_eq!(lookup(sql).unwrap().filter_columns.join(" "), compared, "{sql}");
        }
        for sql in [
            "SELECT a FROM t WHERE abs(a) = 1",
            "SELECT a FROM t WHERE a = b",
            "SELECT a FROM t WHERE a + 1 = 2",
            "SELECT a FROM t WHERE a LIKE 'x'",
            "SELECT a FROM t WHERE a = 1 AND b = abs(1)",
            "SELECT a FROM t WHERE a",
            "SELECT a FROM t GROUP BY a HAVING f(a)",
            "SELECT a, sum(b) OVER (ORDER BY a) FROM t",
            "SELECT a, (SELECT 1) FROM t",
            "SELECT a FROM t, u",
            "SELECT a FROM t JOIN u ON t.a = 1",
            "SELECT a FROM (SELECT a FROM t)",
            "SELECT a FROM t UNION SELECT a FROM t",
            "WITH t AS (SELECT 1 AS a) SELECT a FROM t",
            "SELECT a FROM t WHERE a IN (SELECT 1)",
            "SELECT a FROM t WHERE CASE a WHEN 1 THEN b END",
        ] {
            assert_eq!(lookup(sql), None, "{sql}");
        }
    }

    #[test]
    fn keeps_table_name_when_redirected() {
        let rewritten = |sql: &str| {
            let statement = Statement::parse(sql, SqlDialect::Sqlite).unwrap();
            let rewritten = statement.with_only_table_redirected(&("temp".to_owned(), "u".to_owned())).unwrap();
            rewritten.unwrap().text().to_owned()
        };
        assert_eq!(rewritten("SELECT t.a FROM t WHERE main.t.a = 1"), "SELECT t.a FROM `temp`.`u` AS t WHERE t.a = 1");
        assert_eq!(rewritten("SELECT a FROM main.t x"), "SELECT a FROM `temp`.`u` x");
    }
}
