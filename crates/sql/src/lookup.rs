//! Lookups and point queries: statements about the rows of one table whose columns compare with constants.
//!
//! A lookup returns columns. Unlike a point query, it computes nothing, so that it needs no plan of an engine. All other
//! expressions of a point query are computed only for rows that pass the filter.

use std::cmp::Ordering;
use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, Expr, Function, GroupByExpr, Ident, LimitClause, ObjectName, ObjectNamePart, Query, Select,
    SelectFlavor, SelectItem, SetExpr, Statement as Tree, TableAlias, TableFactor, TableWithJoins, UnaryOperator,
    Value, ValueWithSpan, Visit, Visitor, WildcardAdditionalOptions,
};

use crate::statement::{Parameter, Statement};

/// A statement that returns columns of the rows of one table that meet all conditions.
#[derive(Debug, Clone, PartialEq)]
pub struct Lookup<'a> {
    /// The name of the table, without a schema.
    pub table: &'a str,
    /// The columns of the result, in order.
    pub outputs: Vec<LookupOutput<'a>>,
    /// The conditions, all of which a row meets.
    pub conditions: Vec<LookupCondition<'a>>,
    /// The number of matching rows that are left out first.
    pub offset: usize,
    /// The maximum number of rows.
    pub limit: Option<usize>,
}

/// Columns of the result of a lookup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LookupOutput<'a> {
    /// All columns of the table: `*`.
    All,
    /// One column of the table.
    Column {
        /// Its name in the table.
        name: &'a str,
        /// Its name in the result, if the statement gives one.
        alias: Option<&'a str>,
    },
}

/// A condition on one column: `column comparator value`.
#[derive(Debug, Clone, PartialEq)]
pub struct LookupCondition<'a> {
    /// The name of the column.
    pub column: &'a str,
    /// How its value compares.
    pub comparator: Comparator,
    /// The constant, which is not NULL.
    pub value: Parameter,
}

impl Statement {
    /// The lookup of this statement, if it is one. Names are compared exactly, so one that a database would find in
    /// another case must be looked up by the database.
    pub fn lookup(&self) -> Option<Lookup<'_>> {
        let Tree::Query(query) = self.ast()? else { return None };
        let (select, offset, limit) = plain_select(query)?;
        let (table, alias) = plain_table(&select.from)?;
        let reader = Reader { qualifier: alias.unwrap_or(table), parameters: self.parameters() };
        let mut conditions = Vec::new();
        if let Some(condition) = &select.selection {
            reader.add_conditions(condition, &mut conditions)?;
        }
        let outputs = select.projection.iter().map(|item| reader.output(item)).collect::<Option<_>>()?;
        (!select.projection.is_empty()).then_some(Lookup { table, outputs, conditions, offset, limit })
    }
}

/// The SELECT of a query without other clauses, with its OFFSET and LIMIT. Names all fields, so that a clause that the
/// parser learns is not overlooked.
fn plain_select(query: &Query) -> Option<(&Select, usize, Option<usize>)> {
    let Query {
        with: None,
        body,
        order_by: None,
        limit_clause,
        fetch: None,
        locks,
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators,
    } = query
    else {
        return None;
    };
    let SetExpr::Select(select) = body.as_ref() else { return None };
    let (offset, limit) = match limit_clause {
        None => (0, None),
        Some(LimitClause::LimitOffset { limit, offset, limit_by }) if limit_by.is_empty() => {
            let offset = match offset {
                Some(offset) => row_count(&offset.value)?,
                None => 0,
            };
            let limit = match limit {
                Some(limit) => Some(row_count(limit)?),
                None => None,
            };
            (offset, limit)
        }
        Some(_) => return None,
    };
    (locks.is_empty() && pipe_operators.is_empty() && is_plain(select)).then_some((select, offset, limit))
}

