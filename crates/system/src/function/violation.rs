//! What is wrong with a request.

use std::fmt;

/// One problem of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestViolation {
    /// The place, such as `conditions[0][1]` or `sort[0].direction`.
    pub path: String,
    /// What is wrong and what would be right.
    pub message: String,
    /// Valid texts for this place, the most probable first; empty if there are none to choose from.
    pub choices: Vec<String>,
}

impl fmt::Display for RequestViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// All problems of a request, in the order of its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestViolations {
    /// The problems; at least one.
    pub violations: Vec<RequestViolation>,
    /// Further problems that were left out, because there are too many.
    pub omitted: usize,
}

impl fmt::Display for RequestViolations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, violation) in self.violations.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{violation}")?;
        }
        match self.omitted {
            0 => Ok(()),
            omitted => write!(f, "\nand {omitted} more problems"),
        }
    }
}

impl std::error::Error for RequestViolations {}
