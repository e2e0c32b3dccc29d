//! Small in-memory tables for the discovery and status tools.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMillisecondArray, UInt64Array,
};
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

pub(crate) fn integer_column(values: impl Iterator<Item = Option<i64>>) -> ArrayRef {
    Arc::new(values.collect::<Int64Array>())
}

pub(crate) fn number_column(values: impl Iterator<Item = Option<f64>>) -> ArrayRef {
    Arc::new(values.collect::<Float64Array>())
}

/// Times in UTC.
pub(crate) fn time_column(values: impl Iterator<Item = Option<SystemTime>>) -> ArrayRef {
    let milliseconds = |time: SystemTime| i64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok();
    let times = values.map(|time| time.and_then(milliseconds));
    Arc::new(times.collect::<TimestampMillisecondArray>().with_timezone("UTC"))
}
