//! Refuses forms that DataFusion interprets differently from PostgreSQL.

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, JoinOperator,
    Select, SelectItem, SetExpr, SetQuantifier,
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

/// Refuses columns as the values of a hypothetical row, or as fractions, beside grouping sets: they would be NULL in some sets.
pub(super) fn check_direct_arguments(select: &Select) -> Result<()> {
    let GroupByExpr::Expressions(groups, _) = &select.group_by else { return Ok(()) };
    let is_set = |group: &Expr| matches!(group, Expr::Rollup(_) | Expr::Cube(_) | Expr::GroupingSets(_));
    if !groups.iter().any(is_set) {
        return Ok(());
    }
    let is_column = |part: &Expr| matches!(part, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
    let mut refused = None;
    any_expression(select, |expression| {
        if let Expr::Function(function) = expression
            && !function.within_group.is_empty()
            && any_expression(&function.args, is_column)
        {
            refused = Some(function.name.to_string());
        }
        refused.is_some()
    });
    match refused {
        Some(name) => plan_err!(
            "{name} of a column WITHIN GROUP, beside ROLLUP, CUBE or GROUPING SETS, is not supported; write a constant, \
             or GROUP BY the column without them"
        ),
        None => Ok(()),
    }
}

/// Refuses UNION, INTERSECT and EXCEPT of queries without columns, unless they keep all rows.
pub(super) fn check_set_operation(body: &SetExpr) -> Result<()> {
    if let SetExpr::SetOperation { op, set_quantifier, left, .. } = body
        && *set_quantifier != SetQuantifier::All
        && matches!(left.as_ref(), SetExpr::Select(select) if select.projection.is_empty())
    {
        return plan_err!("{op} of queries without columns is not supported; write SELECT 1 FROM t instead");
    }
    Ok(())
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
