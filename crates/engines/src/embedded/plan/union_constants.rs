//! Constants in the branches of a union that is sorted.
//!
//! DataFusion knows that such a column has one value in each partition, and leaves it out of the sort of a partition. The
//! partitions of a sort with a limit share the last row that they keep, so that rows with other constants and otherwise the
//! same keys would be left out. A function without arguments is not known to be constant.
//!
//! DataFusion's pull request 23528, not in 55.2; `docs/decisions/upstream` says when the module can go.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, Projection, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, SubqueryAlias, Union, Volatility,
};

/// Hides the constants of `plan`, which is optimized, if it sorts rows of unions.
pub(super) fn hide_union_constants(plan: &LogicalPlan) -> Result<LogicalPlan> {
    if !plan.exists(|node| Ok(matches!(node, LogicalPlan::Sort(_))))? {
        return Ok(plan.clone());
    }
    let hidden = plan.clone().transform_up(|node| {
        let LogicalPlan::Union(Union { inputs, schema }) = node else { return Ok(Transformed::no(node)) };
        let inputs = inputs.iter().map(|input| hide_in_branch(input).map(Arc::new)).collect::<Result<_>>()?;
        Ok(Transformed::yes(LogicalPlan::Union(Union { inputs, schema })))
    });
    hidden.map(|hidden| hidden.data)
}

fn hide_in_branch(branch: &LogicalPlan) -> Result<LogicalPlan> {
    match branch {
        LogicalPlan::Projection(projection) => {
            let expressions = projection.expr.iter().cloned().map(hide_constant).collect();
            let (input, schema) = (projection.input.clone(), projection.schema.clone());
            Projection::try_new_with_schema(expressions, input, schema).map(LogicalPlan::Projection)
        }
        LogicalPlan::SubqueryAlias(SubqueryAlias { input, alias, .. }) => {
            let input = Arc::new(hide_in_branch(input)?);
            SubqueryAlias::try_new(input, alias.clone()).map(LogicalPlan::SubqueryAlias)
        }
        other => Ok(other.clone()),
    }
}

fn hide_constant(expression: Expr) -> Expr {
    match expression {
        Expr::Alias(mut alias) => {
            *alias.expr = hide_constant(std::mem::take(&mut alias.expr));
            Expr::Alias(alias)
        }
        Expr::Literal(value, _) => {
            let function = ScalarUDF::new_from_impl(ConstantOfBranch::new(value));
            Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(function), Vec::new()))
        }
        other => other,
    }
}

/// A function without arguments that returns `value`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ConstantOfBranch {
    /// What plans show of it.
    name: String,
    value: ScalarValue,
    signature: Signature,
}

impl ConstantOfBranch {
    fn new(value: ScalarValue) -> Self {
        Self { name: value.to_string(), value, signature: Signature::nullary(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for ConstantOfBranch {
    tidegate_pgsql::name_and_signature!(.name);

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.value.data_type())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(&self.name, self.value.data_type(), self.value.is_null())))
    }

    fn output_ordering(&self, _: &[ExprProperties]) -> Result<SortProperties> {
        Ok(SortProperties::Unordered)
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(ColumnarValue::Scalar(self.value.clone()))
    }
}
