//! The hash chain of a log: each line contains the hash of the line before and its own, computed over everything before
//! it in the line. Options of a log have the key of the chain. Without the key nobody can forge a line.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use tidegate_core::ArgumentRedaction;

pub(crate) const GENESIS_HASH: &str = "0000000000000000000000000000000000000000000000000000000000000000";
const BEFORE_HASH: &str = ",\"hash\":\"";
const AFTER_HASH: &str = "\"}";
const HASH_DIGITS: usize = 64;

/// The position of a line in the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainLink {
    /// The number of the line; the first one is 1.
    pub seq: u64,
    /// The hash of the line, 64 hexadecimal digits.
    pub hash: String,
}

impl ChainLink {
    pub(crate) fn genesis() -> Self {
        Self { seq: 0, hash: GENESIS_HASH.to_owned() }
    }
}

/// Chains `line`, a JSON object, to `previous_hash`. Returns the finished line with its line break, and its position.
pub(crate) fn chain_line(mut line: String, before: &ChainLink, key: Option<&AuditKey>) -> (String, ChainLink) {
    line.pop();
    line.push_str(&format!(",\"prev\":\"{}\"", before.hash));
    let hash = compute_hash(line.as_bytes(), key);
    line.push_str(&format!("{BEFORE_HASH}{hash}{AFTER_HASH}\n"));
    (line, ChainLink { seq: before.seq + 1, hash })
}

#[derive(Debug, Deserialize)]
pub(crate) struct ParsedLine {
    seq: u64,
    hash: String,
    #[serde(rename = "prev")]
    pub(crate) previous_hash: String,
    pub(crate) missing_until: Option<u64>,
    pub(crate) mended_bytes: Option<u64>,
    pub(crate) dropped: Option<u64>,
}

impl ParsedLine {
    pub(crate) fn link(&self) -> ChainLink {
        ChainLink { seq: self.seq, hash: self.hash.clone() }
    }
}

/// Parses `line`, without its line break, and checks its hash.
pub(crate) fn parse_line(line: &[u8], key: Option<&AuditKey>) -> Result<ParsedLine, &'static str> {
    let malformed = "is not a line of an audit log";
    let hash_at = line.len().checked_sub(HASH_DIGITS + AFTER_HASH.len()).ok_or(malformed)?;
    let (hashed, rest) =
        line.split_at_checked(hash_at.checked_sub(BEFORE_HASH.len()).ok_or(malformed)?).ok_or(malformed)?;
    let hash = rest.strip_prefix(BEFORE_HASH.as_bytes()).and_then(|rest| rest.strip_suffix(AFTER_HASH.as_bytes()));
    let hash = std::str::from_utf8(hash.ok_or(malformed)?).map_err(|_| malformed)?;
    if compute_hash(hashed, key) != hash {
        return Err(match key {
            Some(_) => "was changed, or written with another key: its hash does not match its content",
            None => "was changed, or written with a key: its hash does not match its content",
        });
    }
    serde_json::from_slice(line).map_err(|_| malformed)
}

pub(crate) fn dropped_count(line: &str) -> Option<u64> {
    serde_json::from_str::<ParsedLine>(line).ok().and_then(|parsed| parsed.dropped)
}

pub(crate) fn compute_hash(text: &[u8], key: Option<&AuditKey>) -> String {
    let Some(key) = key else { return hex::encode(Sha256::digest(text)) };
    // HMAC accepts keys of any length.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key.bytes()) else { return String::new() };
    mac.update(text);
    hex::encode(mac.finalize().into_bytes())
}

/// What happens when lines cannot be written, because the disk is full or slower than the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WhenFull {
    /// Calls wait for a limited time and are then refused. No call runs without its line.
    #[default]
    Block,
    /// Lines are dropped and counted; a later line reports their number.
    Drop,
}

/// Options of an audit log.
#[derive(Debug, Clone)]
pub struct AuditOptions {
    /// The current file. Rotated files are beside it as `.1`, `.2`, …; the head as `.head`, the lock as `.lock`.
    pub file: PathBuf,
    /// What happens when lines cannot be written.
    pub when_full: WhenFull,
    /// Bytes of a file at most.
    pub bytes_max: u64,
    /// Rotated files that are kept.
    pub kept_files: usize,
    /// Which arguments are redacted where their values are logged; `None` logs only their names.
    pub values: Option<ArgumentRedaction>,
    /// The key of the hash chain; `None` for a plain hash.
    pub key: Option<AuditKey>,
    /// How long a call waits for its reservation.
    pub reserve_timeout: Duration,
    /// The time between two attempts after a write failure.
    pub retry_after: Duration,
    /// Lines in the queue at most.
    pub queue_lines_max: usize,
}

impl AuditOptions {
    /// The defaults for a log in `file`.
    pub fn new(file: impl Into<PathBuf>) -> Self {
        Self {
            file: file.into(),
            when_full: WhenFull::default(),
            bytes_max: 100_000_000,
            kept_files: 10,
            values: None,
            key: None,
            reserve_timeout: Duration::from_secs(5),
            retry_after: Duration::from_millis(250),
            queue_lines_max: 8_192,
        }
    }
}

/// The key of a hash chain.
#[derive(Clone)]
pub struct AuditKey(Arc<[u8]>);

impl AuditKey {
    /// Bytes of a key at least; shorter keys can be guessed.
    pub const BYTES_MIN: usize = 16;

    /// The key with these bytes, trimmed of white space; `None` if it is too short.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.trim_ascii();
        (bytes.len() >= Self::BYTES_MIN).then(|| Self(bytes.into()))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

tidegate_core::impl_debug!(AuditKey, "***");
