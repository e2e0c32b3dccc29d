//! Evaluates the parts of a condition one after the other, each only for the remaining rows.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, BooleanArray, RecordBatch};
use datafusion::arrow::compute::{and, prep_null_mask_filter};
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::{PhysicalExpr, conjunction, split_conjunction};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};

use super::can_fail;
use super::short_circuit::{add_all_short_circuits, add_short_circuits};

/// Evaluates fallible parts of conditions last, and only for rows that pass the other parts.
#[derive(Debug)]
pub(super) struct OrderConditions;

impl PhysicalOptimizerRule for OrderConditions {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let ordered = plan.transform_up(|node| {
            if let Some(projection) = node.downcast_ref::<ProjectionExec>() {
                return short_circuit_projection(projection, &node);
            }
            let Some(filter) = node.downcast_ref::<FilterExec>() else { return Ok(Transformed::no(node)) };
            Ok(match order_conjuncts(filter.predicate())? {
                Some(predicate) => {
                    let filter = FilterExecBuilder::from(filter).with_predicate(predicate).build()?;
                    Transformed::yes(Arc::new(filter) as Arc<dyn ExecutionPlan>)
                }
                None => Transformed::no(node),
            })
        });
        ordered.data()
    }

    fn name(&self) -> &str {
        "OrderConditions"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Makes the expressions of `node`, a projection, stop where one side of AND or OR decides.
pub(super) fn short_circuit_projection(
    projection: &ProjectionExec,
    node: &Arc<dyn ExecutionPlan>,
) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let columns = projection.expr();
    let Some(changed) = add_all_short_circuits(columns.iter().map(|column| column.expr.clone()))? else {
        return Ok(Transformed::no(node.clone()));
    };
    let changed =
        columns.iter().zip(changed).map(|(column, expr)| ProjectionExpr { expr, alias: column.alias.clone() });
    let projection = ProjectionExec::try_new(changed.collect::<Vec<_>>(), projection.input().clone())?;
    Ok(Transformed::yes(Arc::new(projection)))
}

/// Orders the parts of `predicate`; `None` if their order does not matter.
fn order_conjuncts(predicate: &Arc<dyn PhysicalExpr>) -> Result<Option<Arc<dyn PhysicalExpr>>> {
    let (mut safe, mut fallible) = (Vec::new(), Vec::new());
    for part in split_conjunction(predicate) {
        if can_fail(part)? { fallible.push(part.clone()) } else { safe.push(part.clone()) }
    }
    if fallible.is_empty() {
        return Ok(None);
    }
    if safe.len() + fallible.len() < 2 {
        let changed = add_all_short_circuits(fallible.into_iter())?;
        return Ok(changed.and_then(|mut changed| changed.pop()));
    }
    let mut parts = Vec::new();
    if !safe.is_empty() {
        parts.push(conjunction(safe));
    }
    for part in fallible {
        parts.push(add_short_circuits(part)?.data);
    }
    Ok(Some(Arc::new(OrderedConjunction { parts })))
}

/// A conjunction whose later parts are evaluated only where the earlier ones are true.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OrderedConjunction {
    parts: Vec<Arc<dyn PhysicalExpr>>,
}

impl fmt::Display for OrderedConjunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, part) in self.parts.iter().enumerate() {
            write!(f, "{}{part}", if position == 0 { "" } else { " AND " })?;
        }
        Ok(())
    }
}

impl PhysicalExpr for OrderedConjunction {
    fn data_type(&self, _: &Schema) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn nullable(&self, _: &Schema) -> Result<bool> {
        Ok(false)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let mut selected = BooleanArray::from(vec![true; batch.num_rows()]);
        for part in &self.parts {
            if !selected.has_true() {
                break;
            }
            let values = part.evaluate_selection(batch, &selected)?.into_array(batch.num_rows())?;
            let values = values.as_boolean();
            // Neither a NULL nor a value that was not evaluated passes the filter.
            let is_true = if values.null_count() > 0 { prep_null_mask_filter(values) } else { values.clone() };
            selected = and(&selected, &is_true)?;
        }
        Ok(ColumnarValue::Array(Arc::new(selected)))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        self.parts.iter().collect()
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        Ok(Arc::new(Self { parts: children }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, part) in self.parts.iter().enumerate() {
            f.write_str(if position == 0 { "" } else { " AND " })?;
            part.fmt_sql(f)?;
        }
        Ok(())
    }
}
