//! The daily usage of calls, the end of the day, and the file with today's usage, so that daily limits survive a
//! restart.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use tidegate_core::{DailyLimits, LimitMeasure};

use super::meters::MeterKeyHash;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// An amount of usage. In the usage file it is rows, bytes and milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "[u64; 3]", into = "[u64; 3]")]
pub(crate) struct UsageAmount {
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    pub(crate) time: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct DailyUsage {
    day: u64,
    amount: UsageAmount,
}

#[derive(Clone)]
pub(crate) struct Calendar(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl DailyUsage {
    pub(super) fn new(day: u64, amount: UsageAmount) -> Self {
        Self { day, amount }
    }

    pub(super) fn on_day(&self, day: u64) -> UsageAmount {
        if self.day == day { self.amount } else { UsageAmount::default() }
    }

    pub(super) fn add(&mut self, day: u64, more: UsageAmount) {
        let UsageAmount { rows, bytes, time } = self.on_day(day);
        let amount = UsageAmount {
            rows: rows.saturating_add(more.rows),
            bytes: bytes.saturating_add(more.bytes),
            time: time.saturating_add(more.time),
        };
        *self = Self { day, amount };
    }
}

impl UsageAmount {
    /// The first limit that is used up, with its value.
    pub(super) fn reached_limit(&self, limits: &DailyLimits) -> Option<(LimitMeasure, u64)> {
        self.find_limit(limits, Ordering::is_ge)
    }

    /// The first limit that is exceeded, with its value.
    pub(super) fn exceeded_limit(&self, limits: &DailyLimits) -> Option<(LimitMeasure, u64)> {
        self.find_limit(limits, Ordering::is_gt)
    }

    fn find_limit(&self, limits: &DailyLimits, is_over: fn(Ordering) -> bool) -> Option<(LimitMeasure, u64)> {
        let rows = limits.rows.map(|limit| (LimitMeasure::Rows, limit, self.rows.cmp(&limit)));
        let bytes = limits.bytes.map(|limit| (LimitMeasure::Bytes, limit, self.bytes.cmp(&limit)));
        let time = limits.time.map(|limit| (LimitMeasure::Time, limit.as_secs(), self.time.cmp(&limit)));
        let over = [rows, bytes, time].into_iter().flatten().find(|(_, _, ordering)| is_over(*ordering));
        over.map(|(measure, limit, _)| (measure, limit))
    }
}

impl From<[u64; 3]> for UsageAmount {
    fn from([rows, bytes, milliseconds]: [u64; 3]) -> Self {
        Self { rows, bytes, time: Duration::from_millis(milliseconds) }
    }
}

impl From<UsageAmount> for [u64; 3] {
    fn from(UsageAmount { rows, bytes, time }: UsageAmount) -> Self {
        [rows, bytes, u64::try_from(time.as_millis()).unwrap_or(u64::MAX)]
    }
}

impl Calendar {
    pub(crate) fn new(clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Arc::new(clock))
    }

    fn since_epoch(&self) -> Duration {
        // All times before 1970 count as one day.
        (self.0)().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
    }

    /// The day, counted from 1970-01-01.
    pub(super) fn day(&self) -> u64 {
        self.since_epoch().as_secs() / DAY.as_secs()
    }

    pub(super) fn until_tomorrow(&self) -> Duration {
        let today = Duration::from_secs(self.since_epoch().as_secs() % DAY.as_secs());
        DAY.saturating_sub(today)
    }
}

impl fmt::Debug for Calendar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Calendar({})", self.day())
    }
}

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
