//! The usage file: today's usage, so that daily limits survive a restart.
//!
//! Names of holders are hashed, so that the file does not reveal the callers.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::limits::meter_table::HolderId;
use crate::limits::meters::Meters;
use crate::limits::usage::UsageAmount;
use crate::limits::usage_file;

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

/// The usage of this time can be lost in a crash.
const FLUSH_INTERVAL: Duration = Duration::from_secs(10);

/// Writes the usage file until it is stopped.
#[derive(Debug)]
pub(crate) struct UsageFlusher {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl UsageFlusher {
    /// Starts to write the usage of `meters` into `file`.
    pub(crate) fn start(meters: Arc<Meters>, file: PathBuf) -> Self {
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let task = tokio::spawn(async move {
            let mut has_failed = false;
            while !stopped.is_cancelled() {
                let _ = tokio::time::timeout(FLUSH_INTERVAL, stopped.cancelled()).await;
                has_failed = flush(&meters, &file, has_failed).await;
            }
        });
        Self { stop, task }
    }

    /// Writes the file for the last time.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        // The task ends by itself; a panic in it was already reported.
        let _ = self.task.await;
    }
}

/// Returns whether writing failed; only the first failure is logged.
async fn flush(meters: &Meters, file: &std::path::Path, has_failed: bool) -> bool {
    let Some(written) = meters.take_changed_usage() else { return has_failed };
    let path = file.to_owned();
    let done = tokio::task::spawn_blocking(move || usage_file::write(&path, &written)).await;
    let failed = done.map_err(std::io::Error::other).and_then(|written| written).err();
    if let Some(error) = &failed {
        meters.mark_changed();
        if !has_failed {
            tracing::error!(file = %file.display(), %error, "cannot write the usage file");
        }
    }
    failed.is_some()
}