fn is_plain(select: &Select) -> bool {
    let Select {
        select_token: _,
        optimizer_hints,
        distinct: None,
        select_modifiers: None,
        top: None,
        top_before_distinct: _,
        projection: _,
        exclude: None,
        into: None,
        from: _,
        lateral_views,
        prewhere: None,
        selection: _,
        connect_by,
        group_by: GroupByExpr::Expressions(keys, modifiers),
        cluster_by,
        distribute_by,
        sort_by,
        having: None,
        named_window,
        qualify: None,
        window_before_qualify: _,
        value_table_mode: None,
        flavor: SelectFlavor::Standard,
    } = select
    else {
        return false;
    };
    let is_ungrouped = keys.is_empty() && modifiers.is_empty() && named_window.is_empty() && connect_by.is_empty();
    let is_unordered = cluster_by.is_empty() && distribute_by.is_empty() && sort_by.is_empty();
    is_ungrouped && is_unordered && lateral_views.is_empty() && optimizer_hints.is_empty()
}

/// The name of the only table, and its alias.
fn plain_table(from: &[TableWithJoins]) -> Option<(&str, Option<&str>)> {
    let [TableWithJoins { relation, joins }] = from else { return None };
    let TableFactor::Table {
        name: ObjectName(parts),
        alias,
        args: None,
        with_hints,
        version: None,
        with_ordinality: false,
        partitions,
        json_path: None,
        sample: None,
        index_hints,
    } = relation
    else {
        return None;
    };
    let [ObjectNamePart::Identifier(name)] = parts.as_slice() else { return None };
    let alias = match alias {
        None => None,
        Some(TableAlias { explicit: _, name, columns, at: None }) if columns.is_empty() => Some(name.value.as_str()),
        Some(_) => return None,
    };
    let is_bare = joins.is_empty() && with_hints.is_empty() && partitions.is_empty() && index_hints.is_empty();
    is_bare.then_some((name.value.as_str(), alias))
}

fn row_count(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) => digits.parse().ok(),
        _ => None,
    }
}

/// Whether PostgreSQL may read `name` as a function that is called without parentheses.
fn is_keyword(name: &Ident) -> bool {
    const STARTS: [&str; 4] = ["current_", "session_", "system_", "local"];
    let folded = name.value.to_lowercase();
    name.quote_style.is_none() && (folded == "user" || STARTS.iter().any(|start| folded.starts_with(start)))
}

struct Reader<'a> {
    /// The name of the table before its columns.
    qualifier: &'a str,
    parameters: &'a [Parameter],
}

impl<'a> Reader<'a> {
    fn output(&self, item: &'a SelectItem) -> Option<LookupOutput<'a>> {
        match item {
            SelectItem::Wildcard(options) if *options == WildcardAdditionalOptions::default() => {
                Some(LookupOutput::All)
            }
            SelectItem::UnnamedExpr(expr) => Some(LookupOutput::Column { name: self.column(expr)?, alias: None }),
            SelectItem::ExprWithAlias { expr, alias } => {
                Some(LookupOutput::Column { name: self.column(expr)?, alias: Some(&alias.value) })
            }
            _ => None,
        }
    }

    fn column(&self, expr: &'a Expr) -> Option<&'a str> {
        match expr {
            Expr::Identifier(name) if is_keyword(name) => None,
            Expr::Identifier(name) => Some(&name.value),
            Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [Ident { value: table, .. }, name] if table == self.qualifier => Some(&name.value),
                _ => None,
            },
            _ => None,
        }
    }

    fn add_conditions(&self, expr: &'a Expr, conditions: &mut Vec<LookupCondition<'a>>) -> Option<()> {
        match expr {
            Expr::Nested(inner) => self.add_conditions(inner, conditions),
            Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
                self.add_conditions(left, conditions)?;
                self.add_conditions(right, conditions)
            }
            Expr::BinaryOp { left, op, right } => {
                let comparator = Comparator::from_operator(op)?;
                conditions.push(LookupCondition {
                    column: self.column(left)?,
                    comparator,
                    value: self.constant(right)?,
                });
                Some(())
            }
            _ => None,
        }
    }

    fn constant(&self, expr: &Expr) -> Option<Parameter> {
        match expr {
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match self.constant(expr)? {
                Parameter::Integer(value) => value.checked_neg().map(Parameter::Integer),
                _ => None,
            },
            Expr::Value(ValueWithSpan { value, .. }) => match value {
                Value::Number(digits, _) => digits.parse().ok().map(Parameter::Integer),
                Value::SingleQuotedString(text) => Some(Parameter::Text(text.clone())),
                Value::Boolean(value) => Some(Parameter::Boolean(*value)),
                Value::Placeholder(name) => {
                    let number: usize = name.strip_prefix('$')?.parse().ok()?;
                    let value = self.parameters.get(number.checked_sub(1)?)?;
                    (!matches!(value, Parameter::Null)).then(|| value.clone())
                }
                _ => None,
            },
            _ => None,
        }
    }
}

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

