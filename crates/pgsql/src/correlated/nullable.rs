//! Scalar subqueries that may return no row are nullable, even if their column is not.
//!
//! DataFusion's issue 24513; `docs/decisions/upstream` says when the module can go.

use datafusion::arrow::datatypes::Field;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, ScalarUDF, Signature, Volatility};

use super::subquery_value::is_aggregate;
use crate::function::FieldFunction;
use crate::plan_walk::{any_node, any_part};

/// Makes such subqueries of `plan` nullable.
pub(super) fn make_subqueries_nullable(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !any_node(&plan, |node| any_part(node, may_be_null))? {
        return Ok(plan);
    }
    let rewritten = plan.transform_up_with_subqueries(|node| {
        let node = node.map_expressions(|expression| expression.transform_up(rewrite_expression))?.data;
        node.recompute_schema().map(Transformed::yes)
    });
    rewritten.data()
}

fn may_be_null(expression: &Expr) -> bool {
    match expression {
        Expr::ScalarSubquery(subquery) => {
            let plan = subquery.subquery.as_ref();
            !is_aggregate(plan) && plan.schema().fields().first().is_some_and(|field| !field.is_nullable())
        }
        _ => false,
    }
}

fn rewrite_expression(expression: Expr) -> Result<Transformed<Expr>> {
    if !may_be_null(&expression) {
        return Ok(Transformed::no(expression));
    }
    let Expr::ScalarSubquery(mut subquery) = expression else { return Ok(Transformed::no(expression)) };
    let plan = subquery.subquery.as_ref().clone();
    let column = plan.schema().columns().swap_remove(0);
    let value = nullable().call(vec![Expr::Column(column.clone())]).alias_qualified(column.relation, column.name);
    subquery.subquery = LogicalPlanBuilder::from(plan).project(vec![value])?.build()?.into();
    Ok(Transformed::yes(Expr::ScalarSubquery(subquery)))
}

/// Returns the function of its argument, declared as nullable.
fn nullable() -> ScalarUDF {
    FieldFunction::new(
        "nullable*",
        Signature::any(1, Volatility::Immutable),
        |args| Ok(Field::clone(&args.arg_fields[0]).with_nullable(true).into()),
        |args| Ok(args.args[0].clone()),
    )
}
