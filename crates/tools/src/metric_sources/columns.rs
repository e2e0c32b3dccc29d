//! The columns of a table of samples: which of them are time, metric, value and labels; and the kind of its metrics, by
//! their names, or by what the table or its rows declare, as those of receivers of telemetry do.

use std::collections::BTreeSet;
use std::fmt;

use arrow::array::RecordBatch;
use tidegate_log_formats::is_time_name;
use tidegate_query::{AggregateFunction, ColumnEntry, Selection};
use tidegate_telemetry::metrics::{Labels, MetricKind};

use super::MetricTable;
use super::table::text;
use crate::source_columns::{ColumnProblem, FieldKind, LISTED_COLUMNS_MAX, SourceColumn, recognize_roles};

/// Names of the column with the name of the metric.
const METRIC_NAMES: [&str; 4] = ["metric", "metric_name", "__name__", "name"];
/// Names of the column with the unit of the metric, besides samples in rows.
const UNIT_NAMES: [&str; 3] = ["unit", "metric_unit", "uom"];
/// Names of the column with the value of a sample.
const VALUE_NAMES: [&str; 3] = ["value", "val", "reading"];
/// Columns with numbers that are labels where every other number is a metric, and where no other decimal is a label. Names
/// that end with `_id` are, too. Whole numbers of a column with nulls are often stored as decimals: 200.0.
const NUMERIC_LABEL_NAMES: [&str; 12] = [
    "http_status",
    "http_code",
    "status_code",
    "response_code",
    "shard",
    "partition",
    "replica",
    "rack",
    "port",
    "pid",
    "le",
    "quantile",
];
/// Columns with whole numbers that differ from sample to sample, and so are no labels beside the value of a sample.
const ROW_NUMBER_NAMES: [&str; 10] =
    ["id", "rowid", "row_id", "seq", "sequence", "offset", "entry_offset", "count", "min", "max"];
/// The columns of sums of OpenTelemetry that say whether these are counters.
const IS_MONOTONIC: &str = "is_monotonic";
const TEMPORALITY: &str = "aggregation_temporality";

/// The roles of the columns of a table of samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricColumns {
    pub(crate) time: String,
    pub(crate) time_kind: FieldKind,
    pub(crate) shape: TableShape,
    pub(crate) unit: Option<String>,
    pub(crate) labels: Vec<String>,
    /// The types of the labels that are no text.
    typed_labels: Vec<(String, FieldKind)>,
    /// The columns without a role, if the source does not declare its labels.
    without_role: Vec<String>,
    pub(crate) kind: DeclaredKind,
}

/// Where the names of metrics are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TableShape {
    /// In a column; each row is a sample.
    Narrow { metric: String, value: String },
    /// Each metric is a column.
    Wide { columns: Vec<String> },
}

