//! What is wrong with a configuration: where, what, and what would be right.

use std::fmt;

/// Where a value stands in its file; both count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SourcePosition {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigProblem {
    /// The value's path in the configuration (`tools[0].sql`); empty for the whole.
    pub(crate) path: String,
    /// Where it stands, if that is known already.
    pub(crate) position: Option<SourcePosition>,
    /// What is wrong, and what would be right.
    pub(crate) message: String,
}

impl ConfigProblem {
    /// A problem of the value at `path`.
    pub(crate) fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), position: None, message: message.into() }
    }

    /// A problem at `place`.
    pub(crate) fn at_position(place: SourcePosition, message: impl Into<String>) -> Self {
        Self { path: String::new(), position: Some(place), message: message.into() }
    }
}

/// Without its file: `path: message`.
impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// The items of the list at `path`, parsed. Each item that `parse` rejects is a problem.
pub(super) fn parse_items<T>(
    items: &[String],
    path: &str,
    problems: &mut Vec<ConfigProblem>,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Vec<T> {
    let mut parsed = Vec::new();
    for (index, item) in items.iter().enumerate() {
        match parse(item) {
            Ok(item) => parsed.push(item),
            Err(message) => problems.push(ConfigProblem::new(format!("{path}[{index}]"), message)),
        }
    }
    parsed
}

/// `value`, unless there are problems.
pub(super) fn checked<T>(value: T, problems: Vec<ConfigProblem>) -> Result<T, Vec<ConfigProblem>> {
    if problems.is_empty() { Ok(value) } else { Err(problems) }
}

/// The value of `result`, if it has one; else its problems are added to `problems`.
pub(super) fn accept<T>(result: Result<T, Vec<ConfigProblem>>, problems: &mut Vec<ConfigProblem>) -> Option<T> {
    result.map_err(|mut wrong| problems.append(&mut wrong)).ok()
}
