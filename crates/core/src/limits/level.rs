//! The limits at one level: of a principal, a tenant, a tool or the node.

use std::num::NonZeroU32;
use std::time::Duration;

/// The level of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum LimitLevel {
    /// One principal.
    Principal,
    /// All principals of one tenant together.
    Tenant,
    /// The callers of one tool: all of them, or those of one tenant.
    Tool,
    /// All callers together.
    Node,
}

/// The limited quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum LimitMeasure {
    /// Requests per time.
    Requests,
    /// Calls at the same time.
    Calls,
    /// Rows per day.
    Rows,
    /// Bytes per day.
    Bytes,
    /// The run time of calls per day.
    #[strum(serialize = "query_seconds")]
    Time,
}

impl LimitLevel {
    /// The name, as used in logs and metrics.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whose limit it is, as a text for the caller.
    pub fn possessive(self) -> &'static str {
        match self {
            Self::Principal => "your",
            Self::Tenant => "your tenant's",
            Self::Tool => "this tool's",
            Self::Node => "the node's",
        }
    }
}

impl LimitMeasure {
    /// The name, as used in logs and metrics.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The limits of one holder of a level (a principal, a tenant, a tool). `None` means no limit at this level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LevelLimits {
    /// The rate of requests; for a tool, of calls.
    pub rate: Option<RateLimit>,
    /// Calls that run at the same time; further calls wait.
    pub running_calls_max: Option<usize>,
    /// Calls that wait for a running call to end; further calls are refused. Has no effect without a limit on running
    /// calls.
    pub waiting_calls_max: Option<usize>,
    /// What its calls can use per day.
    pub daily: DailyLimits,
}

/// A rate: a burst at once, then one more per period. In any time span, at most `burst` plus one for each whole period
/// of the span are admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// The time until one more is admitted; not zero.
    period: Duration,
    /// The number admitted at once.
    burst: NonZeroU32,
}

/// What calls can use per day. A day begins at 00:00 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DailyLimits {
    /// Rows returned, and rows written.
    pub rows: Option<u64>,
    /// Bytes of text, or of bodies, sent; and bytes of bodies of rows, received.
    pub bytes: Option<u64>,
    /// The run time of calls; calls that run at the same time are added up.
    pub time: Option<Duration>,
}

impl LevelLimits {
    /// The larger of both limits, for each limit that both set; else the one that is set.
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

    /// These limits; `other` where these set none.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            rate: self.rate.or(other.rate),
            running_calls_max: self.running_calls_max.or(other.running_calls_max),
            waiting_calls_max: self.waiting_calls_max.or(other.waiting_calls_max),
            daily: self.daily.or(other.daily),
        }
    }

    /// Calls that run or wait; further calls are refused.
    pub fn open_calls_max(&self) -> Option<usize> {
        Some(self.running_calls_max?.saturating_add(self.waiting_calls_max?))
    }
}

impl RateLimit {
    /// `each_second` per second, of which `burst` may come at once. `None` if `each_second` is not above zero or
    /// exceeds 10⁹, or if `burst` is zero.
    pub fn per_second(each_second: f64, burst: u32) -> Option<Self> {
        if !(each_second > 0.0 && each_second <= 1e9) {
            return None;
        }
        let period = Duration::try_from_secs_f64(1.0 / each_second).ok()?;
        Some(Self { period: period.max(Duration::from_nanos(1)), burst: NonZeroU32::new(burst)? })
    }

    /// The time until one more is admitted.
    pub fn period(&self) -> Duration {
        self.period
    }

    /// The number admitted at once.
    pub fn burst(&self) -> NonZeroU32 {
        self.burst
    }

    fn larger(self, other: Self) -> Self {
        Self { period: self.period.min(other.period), burst: self.burst.max(other.burst) }
    }
}

impl DailyLimits {
    /// Whether it sets no limit.
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
