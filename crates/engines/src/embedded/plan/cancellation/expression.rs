//! An expression that stops when its query is cancelled.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{BooleanArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::common::Result;
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_plan::PhysicalExpr;

use super::super::query_cancellation::QueryCancellation;

#[derive(Debug)]
pub(super) struct CancellableExpr {
    pub(super) inner: Arc<dyn PhysicalExpr>,
    pub(super) cancellation: QueryCancellation,
}

tidegate_pgsql::compare_by!(CancellableExpr { inner });

impl fmt::Display for CancellableExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl PhysicalExpr for CancellableExpr {
    tidegate_pgsql::delegate_to! { inner =>
        fn data_type(&self, schema: &Schema) -> Result<DataType>;
        fn nullable(&self, schema: &Schema) -> Result<bool>;
        fn return_field(&self, schema: &Schema) -> Result<FieldRef>;
        fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        self.cancellation.check_cancelled()?;
        self.inner.evaluate(batch)
    }

    fn evaluate_selection(&self, batch: &RecordBatch, selection: &BooleanArray) -> Result<ColumnarValue> {
        self.cancellation.check_cancelled()?;
        self.inner.evaluate_selection(batch, selection)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.inner]
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        let inner = children.pop().unwrap_or_else(|| self.inner.clone());
        Ok(Arc::new(Self { inner, cancellation: self.cancellation.clone() }))
    }
}
