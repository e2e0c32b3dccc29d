//! The usage file: today's usage, so that daily limits survive a restart.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::meter_table::MeterKeyHash;
use super::usage::UsageAmount;

/// The maximum size of the file. Three levels with the maximum number of keys, at a hundred bytes each, need less.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The usage of one day: the contents of the file.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UsageRecord {
    pub(super) day: u64,
    pub(super) principals: BTreeMap<MeterKeyHash, UsageAmount>,
    pub(super) tenants: BTreeMap<MeterKeyHash, UsageAmount>,
    pub(super) tools: BTreeMap<MeterKeyHash, UsageAmount>,
    pub(super) node: UsageAmount,
}

impl UsageRecord {
    pub(super) fn read(file: &Path) -> io::Result<Option<Self>> {
        let metadata = match fs::metadata(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            metadata => metadata?,
        };
        if metadata.len() > FILE_BYTES_MAX {
            return Err(io::Error::other("the file is too large to be a usage file"));
        }
        Ok(Some(serde_json::from_slice(&fs::read(file)?)?))
    }

    pub(super) fn write(&self, file: &Path) -> io::Result<()> {
        let mut name = file.as_os_str().to_owned();
        name.push(".new");
        let new = Path::new(&name);
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut output = OpenOptions::new().write(true).create(true).truncate(true).open(new)?;
        output.write_all(&serde_json::to_vec(self)?)?;
        output.sync_all()?;
        fs::rename(new, file)
    }
}
