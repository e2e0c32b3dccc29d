//! Text that must not be printed.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error};

/// Text that must not be printed: its `Debug` is three stars, and it can neither be displayed nor serialised.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Hides `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself. Whoever calls this answers for where it goes.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The reader's own message would quote what it found instead of text.
        String::deserialize(deserializer).map(Self).map_err(|_| D::Error::custom("a secret must be text"))
    }
}
