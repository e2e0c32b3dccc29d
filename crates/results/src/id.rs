//! The identifier of a stored result.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use tidegate_core::{Error, ErrorKind};
use uuid::Uuid;

/// Identifies a stored result; random, so that it cannot be guessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ResultId(pub Uuid);

impl ResultId {
    pub(crate) fn new() -> Self {
        Self(Uuid::new_v4())
    }

    /// The URI of its manifest.
    pub fn uri(self) -> String {
        format!("tidegate://results/{self}")
    }

    /// The error for callers for which the result does not exist.
    pub fn not_found(self) -> Error {
        not_found_error(self)
    }
}

impl fmt::Display for ResultId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for ResultId {
    type Err = Error;

    /// Parses an id in its canonical form only: other spellings of a UUID would be other addresses of the same result.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let id = text.parse().map(Self).ok().filter(|id: &Self| id.to_string() == text);
        id.ok_or_else(|| not_found_error(text))
    }
}

/// The error for a result that does not exist or belongs to another owner.
pub(crate) fn not_found_error(id: impl fmt::Display) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no stored result {id}"))
}
