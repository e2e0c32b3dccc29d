//! The result of an edit of a configuration file, for all formats.

use std::fmt;

use serde_json::{Map, Value};

#[derive(Debug, PartialEq, Eq)]
pub(super) enum FileEdit {
    Unchanged,
    Added(String),
    Replaced(String),
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EditError {
    #[error("it does not parse at {position}: {message}")]
    Syntax { position: EditPosition, message: String },

    #[error("it is not text in UTF-8")]
    NotText,

    #[error("it is larger than {bytes_max} bytes, which no configuration is")]
    TooLarge { bytes_max: u64 },

    #[error("{what} in it is not a table of settings")]
    NotATable { what: String },

    #[error("the entry {name:?} in it holds comments that replacing it would remove")]
    Comments { name: String },

    #[error("the edit would have changed more than the entry {name:?}")]
    WouldChangeMore { name: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EditPosition {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl EditPosition {
    pub(super) fn from_offset(text: &str, offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self { line: before.matches('\n').count() + 1, column: before[line_start..].chars().count() + 1 }
    }
}

impl fmt::Display for EditPosition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {}, column {}", self.line, self.column)
    }
}

pub(super) fn check_only_entry_differs(
    mut before: Value,
    after: &Value,
    section: &str,
    name: &str,
    entry: &Map<String, Value>,
) -> Result<(), EditError> {
    let would_change_more = || EditError::WouldChangeMore { name: name.to_owned() };
    let root = before.as_object_mut().ok_or_else(would_change_more)?;
    let servers = root.entry(section).or_insert_with(|| Value::Object(Map::new()));
    servers.as_object_mut().ok_or_else(would_change_more)?.insert(name.to_owned(), Value::Object(entry.clone()));
    if before == *after { Ok(()) } else { Err(would_change_more()) }
}
