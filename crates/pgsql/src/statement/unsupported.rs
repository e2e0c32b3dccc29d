//! Forms that DataFusion would plan with another meaning than PostgreSQL's.

use std::ops::ControlFlow;

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, JoinOperator, Select,
    SelectItem, SetExpr, Visit, Visitor,
};

use crate::syntax::is_named;

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
    match select.visit(&mut RowCountFinder { has_outer_join: has_outer_join(select) }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(table) => plan_err!(
            "count({table}) of rows that an outer join may fill with NULL, or of distinct rows, is not supported; \
             instead count a column that is never NULL, for instance count({})",
            table.replace('*', "id")
        ),
    }
}

struct RowCountFinder {
    has_outer_join: bool,
}

impl Visitor for RowCountFinder {
    type Break = String;

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<String> {
        if let Expr::Function(Function { name, args: FunctionArguments::List(list), .. }) = expression
            && let [FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(table))] = list.args.as_slice()
            && is_named(name, "count")
            && (self.has_outer_join || list.duplicate_treatment == Some(DuplicateTreatment::Distinct))
        {
            return ControlFlow::Break(format!("{table}.*"));
        }
        ControlFlow::Continue(())
    }
}

/// Refuses rows as columns of an answer.
pub(super) fn check_records(body: &SetExpr) -> Result<()> {
    let mut left_to_see = vec![body];
    while let Some(body) = left_to_see.pop() {
        match body {
            SetExpr::SetOperation { left, right, .. } => left_to_see.extend([left.as_ref(), right.as_ref()]),
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
    match expression {
        Expr::Tuple(_) => true,
        Expr::Nested(inner) => is_record(inner),
        Expr::Function(function) => is_named(&function.name, "row"),
        _ => false,
    }
}
