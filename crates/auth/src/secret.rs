//! Text that must not be printed, and the digests that are stored instead of it.

use std::fmt;

use aws_lc_rs::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
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

/// A SHA-256 digest.
pub(crate) type Digest = [u8; SHA256_OUTPUT_LEN];

/// The digest of `text`. Keys and tokens are random enough that no slow hash is needed.
pub(crate) fn sha256(text: &str) -> Digest {
    sha256_of(text.as_bytes())
}

/// The digest of `bytes`.
pub(crate) fn sha256_of(bytes: &[u8]) -> Digest {
    let mut hash = Digest::default();
    hash.copy_from_slice(digest(&SHA256, bytes).as_ref());
    hash
}
