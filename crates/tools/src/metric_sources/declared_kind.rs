//! The kind of the metrics of a table: by their names, or by what the table or its rows declare, as those of receivers of
//! telemetry do.

use std::collections::BTreeSet;

use arrow::array::RecordBatch;
use tidegate_query::{AggregateFunction, Selection};
use tidegate_telemetry::metrics::{Labels, MetricKind};

use super::series_rows::text;

/// Ends of names of metrics that are totals, by the conventions of Prometheus.
const COUNTER_SUFFIXES: [&str; 4] = ["_total", "_count", "_sum", "_bucket"];
/// Ends of the names of samples behind that of their family.
const FAMILY_SUFFIXES: [&str; 4] = ["_bucket", "_sum", "_count", "_created"];
const DECLARED_TYPE: &str = "declared_type";

/// Where a table of samples has the kind of its metrics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum DeclaredKind {
    /// Nowhere: only the names of the metrics suggest it.
    #[default]
    Nowhere,
    /// All metrics of the table have this kind.
    Fixed(MetricKind),
    /// In the columns of sums of OpenTelemetry.
    Sum {
        /// The column that is true for sums that only grow. `None`: they all do.
        monotonic: Option<String>,
        /// The column that is `CUMULATIVE` for totals and `DELTA` for increments.
        temporality: String,
    },
    /// In a column with the type of a family of Prometheus.
    Type(String),
}

/// The kind of a metric that nothing declares, by its name.
pub(crate) fn guess_kind(metric: &str) -> MetricKind {
    let is_counter = COUNTER_SUFFIXES.iter().any(|suffix| metric.ends_with(suffix));
    if is_counter { MetricKind::Counter } else { MetricKind::Unknown }
}

impl DeclaredKind {
    /// The kind of `metric`, as far as it is known without rows.
    pub(super) fn without_rows(&self, metric: &str) -> MetricKind {
        match self {
            Self::Fixed(kind) => *kind,
            Self::Nowhere | Self::Sum { .. } | Self::Type(_) => guess_kind(metric),
        }
    }

    /// Whether the kind of a metric can differ from row to row.
    pub(super) fn is_in_rows(&self) -> bool {
        matches!(self, Self::Sum { .. } | Self::Type(_))
    }

    /// The columns whose values must be the same in a group of rows.
    pub(super) fn grouping_columns(&self) -> Vec<&String> {
        match self {
            Self::Sum { monotonic, temporality } => monotonic.iter().chain([temporality]).collect(),
            Self::Nowhere | Self::Fixed(_) | Self::Type(_) => Vec::new(),
        }
    }

    /// What is selected of a group of rows besides the grouping columns. A type may be missing in some of its rows.
    pub(super) fn selection(&self) -> Option<Selection> {
        match self {
            Self::Type(column) => Some(Selection::aggregate(AggregateFunction::Max, column, DECLARED_TYPE)),
            Self::Nowhere | Self::Fixed(_) | Self::Sum { .. } => None,
        }
    }

    /// The kind of `metric` in a group of rows.
    pub(super) fn of_group(&self, metric: &str, batch: &RecordBatch, row: usize) -> MetricKind {
        self.of_values(metric, |column| text(batch, column, row))
    }

    /// The kind of a series of `metric` whose labels contain the grouping columns.
    pub(crate) fn of_series(&self, metric: &str, labels: &Labels) -> MetricKind {
        self.of_values(metric, |column| labels.get(column).map(str::to_owned))
    }

    fn of_values(&self, metric: &str, value: impl Fn(&str) -> Option<String>) -> MetricKind {
        let declared = match self {
            Self::Nowhere | Self::Fixed(_) => None,
            Self::Sum { monotonic, temporality } => {
                let is_true = |column: &String| value(column).as_deref() == Some("true");
                match value(temporality).as_deref() {
                    Some("DELTA") => Some(MetricKind::Delta),
                    Some("CUMULATIVE") if monotonic.as_ref().is_none_or(is_true) => Some(MetricKind::Counter),
                    Some("CUMULATIVE") => Some(MetricKind::Gauge),
                    _ => None,
                }
            }
            Self::Type(_) => {
                let kind = value(DECLARED_TYPE).and_then(|name| MetricKind::from_name(&name));
                let family = FAMILY_SUFFIXES.iter().find_map(|suffix| metric.strip_suffix(suffix)).unwrap_or(metric);
                kind.filter(|kind| *kind != MetricKind::Unknown).map(|kind| kind.of_samples(family, metric))
            }
        };
        declared.unwrap_or_else(|| self.without_rows(metric))
    }
}

/// The kinds that the samples of one metric declare.
#[derive(Debug, Default)]
pub(super) struct SampleKinds(BTreeSet<MetricKind>);

impl SampleKinds {
    pub(super) fn add(&mut self, kind: MetricKind) {
        if kind != MetricKind::Unknown {
            self.0.insert(kind);
        }
    }

    /// The kind of all of them; `None` if increments are mixed with values or totals, which cannot be combined.
    pub(super) fn common(&self) -> Option<MetricKind> {
        let mut kinds = self.0.iter().copied();
        match (kinds.next(), kinds.next()) {
            (None, _) => Some(MetricKind::Unknown),
            (Some(only), None) => Some(only),
            (Some(_), Some(_)) if self.0.contains(&MetricKind::Delta) => None,
            // What only sometimes is a total can go down.
            (Some(_), Some(_)) => Some(MetricKind::Gauge),
        }
    }
}
