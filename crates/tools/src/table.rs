//! Small tables in memory, as the discovery and status tools answer them.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch, StringArray, UInt64Array};
use tidegate_core::Error;
use tidegate_query::Rows;

/// A table that is put together column by column.
#[derive(Default)]
pub(crate) struct Table(Vec<(&'static str, ArrayRef)>);

impl Table {
    /// A table without columns.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a column.
    pub(crate) fn column(mut self, name: &'static str, values: ArrayRef) -> Self {
        self.0.push((name, values));
        self
    }

    /// The finished table.
    pub(crate) fn rows(self) -> Result<Rows, Error> {
        let columns = self.0.into_iter().map(|(name, values)| (name, values, true));
        RecordBatch::try_from_iter_with_nullable(columns)
            .map(Rows::of_batch)
            .map_err(|error| Error::internal(format!("a built-in table is malformed: {error}")))
    }
}

/// A column of texts.
pub(crate) fn text(values: impl Iterator<Item = Option<String>>) -> ArrayRef {
    Arc::new(values.collect::<StringArray>())
}

/// A column of counts.
pub(crate) fn count(values: impl Iterator<Item = Option<u64>>) -> ArrayRef {
    Arc::new(values.collect::<UInt64Array>())
}

/// A column of truths.
pub(crate) fn truth(values: impl Iterator<Item = bool>) -> ArrayRef {
    Arc::new(values.map(Some).collect::<BooleanArray>())
}