impl MetricColumns {
    /// The columns of `table` among `entries`. What the source does not name is recognised by names and types.
    ///
    /// # Errors
    /// Every column that the source names and that does not exist, and missing roles.
    pub(crate) fn recognize(table: &MetricTable, entries: Vec<ColumnEntry>) -> Result<Self, Vec<ColumnProblem>> {
        let columns: Vec<SourceColumn> = entries.into_iter().map(SourceColumn::from).collect();
        let mut problems = check_named(table, &columns);
        let Some((time, time_kind)) = find_time(table, &columns) else {
            problems.push(ColumnProblem::missing("time", "the time of a sample", &table.table, &columns));
            return Err(problems);
        };
        let others: Vec<&SourceColumn> = columns.iter().filter(|column| column.name != time).collect();
        let shape = find_shape(table, &others);
        if matches!(&shape, TableShape::Wide { columns } if columns.is_empty()) {
            problems.push(ColumnProblem::missing("value", "the value of a sample", &table.table, &columns));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let unit = find_unit(table, &shape, &others);
        let has_role = |column: &SourceColumn| unit.as_ref() == Some(&column.name) || shape.has(&column.name);
        let (labels, remaining): (Vec<&SourceColumn>, Vec<&SourceColumn>) =
            others.iter().copied().partition(|column| match declares_labels(table) {
                true => table.labels.contains(&column.name),
                false => !has_role(column) && is_evident_label(column, &shape),
            });
        let typed = labels.iter().filter(|column| column.kind != FieldKind::Text);
        let typed_labels = typed.map(|column| (column.name.clone(), column.kind)).collect();
        let without_role = remaining.into_iter().filter(|column| !declares_labels(table) && !has_role(column));
        let without_role = without_role.map(|column| column.name.clone()).collect();
        let labels = labels.iter().map(|column| column.name.clone()).collect();
        let kind = find_kind(table, &others);
        Ok(Self { time, time_kind, shape, unit, labels, typed_labels, without_role, kind })
    }

    /// The type of a label. Members of JSON objects are text.
    pub(crate) fn label_kind(&self, label: &str) -> FieldKind {
        self.typed_labels.iter().find(|(name, _)| name == label).map_or(FieldKind::Text, |(_, kind)| *kind)
    }

    /// What callers should know of the columns without a role, whose values distinguish no series.
    pub(crate) fn note_without_role(&self) -> Option<String> {
        let listed: Vec<&str> = self.without_role.iter().take(LISTED_COLUMNS_MAX).map(String::as_str).collect();
        (!listed.is_empty()).then(|| {
            format!(
                "These columns are no labels: {}. Samples that differ only in them are one series. A column that \
                 distinguishes series must be in labels of the metric source.",
                listed.join(", ")
            )
        })
    }

    /// The column with the name of the metric, unless each metric is a column.
    pub(crate) fn name_column(&self) -> Option<&String> {
        match &self.shape {
            TableShape::Narrow { metric, .. } => Some(metric),
            TableShape::Wide { .. } => None,
        }
    }

    /// The column with the values of `metric`, if the table may have it.
    pub(crate) fn value_column<'a>(&'a self, metric: &'a str) -> Option<&'a str> {
        match &self.shape {
            TableShape::Narrow { value, .. } => Some(value),
            TableShape::Wide { columns } => columns.iter().find(|column| *column == metric).map(String::as_str),
        }
    }

    /// The labels together with the columns that declare the kind of a sample; `None` if no columns do.
    pub(crate) fn labels_with_kind(&self) -> Option<Vec<String>> {
        let declaring = self.kind.grouping_columns();
        let further = declaring.iter().copied().filter(|column| !self.labels.contains(*column));
        (!declaring.is_empty()).then(|| self.labels.iter().chain(further).cloned().collect())
    }
}

impl fmt::Display for MetricColumns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "time {}", self.time)?;
        match &self.shape {
            TableShape::Narrow { metric, value } => write!(f, ", metric {metric}, value {value}")?,
            TableShape::Wide { columns } => write!(f, ", metrics {}", columns.join(" "))?,
        }
        if let Some(unit) = &self.unit {
            write!(f, ", unit {unit}")?;
        }
        let labels = if self.labels.is_empty() { "none".to_owned() } else { self.labels.join(" ") };
        write!(f, ", labels {labels}")?;
        match self.without_role.as_slice() {
            [] => Ok(()),
            columns => write!(f, ", without a role {}", columns.join(" ")),
        }
    }
}

impl TableShape {
    /// Whether a column has the name or the values of metrics.
    fn has(&self, column: &str) -> bool {
        match self {
            Self::Narrow { metric, value } => metric == column || value == column,
            Self::Wide { columns } => columns.iter().any(|name| name == column),
        }
    }
}

fn declares_labels(table: &MetricTable) -> bool {
    !table.labels.is_empty() || !table.json_labels.is_empty()
}

/// Whether the values of a column without another role distinguish series. Beside a column with the value of each sample,
/// whole numbers describe the sample. Decimals, and numbers in a table whose numbers are metrics, do if they have a known
/// name.
fn is_evident_label(column: &SourceColumn, shape: &TableShape) -> bool {
    let is_row_number = |name: &str| {
        let name = name.to_ascii_lowercase();
        ROW_NUMBER_NAMES.contains(&name.as_str()) || name.ends_with("_count")
    };
    match (column.kind, shape) {
        (FieldKind::Integer, TableShape::Narrow { .. }) => !is_row_number(&column.name) && !is_time_name(&column.name),
        (kind, _) => is_text(kind) || is_numeric_label(column),
    }
}

fn is_numeric_label(column: &SourceColumn) -> bool {
    let name = column.name.to_ascii_lowercase();
    column.kind.is_number() && (NUMERIC_LABEL_NAMES.contains(&name.as_str()) || name.ends_with("_id"))
}

fn is_text(kind: FieldKind) -> bool {
    matches!(kind, FieldKind::Text | FieldKind::Boolean)
}

