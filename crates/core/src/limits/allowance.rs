//! What somebody may have of a node: requests, calls, and what these take in a day.

use std::num::NonZeroU32;
use std::time::Duration;

/// What one holder of a level (a principal, a tenant, a tool) may have. What is `None` has no bound here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Allowance {
    /// Requests; of a tool, calls.
    pub rate: Option<RateLimit>,
    /// Calls that run at the same time; more of them wait.
    pub running_calls_max: Option<usize>,
    /// Calls that wait for one that runs; more of them are refused. Means nothing where any number may run.
    pub waiting_calls_max: Option<usize>,
    /// What its calls may take in a day.
    pub daily: DailyLimits,
}

/// How often something may be done: so many times at once, and from then on once in each period. In any span of time there
/// are at most `burst` and one for each whole period of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// The time after which there is room for one more; not zero.
    period: Duration,
    /// How many may come at once.
    burst: NonZeroU32,
}

/// What calls may take in a day, which begins at 00:00 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DailyLimits {
    /// Rows answered.
    pub rows: Option<u64>,
    /// Bytes of text, or of bodies, answered.
    pub bytes: Option<u64>,
    /// The time for which calls run, each counted by itself.
    pub time: Option<Duration>,
}

impl Allowance {
    /// The larger of the two in each respect in which both say something.
    #[must_use]
    pub fn largest(self, other: Self) -> Self {
        Self {
            rate: larger(self.rate, other.rate, RateLimit::larger),
            running_calls_max: larger(self.running_calls_max, other.running_calls_max, usize::max),
            waiting_calls_max: larger(self.waiting_calls_max, other.waiting_calls_max, usize::max),
            daily: DailyLimits {
                rows: larger(self.daily.rows, other.daily.rows, u64::max),
                bytes: larger(self.daily.bytes, other.daily.bytes, u64::max),
                time: larger(self.daily.time, other.daily.time, Duration::max),
            },
        }
    }

    /// This, and `other` in each respect in which this says nothing.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            rate: self.rate.or(other.rate),
            running_calls_max: self.running_calls_max.or(other.running_calls_max),
            waiting_calls_max: self.waiting_calls_max.or(other.waiting_calls_max),
            daily: self.daily.or(other.daily),
        }
    }

    /// Calls that may run or wait; more of them are refused.
    pub(crate) fn open_calls_max(&self) -> Option<usize> {
        Some(self.running_calls_max?.saturating_add(self.waiting_calls_max?))
    }
}

impl RateLimit {
    /// `each_second` times a second, of which `burst` may come at once; none where that is no rate: not above zero,
    /// or beyond a thousand million.
    pub fn per_second(each_second: f64, burst: u32) -> Option<Self> {
        if !(each_second > 0.0 && each_second <= 1e9) {
            return None;
        }
        let period = Duration::try_from_secs_f64(1.0 / each_second).ok()?;
        Some(Self { period: period.max(Duration::from_nanos(1)), burst: NonZeroU32::new(burst)? })
    }

    /// The time after which there is room for one more.
    pub fn period(&self) -> Duration {
        self.period
    }

    /// How many may come at once.
    pub fn burst(&self) -> NonZeroU32 {
        self.burst
    }

    fn larger(self, other: Self) -> Self {
        Self { period: self.period.min(other.period), burst: self.burst.max(other.burst) }
    }
}

impl DailyLimits {
    /// Whether it bounds nothing.
    pub fn is_unbounded(&self) -> bool {
        *self == Self::default()
    }

    fn or(self, other: Self) -> Self {
        Self { rows: self.rows.or(other.rows), bytes: self.bytes.or(other.bytes), time: self.time.or(other.time) }
    }
}

fn larger<T>(one: Option<T>, other: Option<T>, choose: impl FnOnce(T, T) -> T) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(choose(one, other)),
        (one, other) => one.or(other),
    }
}
