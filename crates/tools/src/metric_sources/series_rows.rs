//! What is selected of a group of samples besides its labels: the time that it covers, and its units.

use std::collections::BTreeSet;

use arrow::array::{Array, Int64Array, RecordBatch};
use tidegate_query::{AggregateFunction, Selection};
use tidegate_telemetry::logs::{display_value, time_column};
use tidegate_telemetry::metrics::TimeWindow;

use crate::source_columns::{FIRST_TIME, LAST_TIME};

const FIRST_UNIT: &str = "first_unit";
const LAST_UNIT: &str = "last_unit";
/// The maximum number of units of one metric in an answer.
const UNITS_NAMED_MAX: usize = 4;

/// The times from the first to the last sample, for each row of a batch.
pub(super) struct RowTimes {
    first: Option<Int64Array>,
    last: Option<Int64Array>,
}

impl RowTimes {
    pub(super) fn new(batch: &RecordBatch) -> Self {
        let times = |name: &str| batch.column_by_name(name).and_then(|column| time_column(column.as_ref()));
        Self { first: times(FIRST_TIME), last: times(LAST_TIME) }
    }

    pub(super) fn window(&self, row: usize) -> Option<TimeWindow> {
        let bound = |times: &Option<Int64Array>| {
            times.as_ref().filter(|times| row < times.len() && times.is_valid(row)).map(|times| times.value(row))
        };
        let (first, last) = (bound(&self.first)?, bound(&self.last)?);
        Some(TimeWindow::new(first, last.saturating_add(1)))
    }
}

/// The units of a metric.
#[derive(Debug, Default)]
pub(super) struct Units(BTreeSet<String>);

impl Units {
    /// Adds the first and the last unit of a row in the order of texts. They differ if there are several.
    pub(super) fn add(&mut self, batch: &RecordBatch, row: usize) {
        let found = [FIRST_UNIT, LAST_UNIT].into_iter().filter_map(|name| text(batch, name, row));
        self.0.extend(found.filter(|unit| !unit.is_empty()));
    }

    /// Several units are all named, because values of different units cannot be compared.
    pub(super) fn name(&self) -> Option<String> {
        let units: Vec<&str> = self.0.iter().take(UNITS_NAMED_MAX).map(String::as_str).collect();
        (!units.is_empty()).then(|| units.join(", "))
    }
}

/// The first and the last unit of a group of samples.
pub(super) fn unit_bounds(unit: &str) -> Vec<Selection> {
    let aggregate = |function, alias| Selection::aggregate(function, unit, alias);
    vec![aggregate(AggregateFunction::Min, FIRST_UNIT), aggregate(AggregateFunction::Max, LAST_UNIT)]
}

/// A value as text; `None` if there is none.
pub(super) fn text(batch: &RecordBatch, column: &str, row: usize) -> Option<String> {
    let column = batch.column_by_name(column).filter(|column| row < column.len() && column.is_valid(row))?;
    Some(display_value(column.as_ref(), row))
}
