//! Refuses forms that DataFusion interprets differently from PostgreSQL.

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, JoinOperator, Select,
    SelectItem, SetExpr,
};

use crate::syntax::{is_named, without_parentheses};
use crate::walk::any_expression;

/// Whether rows of a table of `select` may be missing.
pub(super) fn has_outer_join(select: &Select) -> bool {
    let joins = select.from.iter().flat_map(|from| &from.joins);
    joins.into_iter().any(|join| {
        matches!(
            join.join_operator,
            JoinOperator::Left(_)
                | JoinOperator::LeftOuter(_)
                | JoinOperator::Right(_)
                | JoinOperator::RightOuter(_)
                | JoinOperator::FullOuter(_)
        )
    })
}

/// Refuses `count(t.*)` where it is not the number of rows: beside an outer join, and of distinct rows.
pub(super) fn check_counts(select: &Select) -> Result<()> {
    let has_outer_join = has_outer_join(select);
    let mut row_count = None;
    any_expression(select, |expression| {
        if let Expr::Function(Function { name, args: FunctionArguments::List(list), .. }) = expression
            && is_named(name, "count")
            && (has_outer_join || list.duplicate_treatment == Some(DuplicateTreatment::Distinct))
            && let [FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(table))] = list.args.as_slice()
        {
            row_count = Some(table.to_string());
        }
        row_count.is_some()
    });
    match row_count {
        None => Ok(()),
        Some(table) => plan_err!(
            "count({table}.*) of rows that an outer join may fill with NULL, or of distinct rows, is not supported; \
             instead count a column that is never NULL, for instance count({table}.id)"
        ),
    }
}

/// Refuses rows as output columns.
pub(super) fn check_records(body: &SetExpr) -> Result<()> {
    let mut pending = vec![body];
    while let Some(body) = pending.pop() {
        match body {
            SetExpr::SetOperation { left, right, .. } => pending.extend([left.as_ref(), right.as_ref()]),
            SetExpr::Select(select) => {
                for item in &select.projection {
                    if let SelectItem::UnnamedExpr(expression) | SelectItem::ExprWithAlias { expr: expression, .. } =
                        item
                        && is_record(expression)
                    {
                        return plan_err!(
                            "a row as a column, {expression}, is not supported; write its values as columns instead"
                        );
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn is_record(expression: &Expr) -> bool {
    match without_parentheses(expression) {
        Expr::Tuple(_) => true,
        Expr::Function(function) => is_named(&function.name, "row"),
        _ => false,
    }
}
