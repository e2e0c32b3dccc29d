//! Limits of calls, which the registry measures and enforces, and memory that work reserves before it uses it, so that all work
//! together stays within the memory of the node.
//!
//! There are four levels: principal, tenant, tool and node. At each level, requests are limited by their rate, calls by
//! how many run and wait at once, and usage per day. What each caller uses of a shared quantity is counted for the share of one
//! tenant.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::num::NonZeroU32;
use std::time::Duration;

use crate::error::{Error, ErrorKind};
use crate::principal::CallerIdentity;

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
    /// The budget of a raw body, if it differs from `inline`. It does not fall back to [`Limits`].
    pub body: Option<Budget>,
    /// The time without output after which a call becomes a task, if its client supports tasks.
    pub task_after: Option<Duration>,
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

/// The share of `of_all` (permits, tasks, bytes of memory) for all principals of one tenant together: half of it, and
/// at least one. Other callers always find room then, however many principals the tenant has.
///
/// It does not apply to callers without a tenant.
pub fn tenant_share(of_all: usize) -> usize {
    (of_all / 2).max(1)
}

/// The same share for bytes on a disk.
pub fn tenant_share_of_bytes(of_all: u64) -> u64 {
    (of_all / 2).max(1)
}

/// Counts what each principal, each tenant and all callers use of a shared quantity.
#[derive(Debug, Default)]
pub struct ShareCounter {
    all: usize,
    per_owner: HashMap<CallerIdentity, usize>,
    per_tenant: HashMap<String, usize>,
}

impl ShareCounter {
    /// Gives `owner` one more. All callers together can have `all_max`, one tenant its share of these
    /// ([`tenant_share`]), and one principal `per_owner_max`, if set.
    ///
    /// # Errors
    /// The level whose limit is reached. Nothing is counted then.
    pub fn acquire(
        &mut self,
        owner: &CallerIdentity,
        all_max: usize,
        per_owner_max: Option<usize>,
    ) -> Result<(), LimitLevel> {
        let of_owner = self.per_owner.get(owner).copied().unwrap_or_default();
        if per_owner_max.is_some_and(|per_owner_max| of_owner >= per_owner_max) {
            return Err(LimitLevel::Principal);
        }
        let of_tenant = owner.tenant.as_ref().and_then(|tenant| self.per_tenant.get(tenant)).copied();
        if of_tenant.unwrap_or_default() >= tenant_share(all_max) {
            return Err(LimitLevel::Tenant);
        }
        if self.all >= all_max {
            return Err(LimitLevel::Node);
        }
        self.all += 1;
        *self.per_owner.entry(owner.clone()).or_default() += 1;
        if let Some(tenant) = &owner.tenant {
            *self.per_tenant.entry(tenant.clone()).or_default() += 1;
        }
        Ok(())
    }

    /// Releases one that `owner` acquired.
    pub fn release(&mut self, owner: &CallerIdentity) {
        self.all -= 1;
        decrement(&mut self.per_owner, owner);
        if let Some(tenant) = &owner.tenant {
            decrement(&mut self.per_tenant, tenant);
        }
    }
}

fn decrement<K: Eq + Hash>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

/// When a caller may try again after other work held the memory.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// The memory of one piece of work. It returns to the node when this is dropped.
pub trait MemoryReservation: fmt::Debug + Send {
    /// Changes the size of the reservation. Less is never refused.
    ///
    /// # Errors
    /// A limit does not admit `bytes`. The reservation stays as it was.
    fn resize(&mut self, bytes: usize) -> Result<(), MemoryRefusal>;
}

/// Why memory was not reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryRefusal {
    /// Whether the limit is that of the tenant. Else it is that of the node.
    pub is_of_tenant: bool,
    /// What the work would have had.
    pub requested_bytes: usize,
    /// What all work under the limit has.
    pub used_bytes: usize,
    /// The limit.
    pub limit_bytes: usize,
}

impl fmt::Display for MemoryRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { is_of_tenant, requested_bytes, used_bytes, limit_bytes } = self;
        let owner = if *is_of_tenant { "a tenant" } else { "the node" };
        write!(f, "{requested_bytes} bytes do not fit: {used_bytes} of the {limit_bytes} bytes of {owner} are in use")
    }
}

impl From<MemoryRefusal> for Error {
    /// The error of rows that are not taken. Only work that the limit would admit alone can succeed later.
    fn from(refusal: MemoryRefusal) -> Self {
        let (requested, limit) = (refusal.requested_bytes, refusal.limit_bytes);
        if requested > limit {
            let message = format!(
                "the rows need {requested} bytes of memory at once, and {limit} are available; nothing was stored"
            );
            return Self::new(ErrorKind::TooLarge, message)
                .with_hint("Send fewer or smaller rows in one request. The server's limit is limits.memory.");
        }
        Self::new(ErrorKind::Unavailable, "other work holds the memory that the rows need; nothing was stored")
            .with_hint("Retry later, or send smaller requests. The server's limit is limits.memory.")
            .with_detail(refusal.to_string())
            .with_retry_after(RETRY_AFTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_fit_later_may_be_tried_again() {
        let refusal = MemoryRefusal { is_of_tenant: true, requested_bytes: 60, used_bytes: 50, limit_bytes: 100 };
        let error = Error::from(refusal);
        assert_eq!((error.kind(), error.retry_after()), (ErrorKind::Unavailable, Some(RETRY_AFTER)));
        assert_eq!(error.detail(), Some("60 bytes do not fit: 50 of the 100 bytes of a tenant are in use"));
        let error = Error::from(MemoryRefusal { requested_bytes: 101, ..refusal });
        assert_eq!((error.kind(), error.retry_after()), (ErrorKind::TooLarge, None));
    }
}
