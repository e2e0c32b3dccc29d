//! Text that must not be printed.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error};

/// Text that must not be printed. Its `Debug` is `***`, and it implements neither `Display` nor `Serialize`.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Wraps `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself. The caller is responsible for where it goes.
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
        // The deserializer's own message would quote the value.
        String::deserialize(deserializer).map(Self).map_err(|_| D::Error::custom("a secret must be text"))
    }
}
