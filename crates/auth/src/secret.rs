//! Text that must not be printed, the digests that are stored instead of it, and the format of an API key: `tg_`, its id,
//! `_`, its secret. The current time is injected so that tests need not wait for a key to expire.

use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::rand;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
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

tidegate_core::impl_debug!(Secret, "***");

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The deserializer's own message would quote the value.
        String::deserialize(deserializer).map(Self).map_err(|_| D::Error::custom("a secret must be text"))
    }
}

pub(crate) type Digest = [u8; SHA256_OUTPUT_LEN];

/// The digest of `text`. Keys and tokens are random enough that no slow hash is needed.
pub(crate) fn sha256(text: &str) -> Digest {
    sha256_of(text.as_bytes())
}

pub(crate) fn sha256_of(bytes: &[u8]) -> Digest {
    let mut hash = Digest::default();
    hash.copy_from_slice(digest(&SHA256, bytes).as_ref());
    hash
}

/// The prefix of every key, so that people and secret scanners recognise it.
pub(crate) const KEY_PREFIX: &str = "tg_";
/// Five bits a character, without `_`, which ends the id.
const ID_ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
const ID_CHARS: usize = 8;
const SECRET_BYTES: usize = 32;
const SECRET_CHARS: usize = 43;

pub(crate) struct ParsedKey<'a> {
    /// The lookup id, which is not secret.
    pub(crate) id: &'a str,
    /// The secret, known only to the holder.
    pub(crate) secret: &'a str,
}

impl<'a> ParsedKey<'a> {
    /// Splits `text`; `None` if it does not have the format of a key.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let (id, secret) = text.strip_prefix(KEY_PREFIX)?.split_once('_')?;
        (id.len() == ID_CHARS && secret.len() == SECRET_CHARS).then_some(Self { id, secret })
    }
}

pub(crate) fn format_key(id: &str, secret: &str) -> String {
    format!("{KEY_PREFIX}{id}_{secret}")
}

pub(crate) fn random_id() -> Result<String, Unspecified> {
    let mut bytes = [0; ID_CHARS];
    rand::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| char::from(ID_ALPHABET[usize::from(byte % 32)])).collect())
}

pub(crate) fn random_secret() -> Result<String, Unspecified> {
    let mut bytes = [0; SECRET_BYTES];
    rand::fill(&mut bytes)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// A source of the current time. The default is the system clock.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> DateTime<Utc> + Send + Sync>);

impl Clock {
    /// A clock that calls `now`.
    pub fn new(now: impl Fn() -> DateTime<Utc> + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The current time.
    pub fn now(&self) -> DateTime<Utc> {
        (self.0)()
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new(Utc::now)
    }
}

tidegate_core::impl_debug!(Clock, "Clock");
