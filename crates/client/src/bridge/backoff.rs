//! The delay before the next attempt: it grows each time, and jitter keeps clients from reconnecting together.

use std::time::Duration;

use uuid::Uuid;

const DELAY_MIN: Duration = Duration::from_millis(100);
/// A call that waits 5 s for a server must notice that it is reachable again.
pub(super) const DELAY_MAX: Duration = Duration::from_secs(2);

/// The delays between connection attempts.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    attempts: u32,
}

impl Backoff {
    /// The next delay: between half and the whole of a span that doubles up to [`DELAY_MAX`].
    pub(super) fn next_delay(&mut self) -> Duration {
        let span = DELAY_MIN.saturating_mul(2_u32.saturating_pow(self.attempts)).min(DELAY_MAX);
        self.attempts = self.attempts.saturating_add(1);
        // The first 32 bits of such an id are random.
        let random = Uuid::new_v4().as_fields().0;
        span.mul_f64(0.5 + 0.5 * f64::from(random) / f64::from(u32::MAX))
    }

    /// Restarts the sequence after a successful connection.
    pub(super) fn reset(&mut self) {
        self.attempts = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_a_bound_with_jitter() {
        let mut backoff = Backoff::default();
        let delays: Vec<Duration> = (0..100).map(|_| backoff.next_delay()).collect();
        for (attempt, delay) in delays.iter().enumerate() {
            let span = DELAY_MIN.saturating_mul(2_u32.saturating_pow(attempt as u32)).min(DELAY_MAX);
            assert!(*delay >= span / 2 && *delay <= span, "{attempt}: {delay:?}");
        }
        assert!(delays[50..].windows(2).any(|pair| pair[0] != pair[1]));
        backoff.reset();
        assert!(backoff.next_delay() <= DELAY_MIN);
    }
}