/// How two values are compared. Text is compared byte by byte, whatever the column's collation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Comparator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparator {
    /// The comparator of `operator`, if it is one of the six.
    pub fn from_operator(operator: &BinaryOperator) -> Option<Self> {
        Some(match operator {
            BinaryOperator::Eq => Self::Equal,
            BinaryOperator::NotEq => Self::NotEqual,
            BinaryOperator::Lt => Self::Less,
            BinaryOperator::LtEq => Self::LessOrEqual,
            BinaryOperator::Gt => Self::Greater,
            BinaryOperator::GtEq => Self::GreaterOrEqual,
            _ => return None,
        })
    }

    /// The comparator with both sides exchanged.
    #[must_use]
    pub fn flipped(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
            same => same,
        }
    }

    /// Whether the comparison is true for two values in the order `order`.
    pub fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::SqlDialect;

    fn statement(sql: &str) -> Statement {
        Statement::parse(sql, SqlDialect::DataFusion).unwrap()
    }

    #[test]
    fn reads_columns_conditions_and_limit() {
        let parameters = vec![Parameter::Text("x".to_owned()), Parameter::Integer(3)];
        let statement = statement(
            r#"SELECT *, a, t."B" AS c FROM "T.x" AS t WHERE a = -1 AND (b < $1 AND t.c >= $2) LIMIT 5 OFFSET 2"#,
        );
        let statement = statement.with_parameters(parameters).unwrap();
        let column = |name, alias| LookupOutput::Column { name, alias };
        let condition = |column, comparator, value| LookupCondition { column, comparator, value };
        assert_eq!(
            statement.lookup().unwrap(),
            Lookup {
                table: "T.x",
                outputs: vec![LookupOutput::All, column("a", None), column("B", Some("c"))],
                conditions: vec![
                    condition("a", Comparator::Equal, Parameter::Integer(-1)),
                    condition("b", Comparator::Less, Parameter::Text("x".to_owned())),
                    condition("c", Comparator::GreaterOrEqual, Parameter::Integer(3)),
                ],
                offset: 2,
                limit: Some(5),
            }
        );
    }

    #[test]
    fn leaves_other_statements_to_the_database() {
        for sql in [
            "SELECT a + 1 FROM t",
            "SELECT current_role FROM t",
            "SELECT a FROM t WHERE Current_Schema = 'x'",
            "SELECT count(*) FROM t",
            "SELECT DISTINCT a FROM t",
            "SELECT a FROM t ORDER BY a",
            "SELECT a FROM t GROUP BY a",
            "SELECT a FROM t WHERE a = b",
            "SELECT a FROM t WHERE a = NULL",
            "SELECT a FROM t WHERE a = 1.5",
            "SELECT a FROM t WHERE a = 1 OR a = 2",
            "SELECT a FROM t WHERE NOT a = 1",
            "SELECT a FROM t WHERE a IN (1)",
            "SELECT a FROM t WHERE 1 = a",
            "SELECT a FROM t, u",
            "SELECT a FROM t JOIN u ON true",
            "SELECT a FROM s.t",
            "SELECT u.a FROM t",
            "SELECT t.a FROM t AS u",
            "SELECT t.* FROM t",
            "SELECT a FROM t AS u (a)",
            "SELECT a FROM (SELECT a FROM t)",
            "SELECT a FROM t UNION SELECT a FROM t",
            "WITH t AS (SELECT 1 AS a) SELECT a FROM t",
            "SELECT a FROM t LIMIT 1 + 1",
            "VALUES (1)",
        ] {
            assert_eq!(statement(sql).lookup(), None, "{sql}");
        }
        let unbound = statement("SELECT a FROM t WHERE a = $1");
        assert_eq!(unbound.lookup(), None);
        assert_eq!(unbound.with_parameters(vec![Parameter::Null]).unwrap().lookup(), None);
    }

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
