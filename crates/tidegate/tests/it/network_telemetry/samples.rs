//! Random samples of counters and gauges, and how nodes share them.

use arrow::array::RecordBatch;
use proptest::prelude::*;

use super::tables::{TestTable, floats, table_rows, texts, times};

/// Metric, site and host of each series.
const SERIES: [(&str, Option<&str>, Option<&str>); 9] = [
    ("requests_total", Some("north"), Some("a")),
    ("requests_total", Some("north"), Some("b")),
    ("requests_total", Some("south"), Some("a")),
    ("requests_total", None, Some("c")),
    ("load", Some("north"), Some("a")),
    ("load", Some("south"), Some("b")),
    ("load", Some("south"), None),
    ("load", None, None),
    ("pressure", Some("south"), Some("b")),
];
/// Positions in the list of series.
pub(super) const REQUESTS: usize = 0;
pub(super) const LOAD_NORTH: usize = 4;
pub(super) const LOAD_SOUTH: usize = 5;
pub(super) const PRESSURE: usize = 8;

/// After so many seconds, the samples are on the next node, if the nodes share them by time.
const SECONDS_ON_NODE: i64 = 400;

/// A row of the table `samples`.
#[derive(Debug, Clone)]
pub(super) struct SampleRow {
    /// The index of the series.
    series: usize,
    /// In seconds from the start. A row without a time is no sample.
    time: Option<i64>,
    value: Option<f64>,
}

impl SampleRow {
    pub(super) fn new(series: usize, time: i64, value: f64) -> Self {
        Self { series, time: Some(time), value: Some(value) }
    }

    /// Loads have two units, other metrics have none.
    fn unit(&self) -> Option<&'static str> {
        let (metric, site, _) = SERIES[self.series];
        (metric == "load").then_some(if site == Some("north") { "W" } else { "kW" })
    }
}

/// The time since the sample before it, the growth or value, and whether a counter begins again.
type Point = (i64, Option<u32>, bool);

fn points() -> impl Strategy<Value = Vec<Point>> {
    let since_previous = prop_oneof![9 => 5..60_i64, 1 => 300..900_i64];
    let point = (since_previous, prop::option::weighted(0.9, 0..2_000_u32), prop::bool::weighted(0.1));
    prop::collection::vec(point, 0..40)
}

/// The rows of all series, each in order of time.
pub(super) fn rows() -> impl Strategy<Value = Vec<SampleRow>> {
    let series = prop::collection::vec(points(), SERIES.len());
    series.prop_map(|series| series.into_iter().enumerate().flat_map(rows_of_series).collect())
}

/// Values are quarters, so that their sums are exact in every order.
fn rows_of_series((series, points): (usize, Vec<Point>)) -> Vec<SampleRow> {
    let is_counter = SERIES[series].0.ends_with("_total");
    let (mut time, mut value) = (0, 0.0);
    let mut rows = vec![SampleRow { series, time: None, value: Some(1.0) }];
    for (since_previous, step, is_reset) in points {
        time += since_previous;
        if let Some(step) = step {
            let base = if is_counter && !is_reset { value } else { 0.0 };
            value = base + f64::from(step) / 4.0;
        }
        rows.push(SampleRow { series, time: Some(time), value: step.map(|_| value) });
    }
    rows
}

/// How the nodes share the rows.
#[derive(Debug, Clone, Copy)]
pub(super) enum Split {
    /// Each series is on one node.
    Series,
    /// Each node has the samples of some times.
    Time,
    /// Neighbouring rows are on different nodes.
    Rows,
}

pub(super) fn splits() -> impl Strategy<Value = Split> {
    prop::sample::select(vec![Split::Series, Split::Time, Split::Rows])
}

/// The table with `rows`, in their order, on `nodes` nodes.
pub(super) fn split_samples(rows: &[SampleRow], nodes: usize, split: Split) -> TestTable {
    let mut parts: Vec<Vec<SampleRow>> = vec![Vec::new(); nodes];
    for (index, row) in rows.iter().enumerate() {
        let number = match split {
            Split::Series => row.series,
            Split::Time => usize::try_from(row.time.unwrap_or(0) / SECONDS_ON_NODE).unwrap(),
            Split::Rows => index,
        };
        parts[number % nodes].push(row.clone());
    }
    samples_on(&parts)
}

/// The table with the rows of each node in their order. The database with all rows has them in order of time.
pub(super) fn samples_on(parts: &[Vec<SampleRow>]) -> TestTable {
    let mut whole = parts.concat();
    whole.sort_by_key(|row| row.time);
    TestTable { name: "samples", whole: batch(&whole), parts: parts.iter().map(|part| batch(part)).collect() }
}

fn batch(rows: &[SampleRow]) -> RecordBatch {
    let series = || rows.iter().map(|row| SERIES[row.series]);
    table_rows([
        ("time", times(rows.iter().map(|row| row.time))),
        ("metric", texts(series().map(|(metric, ..)| Some(metric)))),
        ("unit", texts(rows.iter().map(SampleRow::unit))),
        ("site", texts(series().map(|(_, site, _)| site))),
        ("host", texts(series().map(|(_, _, host)| host))),
        ("value", floats(rows.iter().map(|row| row.value))),
    ])
}
