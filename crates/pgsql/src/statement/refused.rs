//! Forms that DataFusion would plan with another meaning than PostgreSQL's.

use std::ops::ControlFlow;

use datafusion::common::{Result, not_impl_err, plan_err};
use datafusion::sql::sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Join, JoinConstraint,
    JoinOperator, Select, SelectItem, SetExpr, SetOperator, SetQuantifier, Visit, Visitor,
};

use crate::syntax::is_named;

/// Refuses joins whose merged columns would not be merged.
pub(super) fn check_joins(select: &Select) -> Result<()> {
    let joins = select.from.iter().flat_map(|from| &from.joins);
    for Join { join_operator, .. } in joins {
        let (word, constraint) = match join_operator {
            JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => ("RIGHT", constraint),
            JoinOperator::FullOuter(constraint) => ("FULL", constraint),
            _ => continue,
        };
        if matches!(constraint, JoinConstraint::Using(_) | JoinConstraint::Natural) {
            return not_impl_err!(
                "{word} JOIN with USING or NATURAL; write {word} JOIN b ON a.id = b.id, and coalesce(a.id, b.id) AS id"
            );
        }
    }
    Ok(())
}

/// Refuses operations on sets that count equal rows.
pub(super) fn check_set_operation(body: &SetExpr) -> Result<()> {
    // As deep as the chain is long, so it is walked without recursion.
    let mut left_to_see = vec![body];
    while let Some(body) = left_to_see.pop() {
        let SetExpr::SetOperation { op, set_quantifier, left, right } = body else { continue };
        if *set_quantifier == SetQuantifier::All && *op != SetOperator::Union {
            return not_impl_err!(
                "{op} ALL; number equal rows on both sides with row_number() OVER (PARTITION BY every column), and \
                 write {op}"
            );
        }
        left_to_see.extend([left.as_ref(), right.as_ref()]);
    }
    Ok(())
}

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
    match select.visit(&mut FindsCounts { has_outer_join: has_outer_join(select) }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(table) => plan_err!(
            "count({table}) of rows that an outer join may fill with NULL, or of distinct rows, is not supported; \
             instead count a column that is never NULL, for instance count({})",
            table.replace('*', "id")
        ),
    }
}

struct FindsCounts {
    has_outer_join: bool,
}

impl Visitor for FindsCounts {
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
