//! What somebody's calls have taken today, and when today ends.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::allowance::Daily;
use super::level::Measure;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What calls take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Taken {
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    pub(crate) time: Duration,
}

/// What one holder's calls have taken in the day that was counted last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Usage {
    day: u64,
    taken: Taken,
}

/// Which day it is. Days are those of UTC.
#[derive(Clone)]
pub(crate) struct Calendar(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl Usage {
    pub(super) fn new(day: u64, taken: Taken) -> Self {
        Self { day, taken }
    }

    /// What was taken on `day`.
    pub(super) fn of(&self, day: u64) -> Taken {
        if self.day == day { self.taken } else { Taken::default() }
    }

    /// Adds what was taken on `day`.
    pub(super) fn add(&mut self, day: u64, more: Taken) {
        let Taken { rows, bytes, time } = self.of(day);
        let taken = Taken {
            rows: rows.saturating_add(more.rows),
            bytes: bytes.saturating_add(more.bytes),
            time: time.saturating_add(more.time),
        };
        *self = Self { day, taken };
    }
}

impl Taken {
    /// The first of `bounds` of which nothing is left, and how much it was.
    pub(super) fn uses_up(&self, bounds: &Daily) -> Option<(Measure, u64)> {
        self.reaches(bounds, |taken, bound| taken >= bound)
    }

    /// The first of `bounds` of which more was taken than there is, and how much it was.
    pub(super) fn exceeds(&self, bounds: &Daily) -> Option<(Measure, u64)> {
        self.reaches(bounds, |taken, bound| taken > bound)
    }

    fn reaches(&self, bounds: &Daily, is_over: impl Fn(u128, u128) -> bool) -> Option<(Measure, u64)> {
        let rows = bounds.rows.map(|bound| (Measure::Rows, bound, is_over(self.rows.into(), bound.into())));
        let bytes = bounds.bytes.map(|bound| (Measure::Bytes, bound, is_over(self.bytes.into(), bound.into())));
        let time =
            bounds.time.map(|bound| (Measure::Time, bound.as_secs(), is_over(self.time.as_nanos(), bound.as_nanos())));
        let over = [rows, bytes, time].into_iter().flatten().find(|(_, _, is_over)| *is_over);
        over.map(|(measure, bound, _)| (measure, bound))
    }
}

impl Calendar {
    /// The calendar of a clock that tells what time it is.
    pub(crate) fn new(clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Arc::new(clock))
    }

    fn since_epoch(&self) -> Duration {
        // Before 1970 all is one day.
        (self.0)().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
    }

    /// The day, counted from 1970-01-01.
    pub(super) fn day(&self) -> u64 {
        self.since_epoch().as_secs() / DAY.as_secs()
    }

    /// How long today lasts.
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