fn check_named(table: &MetricTable, columns: &[SourceColumn]) -> Vec<ColumnProblem> {
    let single = [("time", &table.time), ("metric", &table.metric), ("value", &table.value), ("unit", &table.unit)];
    let named = single.into_iter().filter_map(|(key, column)| Some((key.to_owned(), column.as_ref()?, key == "value")));
    let listed = |key: &'static str, names: &'_ [String]| -> Vec<(String, String)> {
        names.iter().enumerate().map(|(index, name)| (format!("{key}[{index}]"), name.clone())).collect()
    };
    let (metrics, labels) = (listed("columns", &table.columns), listed("labels", &table.labels));
    let named = named
        .chain(metrics.iter().map(|(key, name)| (key.clone(), name, true)))
        .chain(labels.iter().map(|(key, name)| (key.clone(), name, false)));
    let mut problems = Vec::new();
    for (key, name, is_number) in named {
        match columns.iter().find(|column| column.name == *name) {
            None => problems.push(ColumnProblem::unknown(key, name, &table.table, columns)),
            Some(column) if is_number && !is_numeric(column.kind) => {
                let message = format!("the column {name:?} has no numbers");
                problems.push(ColumnProblem { key, message });
            }
            Some(_) => {}
        }
    }
    problems
}

/// Values of untyped columns are checked when they are read.
fn is_numeric(kind: FieldKind) -> bool {
    kind.is_number() || kind == FieldKind::Other
}

fn find_time(table: &MetricTable, columns: &[SourceColumn]) -> Option<(String, FieldKind)> {
    if let Some(name) = &table.time {
        return columns.iter().find(|column| column.name == *name).map(|column| (name.clone(), column.kind));
    }
    let by_role = recognize_roles(columns).time.and_then(|index| columns.get(index));
    let by_name = || columns.iter().find(|column| is_time_name(&column.name));
    let by_type = || columns.iter().find(|column| matches!(column.kind, FieldKind::Moment | FieldKind::LocalTime));
    by_role.or_else(by_name).or_else(by_type).map(|column| (column.name.clone(), column.kind))
}

fn find_shape(table: &MetricTable, columns: &[&SourceColumn]) -> TableShape {
    let find = |names: &[&str], fits: fn(FieldKind) -> bool| {
        let found = names
            .iter()
            .find_map(|name| columns.iter().find(|column| column.name.eq_ignore_ascii_case(name) && fits(column.kind)));
        found.map(|column| column.name.clone())
    };
    let is_wide = !table.columns.is_empty();
    let metric = table.metric.clone().or_else(|| find(&METRIC_NAMES, is_text)).filter(|_| !is_wide);
    let value = table.value.clone().or_else(|| find(&VALUE_NAMES, FieldKind::is_number)).filter(|_| !is_wide);
    match (metric, value) {
        (Some(metric), Some(value)) => TableShape::Narrow { metric, value },
        (_, Some(value)) if table.value.is_some() => TableShape::Wide { columns: vec![value] },
        _ => {
            let is_metric = |column: &&&SourceColumn| match is_wide {
                true => table.columns.contains(&column.name),
                false if declares_labels(table) => column.kind.is_number() && !table.labels.contains(&column.name),
                false => column.kind.is_number() && !is_numeric_label(column),
            };
            TableShape::Wide { columns: columns.iter().filter(is_metric).map(|column| column.name.clone()).collect() }
        }
    }
}

/// The column with the unit. A table with a column for each metric has none, unless it is named.
fn find_unit(table: &MetricTable, shape: &TableShape, columns: &[&SourceColumn]) -> Option<String> {
    if table.has_other_unit || !matches!(shape, TableShape::Narrow { .. }) {
        return table.unit.clone();
    }
    let is_unit = |column: &&&SourceColumn| {
        is_text(column.kind) && UNIT_NAMES.iter().any(|name| column.name.eq_ignore_ascii_case(name))
    };
    table.unit.clone().or_else(|| columns.iter().find(is_unit).map(|column| column.name.clone()))
}

/// What the table declares of the kind of its metrics. Sums of OpenTelemetry are recognised by their columns.
fn find_kind(table: &MetricTable, columns: &[&SourceColumn]) -> DeclaredKind {
    let has = |name: &str, kind: FieldKind| columns.iter().any(|column| column.name == name && column.kind == kind);
    if table.kind == DeclaredKind::Nowhere && has(IS_MONOTONIC, FieldKind::Boolean) && has(TEMPORALITY, FieldKind::Text)
    {
        return DeclaredKind::Sum { monotonic: Some(IS_MONOTONIC.to_owned()), temporality: TEMPORALITY.to_owned() };
    }
    table.kind.clone()
}

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

#[cfg(test)]
mod tests {
    use super::*;

