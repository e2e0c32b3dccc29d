//! The result of an edit of a configuration file, for all formats, and the errors of printing or writing it.

use std::path::PathBuf;
use std::{fmt, io};

use serde_json::{Map, Value};

#[derive(Debug, PartialEq, Eq)]
pub(super) enum FileEdit {
    Unchanged,
    Added(String),
    Replaced(String),
}

/// After an error, nothing has changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientConfigError {
    #[error("{name:?} cannot name a server: use at most 64 letters, digits, - and _")]
    Name { name: String },

    #[error("{name:?} cannot name an environment variable: use letters, digits and _")]
    Variable { name: String },

    #[error("the key must be visible ASCII characters without spaces, or no header can carry it")]
    Key,

    #[error("the path {} is not UTF-8, so a configuration file cannot name it", path.display())]
    CommandNotText { path: PathBuf },

    #[error("{client} would replace a part of {part} by a variable's value, because it contains {{ or $")]
    WouldReplace { client: &'static str, part: String },

    #[error(
        "{client} documents no way to take a key from the environment ({documentation}); \
         give the key itself, which then stands in the file"
    )]
    NoVariables { client: &'static str, documentation: &'static str },

    #[error("{client} does not read remote servers from its file; {instead}")]
    NoHttp { client: &'static str, instead: String },

    #[error("{client} has no such configuration file; {instead}")]
    NoFile { client: &'static str, instead: &'static str },

    #[error("cannot tell where the home folder is; set HOME, or name the file")]
    NoHome,

    #[error("{} stays as it is: {refusal}\n\nTo add the server by hand, paste this:\n\n{snippet}", path.display())]
    Refused { path: PathBuf, refusal: EditError, snippet: String },

    #[error("{} changed while it was being edited and stays as it is; try again", path.display())]
    ChangedMeanwhile { path: PathBuf },

    #[error("{} has as many backups as are kept; remove some of its .bak files", path.display())]
    TooManyBackups { path: PathBuf },

    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },

    #[error("cannot write {}, so nothing is changed", path.display())]
    Write { path: PathBuf, source: io::Error },
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
