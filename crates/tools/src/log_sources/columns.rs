//! The columns of a log source: which of them are time, message and severity.

use std::fmt;

use tidegate_log_formats::{ENTRY_FILE_ID, ENTRY_OFFSET, ENTRY_TEXT, NORMALIZED_SEVERITY_NUMBER, is_time_name};
use tidegate_query::ColumnEntry;

use super::LogSource;
use crate::source_columns::{ColumnProblem, FieldKind, SourceColumn, recognize_roles};

/// Columns of log files that entries contain only on request.
const HIDDEN_COLUMNS: [&str; 4] = [ENTRY_TEXT, ENTRY_OFFSET, ENTRY_FILE_ID, NORMALIZED_SEVERITY_NUMBER];
/// Columns with the position of an entry.
const POSITION_COLUMNS: [&str; 2] = [ENTRY_FILE_ID, ENTRY_OFFSET];

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

impl RecognizedColumns {
    /// The columns of `source` among `entries`. What the source does not name is recognised by names and types.
    ///
    /// # Errors
    /// Every column that the source names and that does not exist, and a missing time.
    pub(crate) fn recognize(source: &LogSource, entries: Vec<ColumnEntry>) -> Result<Self, Vec<ColumnProblem>> {
        let columns: Vec<SourceColumn> = entries.into_iter().map(SourceColumn::from).collect();
        let mut problems = Vec::new();
        let mut check = |key: String, column: &str| {
            if !columns.iter().any(|known| known.name == column) {
                problems.push(ColumnProblem::unknown(key, column, &source.table, &columns));
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
        let roles = recognize_roles(&columns);
        let name = |index: usize| columns.get(index).map(|column| column.name.clone());
        // SQLite and files without types have times as text.
        let text_time = || {
            let is_time = |column: &&SourceColumn| column.kind == FieldKind::Text && is_time_name(&column.name);
            columns.iter().find(is_time).map(|column| column.name.clone())
        };
        let time = source.time.clone().or_else(|| roles.time.and_then(name)).or_else(text_time);
        let Some(time) = time else {
            problems.push(ColumnProblem::missing("time", "the time of an entry", &source.table, &columns));
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
