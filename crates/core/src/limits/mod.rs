//! Limits of calls. The registry measures and enforces them.
//!
//! There are four levels: principal, tenant, tool and node. At each level, requests are limited by their rate, calls by
//! how many run and wait at once, and usage per day.

mod level;
mod share;

use std::num::NonZeroU64;
use std::time::Duration;

pub use self::level::{DailyLimits, LevelLimits, LimitLevel, LimitMeasure, RateLimit};
pub use self::share::{ShareCounter, tenant_share, tenant_share_of_bytes};

/// The part of an answer that is sent inline. `None` means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Budget {
    /// Rows.
    pub rows: Option<u64>,
    /// Characters of text, counted as UTF-8 bytes before escaping.
    pub bytes: Option<usize>,
}

impl Budget {
    /// The smaller of both limits, for each limit.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        fn tighter<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
            match (a, b) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (one, other) => one.or(other),
            }
        }
        Self { rows: tighter(self.rows, other.rows), bytes: tighter(self.bytes, other.bytes) }
    }
}

/// The limits of one entry's calls; `None` falls back to [`Limits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallLimits {
    /// The time limit of a call.
    pub timeout: Option<Duration>,
    /// The part of its answer that is sent inline.
    pub inline: Option<Budget>,
    /// The budget of an answer that is a body of its own, if it differs from `inline`; it does not fall back to
    /// [`Limits`].
    pub body: Option<Budget>,
    /// The time without output after which a call becomes a task, if its client supports tasks.
    pub task_after: Option<Duration>,
    /// The number of rows in each text block of a tool's answer; without it, all rows are one text.
    pub batch_rows: Option<NonZeroU64>,
    /// The limits of all callers of a tool. The limits on running and waiting calls are shared by all callers, who
    /// take turns; the rate and the daily limits apply to each tenant, and to all callers without a tenant together.
    pub all_callers: LevelLimits,
}

/// The limits of all calls of a registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The time limit of a call; an entry can set another one.
    pub timeout: Duration,
    /// The part of an answer that is sent inline; an entry can set another one. It bounds what a model must read.
    /// Answers that are a body of their own have no such limit.
    pub inline: Budget,
    /// The time without output after which a call becomes a task, if its client supports tasks; an entry can set
    /// another one.
    pub task_after: Duration,
    /// The number of rows in each text block of a tool's answer; an entry can set another one.
    pub batch_rows: Option<NonZeroU64>,
    /// The time limit of a task, from when it became one.
    pub task_timeout: Duration,
    /// How long a call waits for an answer to an input request. It holds no run permit meanwhile.
    pub input_timeout: Duration,
    /// Calls that run at the same time; further calls wait.
    pub running_calls_max: usize,
    /// Calls that run or wait; further calls are refused.
    pub open_calls_max: usize,
    /// How long a cancelled handler may continue before it is dropped.
    pub cancel_grace: Duration,
    /// The rate of the requests of all callers together.
    pub rate: Option<RateLimit>,
    /// What the calls of all callers together can use per day.
    pub daily: DailyLimits,
    /// The limits of one principal; roles can set others. They do not apply to the user of the process.
    pub per_principal: LevelLimits,
    /// The limits of all principals of one tenant together.
    pub per_tenant: LevelLimits,
    /// Ended jobs that stay in the list of jobs.
    pub ended_jobs_max: usize,
}

impl Limits {
    /// The same limits. Where none is set, one principal and one tenant get a quarter of the calls.
    #[must_use]
    pub fn with_default_shares(self) -> Self {
        let quarter = |all: usize| (all / 4).max(1);
        let waiting_calls_max = self.open_calls_max.saturating_sub(self.running_calls_max);
        let calls = LevelLimits {
            running_calls_max: Some(quarter(self.running_calls_max)),
            waiting_calls_max: Some(waiting_calls_max / 4),
            ..LevelLimits::default()
        };
        Self { per_principal: self.per_principal.or(calls), per_tenant: self.per_tenant.or(calls), ..self }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(60),
            inline: Budget { rows: None, bytes: Some(40_000) },
            task_after: Duration::from_secs(10),
            batch_rows: None,
            task_timeout: Duration::from_secs(60 * 60),
            input_timeout: Duration::from_secs(10 * 60),
            running_calls_max: 256,
            open_calls_max: 2_048,
            cancel_grace: Duration::from_secs(2),
            rate: None,
            daily: DailyLimits::default(),
            per_principal: LevelLimits::default(),
            per_tenant: LevelLimits::default(),
            ended_jobs_max: 100,
        }
    }
}
