//! Small in-memory tables for the discovery and status tools.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch, StringArray, UInt64Array};
use tidegate_core::Error;
use tidegate_query::QueryRows;

#[derive(Default)]
pub(crate) struct TableBuilder(Vec<(&'static str, ArrayRef)>);

impl TableBuilder {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn with_column(mut self, name: &'static str, values: ArrayRef) -> Self {
        self.0.push((name, values));
        self
    }

    pub(crate) fn into_rows(self) -> Result<QueryRows, Error> {
        let columns = self.0.into_iter().map(|(name, values)| (name, values, true));
        RecordBatch::try_from_iter_with_nullable(columns)
            .map(QueryRows::from_batch)
            .map_err(|error| Error::internal(format!("a built-in table is malformed: {error}")))
    }
}

pub(crate) fn text_column(values: impl Iterator<Item = Option<String>>) -> ArrayRef {
    Arc::new(values.collect::<StringArray>())
}

pub(crate) fn count_column(values: impl Iterator<Item = Option<u64>>) -> ArrayRef {
    Arc::new(values.collect::<UInt64Array>())
}

pub(crate) fn boolean_column(values: impl Iterator<Item = bool>) -> ArrayRef {
    Arc::new(values.map(Some).collect::<BooleanArray>())
}
