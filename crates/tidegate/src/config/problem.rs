//! Problems of a configuration.

use std::fmt;
use std::path::PathBuf;

/// Line and column of a value in its file, both from 1. Of several files, it has the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ValuePosition {
    pub(crate) file: usize,
    pub(crate) line: usize,
    pub(crate) column: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigProblem {
    /// The path of the value (`tools[0].sql`); empty for the whole.
    pub(crate) path: String,
    /// If `None`, the position of the value at `path`.
    pub(crate) position: Option<ValuePosition>,
    /// The file of the position, if the problem has no document.
    pub(crate) file: Option<PathBuf>,
    /// The path of another value that the problem concerns. Its position is given if it is in another file.
    pub(crate) related: Option<Box<str>>,
    pub(crate) message: String,
}

impl ConfigProblem {
    pub(crate) fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), position: None, file: None, related: None, message: message.into() }
    }

    pub(crate) fn at_position(position: ValuePosition, message: impl Into<String>) -> Self {
        Self { position: Some(position), ..Self::new("", message) }
    }

    /// The problem, with the path of a related value.
    #[must_use]
    pub(crate) fn related_to(self, path: impl Into<String>) -> Self {
        Self { related: Some(path.into().into()), ..self }
    }

    /// The problem, with the file of its position, which is one of `files`.
    #[must_use]
    pub(crate) fn in_file(self, files: &[PathBuf]) -> Self {
        let file = files.get(self.position.map_or(0, |position| position.file)).cloned();
        Self { file, ..self }
    }
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}
