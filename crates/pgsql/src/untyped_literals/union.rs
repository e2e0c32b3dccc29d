//! Literals among the columns of a UNION.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::{Expr, LogicalPlan, Projection, Union};

use super::{common_type, is_text, is_untyped, type_literal};

/// `node` with the types that literals of its branches take, if it is a UNION.
///
/// # Errors
/// If columns of the branches have no type in common, or a literal names no value of it.
pub(crate) fn type_union(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Union(Union { mut inputs, schema }) = node else { return Ok(Transformed::no(node)) };
    let mut is_changed = false;
    for column in 0..schema.fields().len() {
        let given = inputs.iter().filter(|input| !is_literal(input, column));
        let types: Vec<_> = given.map(|input| input.schema().field(column).data_type().clone()).collect();
        let Some(common) = common_type("UNION", &types)?.filter(|common| !is_text(common)) else { continue };
        for input in inputs.iter_mut().filter(|input| is_literal(input, column)) {
            let projection = Arc::unwrap_or_clone(input.clone());
            let LogicalPlan::Projection(Projection { mut expr, input: below, .. }) = projection else { continue };
            let literal = std::mem::take(&mut expr[column]);
            let replaced = literal.transform_up(|part| {
                if is_untyped(&part) {
                    type_literal(part, &common).map(Transformed::yes)
                } else {
                    Ok(Transformed::no(part))
                }
            })?;
            expr[column] = replaced.data;
            *input = Arc::new(LogicalPlan::Projection(Projection::try_new(expr, below)?));
            is_changed = true;
        }
    }
    if !is_changed {
        return Ok(Transformed::no(LogicalPlan::Union(Union { inputs, schema })));
    }
    Ok(Transformed::yes(LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?)))
}

/// Whether a column of `plan` is a literal without a type.
fn is_literal(plan: &LogicalPlan, column: usize) -> bool {
    let LogicalPlan::Projection(projection) = plan else { return false };
    let mut expression = projection.expr.get(column);
    while let Some(Expr::Alias(alias)) = expression {
        expression = Some(&alias.expr);
    }
    expression.is_some_and(is_untyped)
}
