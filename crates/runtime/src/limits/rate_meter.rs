//! Measures rates with `governor` and tokio's clock, which tests can pause.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::Clock as GovernorClock;
use governor::middleware::StateInformationMiddleware;
use governor::nanos::Nanos;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use parking_lot::Mutex;
use tidegate_core::RateLimit;
use tokio::time::Instant;

type GovernorLimiter = RateLimiter<NotKeyed, InMemoryState, ElapsedClock, StateInformationMiddleware>;

/// The requests of one holder. Without a rate it measures nothing.
#[derive(Debug, Default)]
pub(super) struct RateMeter(Mutex<Option<ActiveRate>>);

#[derive(Debug)]
struct ActiveRate {
    rate: RateLimit,
    limiter: GovernorLimiter,
    clock: ElapsedClock,
    /// The time of the last request.
    last_request: Instant,
}

/// Tokio's time since an instant.
#[derive(Debug, Clone, Copy)]
struct ElapsedClock(Instant);

impl GovernorClock for ElapsedClock {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        self.0.elapsed().into()
    }
}

impl RateMeter {
    /// Counts one more request, if `rate` admits it.
    ///
    /// # Errors
    /// The time until `rate` admits it.
    pub(super) fn admit(&self, rate: RateLimit) -> Result<(), Duration> {
        let mut measured = self.0.lock();
        let measured = match &mut *measured {
            Some(measured) if measured.rate == rate => measured,
            other => other.insert(ActiveRate::carry_over(other.as_ref(), rate)),
        };
        measured.last_request = Instant::now();
        let requested = measured.limiter.check();
        requested.map(drop).map_err(|not_yet| not_yet.wait_time_from(measured.clock.now()))
    }

    /// Whether the meter can be removed without changing anything: a whole burst is available again.
    pub(super) fn is_idle(&self) -> bool {
        self.0.lock().as_ref().is_none_or(ActiveRate::is_idle)
    }
}

impl ActiveRate {
    /// A meter of `rate` that continues `before`: a caller that alternates between roles with two rates must not get a
    /// full burst each time.
    fn carry_over(before: Option<&Self>, rate: RateLimit) -> Self {
        // A period that is not zero is always a valid quota.
        let quota = Quota::with_period(rate.period()).unwrap_or(Quota::per_second(rate.burst()));
        let now = Instant::now();
        let clock = ElapsedClock(now);
        let limiter = RateLimiter::direct_with_clock(quota.allow_burst(rate.burst()), clock).with_middleware();
        let new = Self { rate, limiter, clock, last_request: now };
        if let Some(before) = before.filter(|before| !before.is_idle()) {
            let left = before.limiter.check().map_or(0, |state| state.remaining_burst_capacity());
            if let Some(taken) = NonZeroU32::new(rate.burst().get().saturating_sub(left)) {
                // At most a burst, so that the limiter has room for them.
                let _ = new.limiter.check_n(taken);
            }
        }
        new
    }

    fn is_idle(&self) -> bool {
        let full_after = self.rate.period().saturating_mul(self.rate.burst().get());
        self.last_request.elapsed() >= full_after
    }
}
