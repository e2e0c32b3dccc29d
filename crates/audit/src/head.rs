//! The head of a log, in a file of its own: how far it reached, so that a log that was cut short is found.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::chain::{Link, hash_of};
use crate::files::{beside, private};
use crate::key::AuditKey;

/// How far a log reached when this was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The number of the oldest line that is kept.
    pub first: u64,
    /// The number of the last line.
    pub seq: u64,
    /// The hash of the last line.
    pub hash: String,
    /// Signs the rest, where the chain has a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mac: Option<String>,
}

impl Head {
    pub(crate) fn new(first: u64, last: &Link, key: Option<&AuditKey>) -> Self {
        let head = Self { first, seq: last.seq, hash: last.hash.clone(), mac: None };
        Self { mac: key.map(|key| head.mac_by(key)), ..head }
    }

    /// The head of `log`; none where there is none.
    ///
    /// # Errors
    /// Of reading; `InvalidData` when it is none, or not signed with `key`.
    pub fn read(log: &Path, key: Option<&AuditKey>) -> io::Result<Option<Self>> {
        let text = match fs::read(beside(log, ".head")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text?,
        };
        let wrong = |why: &str| io::Error::new(io::ErrorKind::InvalidData, format!("the head of the log {why}"));
        let head: Self = serde_json::from_slice(&text).map_err(|_| wrong("cannot be read"))?;
        if let Some(key) = key
            && head.mac.as_ref() != Some(&head.mac_by(key))
        {
            return Err(wrong("was changed, or written with another key"));
        }
        Ok(Some(head))
    }

    /// Writes it beside `log`, whole or not at all.
    pub(crate) fn write(&self, log: &Path) -> io::Result<()> {
        let draft = beside(log, ".head.new");
        let mut file = private(OpenOptions::new().write(true).create(true).truncate(true), &draft)?;
        serde_json::to_writer(&mut file, self)?;
        file.write_all(b"\n")?;
        file.sync_data()?;
        fs::rename(draft, beside(log, ".head"))
    }

    fn mac_by(&self, key: &AuditKey) -> String {
        hash_of(format!("head {} {} {}", self.first, self.seq, self.hash).as_bytes(), Some(key))
    }
}
