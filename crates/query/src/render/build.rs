//! Builds AST nodes as the parser would, so that printed SQL parses back to the same AST.

use sqlparser::ast::{
    BinaryOperator, DuplicateTreatment, Expr, Function as Call, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Ident, Join as JoinNode, JoinConstraint, JoinOperator, LimitClause, ObjectName, Offset,
    OffsetRows, OrderBy, OrderByExpr, OrderByKind, OrderByOptions, Query, Select, SelectItem, SetExpr, TableAlias,
    TableFactor, Value,
};
use tidegate_sql::SqlDialect;

use crate::spec::JoinKind;

pub(super) fn build_query(
    select: Select,
    order_by: Vec<OrderByExpr>,
    limit: Option<Expr>,
    offset: Option<Expr>,
) -> Query {
    let order_by =
        (!order_by.is_empty()).then_some(OrderBy { kind: OrderByKind::Expressions(order_by), interpolate: None });
    let offset = offset.map(|value| Offset { value, rows: OffsetRows::None });
    let limit_clause =
        (limit.is_some() || offset.is_some()).then(|| LimitClause::LimitOffset { limit, offset, limit_by: Vec::new() });
    Query {
        with: None,
        body: Box::new(SetExpr::Select(Box::new(select))),
        order_by,
        limit_clause,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    }
}

pub(super) fn number(number: u64) -> Expr {
    number_text(&number.to_string())
}

pub(super) fn number_text(number: &str) -> Expr {
    Expr::Value(Value::Number(number.to_owned(), false).into())
}

pub(super) fn placeholder(number: usize) -> Expr {
    Expr::Value(Value::Placeholder(format!("${number}")).into())
}

pub(super) fn select_item(expr: Expr, alias: Ident) -> SelectItem {
    SelectItem::ExprWithAlias { expr, alias }
}

/// NULL comes last in both directions, because callers that request the largest value expect values.
pub(super) fn order_by_expression(expr: Expr, descending: bool) -> OrderByExpr {
    let options = OrderByOptions { asc: descending.then_some(false), nulls_first: Some(false) };
    OrderByExpr { expr, options, with_fill: None }
}

/// `order` for a dialect without NULLS LAST, in which NULL is the smallest value.
pub(super) fn without_nulls_order(order: OrderByExpr) -> Vec<OrderByExpr> {
    let OrderByExpr { expr, options: OrderByOptions { asc, nulls_first }, with_fill } = order;
    let is_null = Expr::IsNull(Box::new(parenthesize(expr.clone())));
    let plain = OrderByExpr { expr, options: OrderByOptions { asc, nulls_first: None }, with_fill };
    match (asc, nulls_first) {
        (Some(false), _) | (_, None) => vec![plain],
        _ => vec![order_by_unspecified(is_null), plain],
    }
}

pub(super) fn order_by_unspecified(expr: Expr) -> OrderByExpr {
    OrderByExpr { expr, options: OrderByOptions { asc: None, nulls_first: None }, with_fill: None }
}

pub(super) fn table(name: &str, alias: Option<&str>, dialect: SqlDialect) -> TableFactor {
    let named = |alias: &str| {
        let name = dialect.identifier(alias);
        TableAlias { explicit: true, name, columns: Vec::new(), at: None }
    };
    let alias = alias.map(named);
    let parts: Vec<Ident> = dialect.table_parts(name).iter().map(|part| dialect.identifier(part)).collect();
    TableFactor::Table {
        name: ObjectName::from(parts),
        alias,
        args: None,
        with_hints: Vec::new(),
        version: None,
        with_ordinality: false,
        partitions: Vec::new(),
        json_path: None,
        sample: None,
        index_hints: Vec::new(),
    }
}

pub(super) fn join(relation: TableFactor, kind: JoinKind, condition: Expr) -> JoinNode {
    let constraint = JoinConstraint::On(condition);
    let join_operator = match kind {
        JoinKind::Inner => JoinOperator::Inner(constraint),
        JoinKind::Left => JoinOperator::Left(constraint),
        JoinKind::Right => JoinOperator::Right(constraint),
        JoinKind::Full => JoinOperator::FullOuter(constraint),
    };
    JoinNode { relation, global: false, join_operator }
}

pub(super) fn call_expression(name: &str, arguments: Vec<FunctionArgExpr>, distinct: bool) -> Expr {
    Expr::Function(function_call(name, arguments, distinct))
}

pub(super) fn function_call(name: &str, arguments: Vec<FunctionArgExpr>, distinct: bool) -> Call {
    Call {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: distinct.then_some(DuplicateTreatment::Distinct),
            args: arguments.into_iter().map(FunctionArg::Unnamed).collect(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    }
}

pub(super) fn binary_expression(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

/// Joins `parts` with AND or OR, with parentheses where necessary.
pub(super) fn join_conditions(parts: Vec<Expr>, op: BinaryOperator) -> Option<Expr> {
    if parts.len() == 1 {
        return parts.into_iter().next();
    }
    let bracketed = |part| if is_comparison(&part) { part } else { parenthesize(part) };
    parts.into_iter().map(bracketed).reduce(|left, right| binary_expression(left, op.clone(), right))
}

pub(super) fn parenthesize(expr: Expr) -> Expr {
    match expr {
        expr @ Expr::Nested(_) => expr,
        other => Expr::Nested(Box::new(other)),
    }
}

/// Whether an expression binds closer than AND, OR and NOT whatever its parts are.
fn is_comparison(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryOp { left, op, right } => {
            use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
            matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq) && is_atom(left) && is_atom(right)
        }
        Expr::IsNull(expr) | Expr::IsNotNull(expr) | Expr::InList { expr, .. } => is_atom(expr),
        Expr::Between { expr, low, high, .. } => is_atom(expr) && is_atom(low) && is_atom(high),
        Expr::Like { expr, pattern, .. } | Expr::ILike { expr, pattern, .. } => is_atom(expr) && is_atom(pattern),
        _ => false,
    }
}

fn is_atom(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_) | Expr::Function(_) | Expr::Nested(_)
    )
}
