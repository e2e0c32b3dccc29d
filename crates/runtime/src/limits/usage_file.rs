//! The usage file: today's usage, so that daily limits survive a restart.
//!
//! Names of holders are hashed, so that the file does not reveal the callers.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::meter_table::HolderId;
use super::usage::UsageAmount;

/// The maximum size of the file. Three levels with the maximum number of holders, at a hundred bytes each, need less.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The usage of one day.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct UsageRecord {
    pub(super) day: u64,
    pub(super) principals: BTreeMap<HolderId, UsageAmount>,
    pub(super) tenants: BTreeMap<HolderId, UsageAmount>,
    pub(super) tools: BTreeMap<HolderId, UsageAmount>,
    pub(super) node: UsageAmount,
}

/// The contents of the file: rows, bytes and milliseconds.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct UsageDocument {
    day: u64,
    principals: BTreeMap<String, [u64; 3]>,
    tenants: BTreeMap<String, [u64; 3]>,
    tools: BTreeMap<String, [u64; 3]>,
    node: [u64; 3],
}

/// Reads `file`; `None` if it does not exist.
///
/// # Errors
/// If it cannot be read or is not a usage file.
pub(super) fn read(file: &Path) -> io::Result<Option<UsageRecord>> {
    let found = match fs::metadata(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found?,
    };
    if found.len() > FILE_BYTES_MAX {
        return Err(io::Error::other("the file is too large to be a usage file"));
    }
    let UsageDocument { day, principals, tenants, tools, node } = serde_json::from_slice(&fs::read(file)?)?;
    let of = |written: BTreeMap<String, [u64; 3]>| {
        written.into_iter().filter_map(|(id, taken)| Some((HolderId::parse(&id)?, usage_from_numbers(taken)))).collect()
    };
    let (principals, tenants, tools) = (of(principals), of(tenants), of(tools));
    Ok(Some(UsageRecord { day, principals, tenants, tools, node: usage_from_numbers(node) }))
}

/// Writes `written` into `file` atomically.
///
/// # Errors
/// If the file cannot be written.
pub(crate) fn write(file: &Path, written: &UsageRecord) -> io::Result<()> {
    let of = |taken: &BTreeMap<HolderId, UsageAmount>| {
        taken.iter().map(|(id, taken)| (id.to_hex(), usage_to_numbers(taken))).collect()
    };
    let document = UsageDocument {
        day: written.day,
        principals: of(&written.principals),
        tenants: of(&written.tenants),
        tools: of(&written.tools),
        node: usage_to_numbers(&written.node),
    };
    let mut name = file.as_os_str().to_owned();
    name.push(".new");
    let new = Path::new(&name);
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut opened = OpenOptions::new().write(true).create(true).truncate(true).open(new)?;
    opened.write_all(&serde_json::to_vec(&document)?)?;
    opened.sync_all()?;
    fs::rename(new, file)
}

fn usage_from_numbers([rows, bytes, milliseconds]: [u64; 3]) -> UsageAmount {
    UsageAmount { rows, bytes, time: Duration::from_millis(milliseconds) }
}

fn usage_to_numbers(taken: &UsageAmount) -> [u64; 3] {
    [taken.rows, taken.bytes, u64::try_from(taken.time.as_millis()).unwrap_or(u64::MAX)]
}

impl HolderId {
    fn to_hex(self) -> String {
        format!("{:032x}", u128::from_be_bytes(self.0))
    }

    fn parse(text: &str) -> Option<Self> {
        u128::from_str_radix(text, 16).ok().map(|id| Self(id.to_be_bytes()))
    }
}
