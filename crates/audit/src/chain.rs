//! The hash chain of a log: each line contains the hash of the line before and its own, computed over everything before
//! it in the line. The head file records how far the log reaches, so that truncation is detected.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::{fs, io};

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::log::AuditKey;
use crate::sink::{open_private, with_suffix};

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

fn compute_hash(text: &[u8], key: Option<&AuditKey>) -> String {
    let Some(key) = key else { return hex::encode(Sha256::digest(text)) };
    // HMAC accepts keys of any length.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key.bytes()) else { return String::new() };
    mac.update(text);
    hex::encode(mac.finalize().into_bytes())
}

/// How far a log reached when the head was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogHead {
    /// The number of the oldest kept line.
    pub first: u64,
    /// The number of the last line.
    pub seq: u64,
    /// The hash of the last line.
    pub hash: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mac: Option<String>,
}

impl LogHead {
    pub(crate) fn new(first: u64, last: &ChainLink, key: Option<&AuditKey>) -> Self {
        let head = Self { first, seq: last.seq, hash: last.hash.clone(), mac: None };
        Self { mac: key.map(|key| head.compute_mac(key)), ..head }
    }

    /// The head of `log`; `None` if there is no head file.
    ///
    /// # Errors
    /// Read errors; `InvalidData` when the file is malformed or not signed with `key`.
    pub fn read(log: &Path, key: Option<&AuditKey>) -> io::Result<Option<Self>> {
        let text = match fs::read(with_suffix(log, ".head")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text?,
        };
        let invalid = |problem| io::Error::new(io::ErrorKind::InvalidData, format!("the head of the log {problem}"));
        let head: Self = serde_json::from_slice(&text).map_err(|_| invalid("cannot be read"))?;
        if let Some(key) = key
            && head.mac.as_ref() != Some(&head.compute_mac(key))
        {
            return Err(invalid("was changed, or written with another key"));
        }
        Ok(Some(head))
    }

    /// Writes the head beside `log`, atomically.
    pub(crate) fn write(&self, log: &Path) -> io::Result<()> {
        let draft = with_suffix(log, ".head.new");
        let mut file = open_private(OpenOptions::new().write(true).create(true).truncate(true), &draft)?;
        serde_json::to_writer(&mut file, self)?;
        file.write_all(b"\n")?;
        file.sync_data()?;
        fs::rename(draft, with_suffix(log, ".head"))
    }

    fn compute_mac(&self, key: &AuditKey) -> String {
        compute_hash(format!("head {} {} {}", self.first, self.seq, self.hash).as_bytes(), Some(key))
    }
}
