//! The daily usage of calls, and the end of the day.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tidegate_core::{DailyLimits, LimitMeasure};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// An amount of usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct UsageAmount {
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    pub(crate) time: Duration,
}

/// The usage of one holder on the day that was counted last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct DailyUsage {
    day: u64,
    amount: UsageAmount,
}

/// Determines the current day in UTC.
#[derive(Clone)]
pub(crate) struct Calendar(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl DailyUsage {
    pub(super) fn new(day: u64, amount: UsageAmount) -> Self {
        Self { day, amount }
    }

    /// The usage on `day`.
    pub(super) fn on_day(&self, day: u64) -> UsageAmount {
        if self.day == day { self.amount } else { UsageAmount::default() }
    }

    /// Adds usage on `day`.
    pub(super) fn add(&mut self, day: u64, more: UsageAmount) {
        let UsageAmount { rows, bytes, time } = self.on_day(day);
        let taken = UsageAmount {
            rows: rows.saturating_add(more.rows),
            bytes: bytes.saturating_add(more.bytes),
            time: time.saturating_add(more.time),
        };
        *self = Self { day, amount: taken };
    }
}

impl UsageAmount {
    /// The first limit of `bounds` that is used up, with its value.
    pub(super) fn reached_limit(&self, bounds: &DailyLimits) -> Option<(LimitMeasure, u64)> {
        self.find_limit(bounds, |taken, bound| taken >= bound)
    }

    /// The first limit of `bounds` that is exceeded, with its value.
    pub(super) fn exceeded_limit(&self, bounds: &DailyLimits) -> Option<(LimitMeasure, u64)> {
        self.find_limit(bounds, |taken, bound| taken > bound)
    }

    fn find_limit(&self, bounds: &DailyLimits, is_over: impl Fn(u128, u128) -> bool) -> Option<(LimitMeasure, u64)> {
        let rows = bounds.rows.map(|bound| (LimitMeasure::Rows, bound, is_over(self.rows.into(), bound.into())));
        let bytes = bounds.bytes.map(|bound| (LimitMeasure::Bytes, bound, is_over(self.bytes.into(), bound.into())));
        let time = bounds
            .time
            .map(|bound| (LimitMeasure::Time, bound.as_secs(), is_over(self.time.as_nanos(), bound.as_nanos())));
        let over = [rows, bytes, time].into_iter().flatten().find(|(_, _, is_over)| *is_over);
        over.map(|(measure, bound, _)| (measure, bound))
    }
}

impl Calendar {
    /// A calendar that reads the time from `clock`.
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

    /// The time until the day ends.
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
