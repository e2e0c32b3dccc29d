//! The tables of log and metric sources: the types of their columns, their roles by name, and what is wrong with those
//! that the configuration of a source names; whether a table exists now, because some come with their first rows; and
//! bounds of time as databases compare them, to the microsecond, as PostgreSQL has times.

use std::fmt;
use std::sync::Arc;

use tidegate_core::nearest_names;
use tidegate_log_formats::{EntryColumnType, RecognizedRoles};
use tidegate_query::{AggregateFunction, ColumnEntry, ComparisonOperator, Operand, QueryCondition, Selection};
use tidegate_sql::{Parameter, SqlDialect};
use tidegate_telemetry::logs::{NO_TIME, TimeRange, format_time};

/// The maximum number of columns in an error.
pub(crate) const LISTED_COLUMNS_MAX: usize = 40;

/// What the values of a column are, as far as their type defines it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldKind {
    Text,
    Integer,
    Float,
    Boolean,
    /// A timestamp with a time zone.
    Moment,
    /// A timestamp without a time zone, which is UTC.
    LocalTime,
    Date,
    Other,
}

/// A column of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SourceColumn {
    pub(crate) name: String,
    pub(crate) type_name: String,
    pub(crate) kind: FieldKind,
}

/// A column that a source needs or names, and that its table does not have, or has with another type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnProblem {
    /// The key of the source, such as `time` or `labels[1]`.
    pub key: String,
    /// What is wrong.
    pub message: String,
}

impl FieldKind {
    fn from_type_name(type_name: &str) -> Self {
        let name = type_name.to_ascii_lowercase();
        let has = |part: &str| name.contains(part);
        if name.ends_with("[]") || has("interval") || has("point") || has("struct") || has("map") {
            Self::Other
        } else if has("timestamp") || has("datetime") {
            if has("with time zone") || has("timestamptz") { Self::Moment } else { Self::LocalTime }
        } else if name.starts_with("date") {
            Self::Date
        } else if has("int") || has("serial") {
            Self::Integer
        } else if ["real", "double", "float", "numeric", "decimal"].into_iter().any(has) {
            Self::Float
        } else if has("bool") {
            Self::Boolean
        } else if name.is_empty() || name == "any" || ["char", "text", "string", "clob", "utf8"].into_iter().any(has) {
            Self::Text
        } else {
            Self::Other
        }
    }

    pub(crate) fn is_number(self) -> bool {
        matches!(self, Self::Integer | Self::Float)
    }

    fn entry_type(self) -> EntryColumnType {
        match self {
            Self::Text => EntryColumnType::Text,
            Self::Integer => EntryColumnType::Integer,
            Self::Float => EntryColumnType::Float,
            Self::Moment | Self::LocalTime | Self::Date => EntryColumnType::Timestamp,
            // Has none of the roles.
            Self::Boolean | Self::Other => EntryColumnType::Boolean,
        }
    }
}

impl From<ColumnEntry> for SourceColumn {
    fn from(entry: ColumnEntry) -> Self {
        Self { kind: FieldKind::from_type_name(&entry.type_name), name: entry.name, type_name: entry.type_name }
    }
}

impl ColumnProblem {
    /// The column `name`, which `table` does not have.
    pub(crate) fn unknown(key: String, name: &str, table: &str, columns: &[SourceColumn]) -> Self {
        let near = nearest_names(name, columns.iter().map(|column| column.name.as_str()));
        let advice = match near.is_empty() {
            true => format!("its columns are {}", listed(columns)),
            false => format!("nearest: {}", near.join(", ")),
        };
        Self { key, message: format!("there is no column {name:?} in the table {table:?}; {advice}") }
    }

    /// A role that no column of `table` has.
    pub(crate) fn missing(key: &str, role: &str, table: &str, columns: &[SourceColumn]) -> Self {
        let message =
            format!("no column of the table {table:?} is recognised as {role}; name one of {}", listed(columns));
        Self { key: key.to_owned(), message }
    }

    /// The messages of all `problems`.
    pub(crate) fn join(problems: Vec<Self>) -> String {
        problems.into_iter().map(|problem| problem.message).collect::<Vec<_>>().join("; ")
    }
}

/// The roles that columns have by their names and types.
pub(crate) fn recognize_roles(columns: &[SourceColumn]) -> RecognizedRoles {
    let typed: Vec<(&str, EntryColumnType)> =
        columns.iter().map(|column| (column.name.as_str(), column.kind.entry_type())).collect();
    tidegate_log_formats::recognize_roles(&typed)
}

fn listed(columns: &[SourceColumn]) -> String {
    let names: Vec<&str> = columns.iter().take(LISTED_COLUMNS_MAX).map(|column| column.name.as_str()).collect();
    names.join(", ")
}

/// Whether a table exists. The default is a table that always does, as far as the node knows.
#[derive(Clone, Default)]
pub struct TablePresence(Option<Arc<dyn Fn() -> bool + Send + Sync>>);

impl TablePresence {
    /// A table that exists while `check` returns true. It is called for each list of tools, so that it must be fast.
    pub fn new(check: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(check)))
    }

    /// Whether the table exists now.
    pub fn exists(&self) -> bool {
        self.0.as_ref().is_none_or(|check| check())
    }
}

impl fmt::Debug for TablePresence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TablePresence").field(&self.exists()).finish()
    }
}

impl PartialEq for TablePresence {
    /// Whether both have the same check.
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

impl Eq for TablePresence {}

pub(crate) const NANOS_PER_MICROSECOND: i64 = 1_000;
/// The columns of [`first_and_last`].
pub(crate) const FIRST_TIME: &str = "first_time";
pub(crate) const LAST_TIME: &str = "last_time";

/// Selects the first and the last time of `column`.
pub(crate) fn first_and_last(column: &str) -> [Selection; 2] {
    let aggregate = |function, alias| Selection::aggregate(function, column, alias);
    [aggregate(AggregateFunction::Min, FIRST_TIME), aggregate(AggregateFunction::Max, LAST_TIME)]
}

/// The last whole microsecond that is not after `time`.
pub(crate) fn floor_microseconds(time: i64) -> i64 {
    time.saturating_sub(time.rem_euclid(NANOS_PER_MICROSECOND))
}

/// The first whole microsecond that is not before `time`.
pub(crate) fn ceil_microseconds(time: i64) -> i64 {
    floor_microseconds(time.saturating_add(NANOS_PER_MICROSECOND - 1))
}

/// The bounds of `range` as conditions of `column`; none where the database does not compare a column of this kind as a
/// time. Rows just outside of the range may meet them.
pub(crate) fn time_conditions(
    column: &str,
    kind: FieldKind,
    dialect: SqlDialect,
    range: TimeRange,
) -> impl Iterator<Item = QueryCondition> {
    let has_times = dialect.has_typed_columns() && matches!(kind, FieldKind::Moment | FieldKind::LocalTime);
    let is_time = |time: &i64| *time > NO_TIME && *time < i64::MAX - NANOS_PER_MICROSECOND;
    let start = range.start.map(floor_microseconds).filter(is_time);
    let end = range.end.filter(is_time).map(ceil_microseconds);
    let bounds = [(ComparisonOperator::GreaterOrEqual, start), (ComparisonOperator::Less, end)];
    bounds.into_iter().filter(move |_| has_times).filter_map(move |(operator, bound)| {
        let text = format_time(bound?);
        let text = if kind == FieldKind::LocalTime { text.trim_end_matches('Z').to_owned() } else { text };
        Some(QueryCondition::compare(column, operator, Operand::One(Parameter::Text(text))))
    })
}
