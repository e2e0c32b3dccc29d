//! Statements over one source, and their rows in memory.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use futures::StreamExt;
use tidegate_core::{Error, ErrorKind};
use tidegate_query::{AggregateFunction, GroupKey, NamedExpression, QuerySpec, Selection, batch_bytes};
use tidegate_telemetry::logs::time_column;

use super::ROWS;
use crate::log_tools::scan::SourceSearch;
use crate::typed_rows::{MixedNumbers, open_typed_rows};

/// The maximum size of the rows of one statement.
const BYTES_MAX: usize = 32 * 1024 * 1024;

/// Why a database does not count the rows of a source. They are scanned instead.
pub(super) enum Obstacle {
    /// The rows cannot be counted exactly, or not in time.
    NotCountable,
    /// The call ended.
    Ended(Error),
}

impl SourceSearch<'_> {
    /// The rows of `spec`.
    pub(super) async fn read(&self, spec: &QuerySpec) -> Result<Vec<RecordBatch>, Obstacle> {
        match tokio::time::timeout_at(self.deadline, self.read_all(spec)).await {
            Ok(Ok(Some(batches))) => Ok(batches),
            // The scan reports what is wrong with the source.
            Ok(Err(error)) if error.kind() == ErrorKind::Cancelled => Err(Obstacle::Ended(error)),
            Ok(Err(_) | Ok(None)) | Err(_) => Err(Obstacle::NotCountable),
        }
    }

    /// `None` if the rows exceed the maximum size.
    async fn read_all(&self, spec: &QuerySpec) -> Result<Option<Vec<RecordBatch>>, Error> {
        let search = self.search;
        let mut rows =
            open_typed_rows(&search.context.node, &*self.source.database, spec, search.job, MixedNumbers::Text).await?;
        let (mut batches, mut bytes) = (Vec::new(), 0);
        while let Some(batch) = rows.next().await.transpose()? {
            bytes += batch_bytes(&batch);
            if bytes > BYTES_MAX {
                return Ok(None);
            }
            batches.push(batch);
        }
        Ok(Some(batches))
    }
}

/// A column of the answer that is an expression.
pub(super) fn expression(text: impl Into<String>, alias: &str) -> Selection {
    Selection::Expression(named(text, alias))
}

/// A key of groups, which `select` names by its alias.
pub(super) fn group_key(text: impl Into<String>, alias: &str) -> GroupKey {
    GroupKey::Expression(named(text, alias))
}

fn named(text: impl Into<String>, alias: &str) -> NamedExpression {
    NamedExpression { text: text.into(), alias: Some(alias.to_owned()) }
}

/// The number of rows.
pub(super) fn count_rows() -> Selection {
    Selection::Aggregate {
        function: AggregateFunction::Count,
        column: None,
        distinct: false,
        alias: Some(ROWS.to_owned()),
    }
}

/// A column of a batch with counts.
pub(super) fn counts(batch: &RecordBatch, name: &str) -> Option<Vec<u64>> {
    let numbers = cast(batch.column_by_name(name)?, &DataType::Int64).ok()?;
    let numbers = numbers.as_primitive::<Int64Type>();
    numbers.iter().map(|number| number.map_or(Some(0), |number| u64::try_from(number).ok())).collect()
}

/// A column of a batch with times in nanoseconds UTC; `None` if a value is no time.
pub(super) fn times(batch: &RecordBatch, name: &str) -> Option<Vec<Option<i64>>> {
    let values = batch.column_by_name(name)?;
    if values.null_count() == values.len() {
        return Some(vec![None; values.len()]);
    }
    let times = time_column(values.as_ref())?;
    (times.null_count() == values.null_count()).then(|| times.iter().collect())
}
