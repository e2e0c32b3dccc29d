//! Subqueries with a single value, such as `(SELECT max(day) FROM t)`: the value is read first, so that conditions with it
//! are those with a constant, which nodes can apply.

use datafusion::arrow::array::RecordBatch;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Subquery};
use datafusion::scalar::ScalarValue;
use tidegate_pgsql::{for_each_part, rewrite_named};

use super::key_joins::has_member_table;

/// The rows that are read of a subquery: one more than it may have.
pub(super) const VALUE_ROWS_MAX: usize = 2;

/// The different subqueries in `plan` that have a single value, the same for all rows, and read tables of nodes.
pub(super) fn find_scalar_subqueries(plan: &LogicalPlan) -> Result<Vec<LogicalPlan>> {
    let mut found: Vec<LogicalPlan> = Vec::new();
    plan.apply(|node| {
        for_each_part(node, |part| {
            if let Some(subquery) = scalar_subquery(part)
                && !found.contains(subquery)
                && has_member_table(subquery)
            {
                found.push(subquery.clone());
            }
            Ok(())
        })
    })?;
    Ok(found)
}

/// `subquery`, limited to the rows that are read.
pub(super) fn limited(subquery: &LogicalPlan) -> Result<LogicalPlan> {
    LogicalPlanBuilder::from(subquery.clone()).limit(0, Some(VALUE_ROWS_MAX))?.build()
}

/// The value of `subquery`, whose rows are `batches`. `None` if it has several rows, which is an error of the statement.
pub(super) fn single_value(subquery: &LogicalPlan, batches: &[RecordBatch]) -> Result<Option<ScalarValue>> {
    let data_type = subquery.schema().field(0).data_type();
    let mut filled = batches.iter().filter(|batch| batch.num_rows() > 0);
    match (filled.next(), filled.next()) {
        (None, _) => ScalarValue::try_from(data_type).map(Some),
        (Some(batch), None) if batch.num_rows() == 1 => {
            ScalarValue::try_from_array(batch.column(0), 0)?.cast_to(data_type).map(Some)
        }
        _ => Ok(None),
    }
}

/// `plan` with `value` in place of `subquery`.
pub(super) fn replace_subquery(plan: LogicalPlan, subquery: &LogicalPlan, value: &ScalarValue) -> Result<LogicalPlan> {
    let with_value = |part: Expr| match scalar_subquery(&part) {
        Some(known) if known == subquery => Ok(Transformed::yes(Expr::Literal(value.clone(), None))),
        _ => Ok(Transformed::no(part)),
    };
    let replaced = plan.transform_down(|node| {
        // The nodes above refer to expressions by their names, which a subquery is a part of.
        rewrite_named(node, |expression| expression.transform_down(with_value))
    });
    replaced.map(|transformed| transformed.data)
}

fn scalar_subquery(expression: &Expr) -> Option<&LogicalPlan> {
    match expression {
        Expr::ScalarSubquery(Subquery { subquery, outer_ref_columns, .. }) if outer_ref_columns.is_empty() => {
            Some(subquery)
        }
        _ => None,
    }
}
