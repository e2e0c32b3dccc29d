//! What is wrong with a configuration: where, what, and what would be right.

use std::fmt::{self, Write as _};
use std::path::Path;

use super::document::{Document, Place};

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// The value's path in the configuration (`tools[0].sql`); empty for the whole.
    pub(crate) path: String,
    /// Where it stands, if that is known already.
    pub(crate) place: Option<Place>,
    /// What is wrong, and what would be right.
    pub(crate) message: String,
}

impl Problem {
    /// A problem of the value at `path`.
    pub(crate) fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), place: None, message: message.into() }
    }

    /// A problem at `place`.
    pub(crate) fn at(place: Place, message: impl Into<String>) -> Self {
        Self { path: String::new(), place: Some(place), message: message.into() }
    }
}

/// Without its file: `path: message`.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// `file:line:column: path: message`, one problem after the other in the order of the file.
pub(crate) fn report(problems: &[Problem], file: &Path, document: Option<&Document>) -> String {
    let place = |problem: &Problem| problem.place.or_else(|| document?.place(&problem.path));
    let mut sorted: Vec<&Problem> = problems.iter().collect();
    sorted.sort_by_key(|problem| place(problem));
    let mut text = String::new();
    for problem in sorted {
        let _ = write!(text, "{}", file.display());
        if let Some(Place { line, column }) = place(problem) {
            let _ = write!(text, ":{line}:{column}");
        }
        // A name may hold any character; a line stays one.
        let path = problem.path.replace('\n', "\\n").replace('\r', "\\r");
        let path = if path.is_empty() { path } else { format!("{path}: ") };
        let message = document.map_or_else(|| problem.message.clone(), |document| document.told(&problem.message));
        // A message of several lines stays together.
        let _ = writeln!(text, ": {path}{}", message.replace('\n', "\n    "));
    }
    text
}
