//! `AND` and `OR` whose right side is evaluated only where the left one does not decide.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{AsArray, BooleanArray, RecordBatch};
use datafusion::arrow::compute::{and_kleene, or_kleene};
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::{ColumnarValue, Operator};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::BinaryExpr;

use super::can_fail;

/// Makes fallible parts of `expression` be evaluated only where no other part decides.
pub(super) fn add_short_circuits(expression: Arc<dyn PhysicalExpr>) -> Result<Transformed<Arc<dyn PhysicalExpr>>> {
    expression.transform_up(|part| {
        let Some(binary) = part.downcast_ref::<BinaryExpr>() else { return Ok(Transformed::no(part)) };
        let is_and = match binary.op() {
            Operator::And => true,
            Operator::Or => false,
            _ => return Ok(Transformed::no(part)),
        };
        if !can_fail(binary.right())? {
            return Ok(Transformed::no(part));
        }
        let (left, right) = (binary.left().clone(), binary.right().clone());
        Ok(Transformed::yes(Arc::new(ShortCircuit { is_and, sides: [left, right] }) as Arc<dyn PhysicalExpr>))
    })
}

/// `left AND right`, or `left OR right`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ShortCircuit {
    is_and: bool,
    /// The left side and the right side.
    sides: [Arc<dyn PhysicalExpr>; 2],
}

impl ShortCircuit {
    fn keyword(&self) -> &'static str {
        if self.is_and { "AND" } else { "OR" }
    }
}

impl fmt::Display for ShortCircuit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [left, right] = &self.sides;
        write!(f, "({left} {} {right})", self.keyword())
    }
}

impl PhysicalExpr for ShortCircuit {
    fn data_type(&self, _: &Schema) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        let [left, right] = &self.sides;
        Ok(left.nullable(schema)? || right.nullable(schema)?)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let [left, right] = &self.sides;
        let left = left.evaluate(batch)?.into_array(batch.num_rows())?;
        let left = left.as_boolean();
        let is_open = |value: Option<bool>| Some(value != Some(!self.is_and));
        let open: BooleanArray = left.iter().map(is_open).collect();
        if !open.has_true() {
            return Ok(ColumnarValue::Array(Arc::new(left.clone())));
        }
        let right = right.evaluate_selection(batch, &open)?.into_array(batch.num_rows())?;
        let right = right.as_boolean();
        // The right side has no effect where it was not evaluated.
        let combined = if self.is_and { and_kleene(left, right)? } else { or_kleene(left, right)? };
        Ok(ColumnarValue::Array(Arc::new(combined)))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        self.sides.iter().collect()
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        let sides = <[_; 2]>::try_from(children).unwrap_or_else(|_| self.sides.clone());
        Ok(Arc::new(Self { is_and: self.is_and, sides }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        self.sides[0].fmt_sql(f)?;
        write!(f, " {} ", self.keyword())?;
        self.sides[1].fmt_sql(f)?;
        f.write_str(")")
    }
}

/// Returns the projection's expressions with short circuits, if any of them changes.
pub(super) fn add_all_short_circuits(
    expressions: impl Iterator<Item = Arc<dyn PhysicalExpr>>,
) -> Result<Option<Vec<Arc<dyn PhysicalExpr>>>> {
    let mut is_changed = false;
    let changed = expressions.map(|expression| {
        let changed = add_short_circuits(expression)?;
        is_changed |= changed.transformed;
        Ok(changed.data)
    });
    let changed = changed.collect::<Result<Vec<_>>>()?;
    Ok(is_changed.then_some(changed))
}