    fn recognize(table: &MetricTable, columns: &[(&str, &str)]) -> String {
        let entries = columns.iter().map(|(name, type_name)| ColumnEntry {
            name: (*name).to_owned(),
            type_name: (*type_name).to_owned(),
            nullable: true,
            ..ColumnEntry::default()
        });
        match MetricColumns::recognize(table, entries.collect()) {
            Ok(columns) => columns.to_string(),
            Err(problems) => {
                problems.into_iter().map(|it| format!("{}: {}", it.key, it.message)).collect::<Vec<_>>().join("\n")
            }
        }
    }

    #[test]
    fn roles_are_recognised_by_names_and_types() {
        let any = MetricTable { table: "t".to_owned(), ..MetricTable::default() };
        let narrow = [("ts", "timestamp"), ("name", "text"), ("host", "text"), ("value", "double precision")];
        assert_eq!(recognize(&any, &narrow), "time ts, metric name, value value, labels host");
        let with_unit = [&narrow[..], &[("Unit", "text")]].concat();
        assert_eq!(recognize(&any, &with_unit), "time ts, metric name, value value, unit Unit, labels host");
        let as_label = MetricTable { labels: vec!["Unit".to_owned()], ..any.clone() };
        assert_eq!(recognize(&as_label, &with_unit), "time ts, metric name, value value, unit Unit, labels Unit");
        let named = MetricTable { unit: Some("host".to_owned()), ..any.clone() };
        assert_eq!(recognize(&named, &narrow), "time ts, metric name, value value, unit host, labels none");
        let wide = [("time", "timestamp"), ("site", "text"), ("cpu", "double precision"), ("ram", "bigint")];
        assert_eq!(recognize(&any, &wide), "time time, metrics cpu ram, labels site");
        let chosen = MetricTable { columns: vec!["cpu".to_owned()], labels: vec!["ram".to_owned()], ..any.clone() };
        assert_eq!(recognize(&chosen, &wide), "time time, metrics cpu, labels ram");
        let one = MetricTable { value: Some("ram".to_owned()), ..any.clone() };
        assert_eq!(recognize(&one, &wide), "time time, metrics ram, labels site, without a role cpu");
    }

    #[test]
    fn numbers_that_distinguish_series_are_labels() {
        let any = MetricTable { table: "t".to_owned(), ..MetricTable::default() };
        let samples = [("ts", "timestamp"), ("metric", "text"), ("value", "double precision")];
        let numbers = [("http_status", "bigint"), ("shard", "integer"), ("id", "bigint"), ("quality", "real")];
        let narrow = [&samples[..], &numbers].concat();
        let roles = "time ts, metric metric, value value";
        assert_eq!(recognize(&any, &narrow), format!("{roles}, labels http_status shard, without a role id quality"));
        let decimals =
            [&samples[..], &[("http_status", "double precision"), ("le", "real"), ("load", "real")]].concat();
        assert_eq!(recognize(&any, &decimals), format!("{roles}, labels http_status le, without a role load"));
        let declared = MetricTable { labels: vec!["quality".to_owned()], ..any.clone() };
        assert_eq!(recognize(&declared, &narrow), format!("{roles}, labels quality"));
        let wide =
            [("time", "timestamp"), ("load", "real"), ("jobs", "bigint"), ("Shard", "bigint"), ("rack_id", "real")];
        assert_eq!(recognize(&any, &wide), "time time, metrics load jobs, labels Shard rack_id");
        let declared = MetricTable { labels: vec!["jobs".to_owned()], ..any.clone() };
        assert_eq!(recognize(&declared, &wide), "time time, metrics load Shard rack_id, labels jobs");
        let chosen = MetricTable { columns: vec!["Shard".to_owned()], ..any };
        assert_eq!(recognize(&chosen, &wide), "time time, metrics Shard, labels rack_id, without a role load jobs");
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        let any = MetricTable { table: "t".to_owned(), ..MetricTable::default() };
        assert_eq!(
            recognize(&any, &[("a", "text"), ("b", "double precision")]),
            "time: no column of the table \"t\" is recognised as the time of a sample; name one of a, b"
        );
        let wrong = MetricTable { unit: Some("unti".to_owned()), ..any.clone() };
        assert_eq!(
            recognize(&wrong, &[("time", "timestamp"), ("metric", "text"), ("value", "bigint"), ("unit", "text")]),
            "unit: there is no column \"unti\" in the table \"t\"; nearest: unit, metric"
        );
        let wrong = MetricTable { value: Some("vale".to_owned()), columns: vec!["host".to_owned()], ..any };
        assert_eq!(
            recognize(&wrong, &[("time", "timestamp"), ("host", "text"), ("value", "bigint")]),
            "value: there is no column \"vale\" in the table \"t\"; nearest: value\n\
             columns[0]: the column \"host\" has no numbers"
        );
    }
}
