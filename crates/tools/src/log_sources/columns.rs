//! The columns of a log source: their types, and which of them are time, message and severity.

use std::fmt;

use tidegate_core::nearest_names;
use tidegate_log_formats::{
    ENTRY_FILE_ID, ENTRY_OFFSET, ENTRY_TEXT, EntryColumnType, NORMALIZED_SEVERITY_NUMBER, is_time_name, recognize_roles,
};
use tidegate_query::ColumnEntry;

use super::LogSource;

/// The maximum number of columns in an error.
const LISTED_COLUMNS_MAX: usize = 40;
/// Columns of log files that entries contain only on request.
const HIDDEN_COLUMNS: [&str; 4] = [ENTRY_TEXT, ENTRY_OFFSET, ENTRY_FILE_ID, NORMALIZED_SEVERITY_NUMBER];
/// Columns with the position of an entry.
const POSITION_COLUMNS: [&str; 2] = [ENTRY_FILE_ID, ENTRY_OFFSET];

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

/// The columns of a log source, with their roles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecognizedColumns {
    /// In the order of entries: those with a role first.
    pub(crate) columns: Vec<SourceColumn>,
    pub(crate) time: String,
    pub(crate) message: Option<String>,
    pub(crate) severity: Option<String>,
    /// The columns with the position of an entry, also if callers do not see them.
    pub(crate) positions: Vec<&'static str>,
}

/// A column of a log source that does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogColumnProblem {
    /// The key of the source, such as `time` or `fields[1]`.
    pub key: String,
    /// What is wrong.
    pub message: String,
}

impl FieldKind {
    pub(crate) fn from_type_name(type_name: &str) -> Self {
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

    pub(crate) fn entry_type(self) -> EntryColumnType {
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

impl RecognizedColumns {
    /// The columns of `source` among `entries`. What the source does not name is recognised by names and types.
    ///
    /// # Errors
    /// Every column that the source names and that does not exist, and a missing time.
    pub(crate) fn recognize(source: &LogSource, entries: Vec<ColumnEntry>) -> Result<Self, Vec<LogColumnProblem>> {
        let columns: Vec<SourceColumn> = entries
            .into_iter()
            .map(|entry| SourceColumn {
                kind: FieldKind::from_type_name(&entry.type_name),
                name: entry.name,
                type_name: entry.type_name,
            })
            .collect();
        let mut problems = Vec::new();
        let mut check = |key: String, column: &str| {
            if !columns.iter().any(|known| known.name == column) {
                problems.push(LogColumnProblem { key, message: unknown_column(column, source, &columns) });
            }
        };
        for (key, column) in [("time", &source.time), ("message", &source.message), ("severity", &source.severity)] {
            if let Some(column) = column {
                check(key.to_owned(), column);
            }
        }
        for (index, column) in source.fields.iter().enumerate() {
            check(format!("fields[{index}]"), column);
        }
        let typed: Vec<(&str, EntryColumnType)> =
            columns.iter().map(|column| (column.name.as_str(), column.kind.entry_type())).collect();
        let roles = recognize_roles(&typed);
        let name = |index: usize| columns.get(index).map(|column| column.name.clone());
        // SQLite and files without types have times as text.
        let text_time = || {
            let is_time = |column: &&SourceColumn| column.kind == FieldKind::Text && is_time_name(&column.name);
            columns.iter().find(is_time).map(|column| column.name.clone())
        };
        let time = source.time.clone().or_else(|| roles.time.and_then(name)).or_else(text_time);
        let Some(time) = time else {
            let listed: Vec<&str> =
                columns.iter().take(LISTED_COLUMNS_MAX).map(|column| column.name.as_str()).collect();
            let message = format!(
                "no column of the table {:?} is recognised as the time of an entry; name one of {}",
                source.table,
                listed.join(", ")
            );
            problems.push(LogColumnProblem { key: "time".to_owned(), message });
            return Err(problems);
        };
        if !problems.is_empty() {
            return Err(problems);
        }
        let of_file = || columns.iter().find(|column| column.name == ENTRY_TEXT).map(|column| column.name.clone());
        let message = source.message.clone().or_else(|| roles.message.and_then(name)).or_else(of_file);
        let severity = source.severity.clone().or_else(|| roles.severity.and_then(name));
        let is_there = |name: &&str| columns.iter().any(|column| column.name == *name);
        let positions = POSITION_COLUMNS.into_iter().filter(is_there).collect();
        let recognized = Self { columns, time, message, severity, positions };
        Ok(recognized.with_roles_first(&source.fields))
    }

    /// Puts columns with a role first, and removes those that are not in `fields`, unless it is empty.
    fn with_roles_first(mut self, fields: &[String]) -> Self {
        let roles = [Some(self.time.clone()), self.severity.clone(), self.message.clone()];
        let place = |column: &SourceColumn| {
            let role = roles.iter().position(|role| role.as_deref() == Some(column.name.as_str()));
            role.unwrap_or(roles.len())
        };
        self.columns.retain(|column| fields.is_empty() || place(column) < roles.len() || fields.contains(&column.name));
        self.columns.sort_by_key(place);
        self
    }

    /// The name of the role that a column has.
    pub(crate) fn role(&self, column: &str) -> Option<&'static str> {
        match column {
            column if column == self.time => Some("time"),
            column if Some(column) == self.message.as_deref() => Some("message"),
            column if Some(column) == self.severity.as_deref() => Some("severity"),
            _ => None,
        }
    }

    /// Whether entries contain a column only on request.
    pub(crate) fn is_hidden(&self, column: &str) -> bool {
        HIDDEN_COLUMNS.contains(&column) && self.message.as_deref() != Some(column)
    }
}

impl fmt::Display for RecognizedColumns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let role = |column: &Option<String>| column.as_deref().unwrap_or("none").to_owned();
        write!(f, "time {}, message {}, severity {}", self.time, role(&self.message), role(&self.severity))?;
        let others = self.columns.iter().filter(|column| self.role(&column.name).is_none()).count();
        write!(f, ", {others} further fields")
    }
}

fn unknown_column(column: &str, source: &LogSource, columns: &[SourceColumn]) -> String {
    let names = || columns.iter().map(|column| column.name.as_str());
    let near = nearest_names(column, names());
    let advice = match near.is_empty() {
        true => format!("its columns are {}", names().take(LISTED_COLUMNS_MAX).collect::<Vec<_>>().join(", ")),
        false => format!("nearest: {}", near.join(", ")),
    };
    format!("there is no column {column:?} in the table {:?}; {advice}", source.table)
}
