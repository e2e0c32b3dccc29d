//! The name of a stored result.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use tidegate_core::{Error, ErrorKind};
use uuid::Uuid;

/// Names a stored result; unguessable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ResultId(pub Uuid);

impl ResultId {
    pub(super) fn new() -> Self {
        Self(Uuid::new_v4())
    }

    /// The URI that its manifest is read by.
    pub fn uri(self) -> String {
        format!("tidegate://results/{self}")
    }

    /// What is said to those for whom there is no such result.
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

    /// Reads an id as it is written: other spellings of a UUID would be other addresses of the same result.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let id = text.parse().map(Self).ok().filter(|id: &Self| id.to_string() == text);
        id.ok_or_else(|| not_found_error(text))
    }
}

/// What is said of a result that does not exist, or belongs to somebody else.
pub(super) fn not_found_error(id: impl fmt::Display) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no stored result {id}"))
}
