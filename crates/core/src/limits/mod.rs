//! The bounds of calls, named in one place; what they are measured with is in the files beside this one.
//!
//! There are four levels: one principal, one tenant, one tool, and the node. At each of them requests are measured by their
//! rate, calls by how many run and wait at once, and what calls take by the day.

mod admission;
mod allowance;
mod charges;
mod level;
mod meter;
mod meter_table;
mod meters;
mod rate_meter;
mod resizable_semaphore;
mod share;
mod usage;
mod usage_file;
mod usage_flusher;

use std::time::Duration;

pub(crate) use self::admission::{Admission, AdmissionGuard, PermitQueues, RunPermits};
pub use self::allowance::{Allowance, DailyLimits, RateLimit};
pub(crate) use self::charges::Charges;
pub(crate) use self::level::ReachedLimit;
pub use self::level::{LimitLevel, LimitMeasure};
pub(crate) use self::meters::Meters;
pub use self::share::{ShareCounter, tenant_share, tenant_share_of_bytes};
pub(crate) use self::usage::{Calendar, UsageAmount};
pub(crate) use self::usage_flusher::UsageFlusher;

/// How much of an answer travels inline. `None` is without a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Budget {
    /// Rows.
    pub rows: Option<u64>,
    /// Characters of text, counted as UTF-8 bytes before the transport escapes them.
    pub bytes: Option<usize>,
}

impl Budget {
    /// The tighter of the two in each respect.
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

/// The bounds of one entry's calls; what is `None` falls back to [`Limits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallLimits {
    /// How long a call may run.
    pub timeout: Option<Duration>,
    /// How much of its answer travels inline.
    pub inline: Option<Budget>,
    /// The same for an answer that is a body of its own, where that is another; it does not fall back to [`Limits`].
    pub body: Option<Budget>,
    /// After how long without a word a call becomes a task, if its client can come back for it.
    pub task_after: Option<Duration>,
    /// What callers may have of the entry, only of tools: how many calls run and wait is of all of them together, who take
    /// turns; the rate and the day are those of each tenant, or of all who have none.
    pub all_callers: Allowance,
}

/// The bounds of all calls of a registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long a call may run, unless its entry says otherwise.
    pub timeout: Duration,
    /// How much of an answer travels inline, unless its entry says otherwise. It is what a model may be made to read:
    /// an answer that is a body of its own has no such bound.
    pub inline: Budget,
    /// After how long without a word a call becomes a task, if its client can come back for it, unless its entry says
    /// otherwise.
    pub task_after: Duration,
    /// How long a task may run, from when it became one.
    pub task_timeout: Duration,
    /// How long a call waits for an answer to what it asks; it holds no place meanwhile.
    pub input_timeout: Duration,
    /// Calls that run at the same time; more of them wait.
    pub running_calls_max: usize,
    /// Calls that run or wait; more of them are refused.
    pub open_calls_max: usize,
    /// How long a cancelled handler may take to end by itself before it is dropped.
    pub cancel_grace: Duration,
    /// Requests of all callers together.
    pub rate: Option<RateLimit>,
    /// What the calls of all callers together may take in a day.
    pub daily: DailyLimits,
    /// What one principal may have, unless its roles say otherwise. The user of the process has no such bound.
    pub per_principal: Allowance,
    /// What the principals of one tenant together may have.
    pub per_tenant: Allowance,
    /// Ended jobs that `list_jobs` still shows.
    pub ended_jobs_max: usize,
}

impl Limits {
    /// The same bounds, of whose calls one principal and one tenant have a quarter where nothing is said of them.
    #[must_use]
    pub fn with_default_shares(self) -> Self {
        let quarter = |all: usize| (all / 4).max(1);
        let waiting_calls_max = self.open_calls_max.saturating_sub(self.running_calls_max);
        let calls = Allowance {
            running_calls_max: Some(quarter(self.running_calls_max)),
            waiting_calls_max: Some(waiting_calls_max / 4),
            ..Allowance::default()
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
            task_timeout: Duration::from_secs(60 * 60),
            input_timeout: Duration::from_secs(10 * 60),
            running_calls_max: 256,
            open_calls_max: 2_048,
            cancel_grace: Duration::from_secs(2),
            rate: None,
            daily: DailyLimits::default(),
            per_principal: Allowance::default(),
            per_tenant: Allowance::default(),
            ended_jobs_max: 100,
        }
    }
}
