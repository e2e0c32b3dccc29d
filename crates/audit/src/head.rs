//! The head file of a log. It records how far the log reaches, so that truncation is detected.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::chain::{ChainLink, compute_hash};
use crate::files::{open_private, with_suffix};
use crate::options::AuditKey;

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
