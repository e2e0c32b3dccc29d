//! The columns of tables that are sources of logs or metrics: their types, their roles by name, and what is wrong with
//! those that the configuration of a source names.

use tidegate_core::nearest_names;
use tidegate_log_formats::{EntryColumnType, RecognizedRoles};
use tidegate_query::ColumnEntry;

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
