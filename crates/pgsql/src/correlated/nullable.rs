//! Scalar subqueries that may return no row are nullable, even if their column is not.
//!
//! DataFusion's issue 24513; `docs/decisions/upstream` says when the module can go.

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, LogicalPlanBuilder, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};

use super::subquery_value::is_aggregate;
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
    let function = ScalarUDF::from(NullableFunction { signature: Signature::any(1, Volatility::Immutable) });
    let value = function.call(vec![Expr::Column(column.clone())]).alias_qualified(column.relation, column.name);
    subquery.subquery = LogicalPlanBuilder::from(plan).project(vec![value])?.build()?.into();
    Ok(Transformed::yes(Expr::ScalarSubquery(subquery)))
}

/// Returns its argument, declared as nullable.
#[derive(Debug, PartialEq, Eq, Hash)]
struct NullableFunction {
    signature: Signature,
}

impl ScalarUDFImpl for NullableFunction {
    fn name(&self) -> &str {
        "nullable*"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Field::clone(&args.arg_fields[0]).with_nullable(true).into())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.into_iter().next() {
            Some(value) => Ok(value),
            None => internal_err!("a value is missing"),
        }
    }
}
