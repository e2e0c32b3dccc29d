//! The current usage of one principal, tenant, tool or node.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use governor::clock::Clock as GovernorClock;
use governor::middleware::StateInformationMiddleware;
use governor::nanos::Nanos;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use parking_lot::Mutex;
use tidegate_core::RateLimit;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::usage::{DailyUsage, UsageAmount};

#[derive(Debug, Default)]
pub(super) struct UsageMeter {
    pub(super) rate: RateMeter,
    pub(super) slots: ResizableSemaphore,
    open_calls: AtomicUsize,
    usage: Mutex<DailyUsage>,
}

/// One call that runs or waits. Dropping this ends it.
#[derive(Debug)]
pub(super) struct OpenCallPermit(Arc<UsageMeter>);

impl UsageMeter {
    pub(super) fn with_usage(usage: DailyUsage) -> Self {
        Self { usage: Mutex::new(usage), ..Self::default() }
    }

    /// Counts one more open call, unless `open_max` calls are open.
    pub(super) fn try_open_call(self: &Arc<Self>, open_max: usize) -> Option<OpenCallPermit> {
        let increment = |open: usize| (open < open_max).then_some(open + 1);
        self.open_calls.fetch_update(Ordering::AcqRel, Ordering::Acquire, increment).ok()?;
        Some(OpenCallPermit(self.clone()))
    }

    /// Adds what a call used on `day` and returns the total of that day.
    pub(super) fn charge(&self, day: u64, more: UsageAmount) -> UsageAmount {
        let mut usage = self.usage.lock();
        usage.add(day, more);
        usage.on_day(day)
    }

    pub(super) fn usage_on(&self, day: u64) -> UsageAmount {
        self.usage.lock().on_day(day)
    }

    pub(super) fn restore(&self, usage: DailyUsage) {
        *self.usage.lock() = usage;
    }

    /// Whether removal changes only the daily usage. The caller makes sure that no one obtains the meter meanwhile.
    pub(super) fn is_idle(&self) -> bool {
        self.open_calls.load(Ordering::Acquire) == 0 && self.slots.is_idle() && self.rate.is_idle()
    }
}

impl Drop for OpenCallPermit {
    fn drop(&mut self) {
        self.0.open_calls.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The run permits of one meter, given out in the order of requests.
#[derive(Debug)]
pub(super) struct ResizableSemaphore {
    semaphore: Arc<Semaphore>,
    /// The number of permits, including those that are held.
    permit_count: Mutex<usize>,
}

impl Default for ResizableSemaphore {
    fn default() -> Self {
        Self { semaphore: Arc::new(Semaphore::new(0)), permit_count: Mutex::new(0) }
    }
}

impl ResizableSemaphore {
    /// Whether no permit is held or waited for.
    pub(super) fn is_idle(&self) -> bool {
        Arc::strong_count(&self.semaphore) == 1
    }

    /// Sets the number of permits. Of surplus permits, held ones are removed in a later call of this function.
    pub(super) fn resize(&self, count: usize) -> Arc<Semaphore> {
        let target = count.min(Semaphore::MAX_PERMITS);
        let mut current = self.permit_count.lock();
        if target > *current {
            self.semaphore.add_permits(target - *current);
            *current = target;
        } else if target < *current {
            *current -= self.semaphore.forget_permits(*current - target);
        }
        self.semaphore.clone()
    }
}

type GovernorLimiter = RateLimiter<NotKeyed, InMemoryState, ElapsedClock, StateInformationMiddleware>;

/// The requests of one meter. Without a rate it measures nothing.
#[derive(Debug, Default)]
pub(super) struct RateMeter(Mutex<Option<ActiveRate>>);

#[derive(Debug)]
struct ActiveRate {
    rate: RateLimit,
    limiter: GovernorLimiter,
    clock: ElapsedClock,
    last_request: Instant,
}

#[derive(Debug, Clone, Copy)]
struct ElapsedClock(Instant);

impl GovernorClock for ElapsedClock {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        self.0.elapsed().into()
    }
}

impl RateMeter {
    /// Counts one more request. The error is the time until `rate` admits it.
    pub(super) fn admit(&self, rate: RateLimit) -> Result<(), Duration> {
        let mut state = self.0.lock();
        let active = match &mut *state {
            Some(active) if active.rate == rate => active,
            other => other.insert(ActiveRate::carry_over(other.as_ref(), rate)),
        };
        active.last_request = Instant::now();
        active.limiter.check().map(drop).map_err(|not_yet| not_yet.wait_time_from(active.clock.now()))
    }

    /// Whether the meter can be removed without changing anything: a whole burst is available again.
    pub(super) fn is_idle(&self) -> bool {
        self.0.lock().as_ref().is_none_or(ActiveRate::is_idle)
    }
}

impl ActiveRate {
    /// Continues `before`: a caller that alternates between roles with two rates must not get a full burst each time.
    fn carry_over(before: Option<&Self>, rate: RateLimit) -> Self {
        // A period that is not zero is always a valid quota.
        let quota = Quota::with_period(rate.period()).unwrap_or(Quota::per_second(rate.burst()));
        let now = Instant::now();
        let clock = ElapsedClock(now);
        let limiter = RateLimiter::direct_with_clock(quota.allow_burst(rate.burst()), clock).with_middleware();
        let new = Self { rate, limiter, clock, last_request: now };
        if let Some(before) = before.filter(|before| !before.is_idle()) {
            let left = before.limiter.check().map_or(0, |state| state.remaining_burst_capacity());
            if let Some(used) = NonZeroU32::new(rate.burst().get().saturating_sub(left)) {
                // At most a burst, so that the limiter has room for them.
                let _ = new.limiter.check_n(used);
            }
        }
        new
    }

    fn is_idle(&self) -> bool {
        let full_after = self.rate.period().saturating_mul(self.rate.burst().get());
        self.last_request.elapsed() >= full_after
    }
}
