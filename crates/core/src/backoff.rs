//! Delays between attempts: exponential, with jitter.

use std::time::Duration;

use uuid::Uuid;

/// Delays that double from the first to the longest one.
#[derive(Debug, Clone)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    attempts: u32,
}

impl Backoff {
    /// Delays from `first` to `longest`.
    pub fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, attempts: 0 }
    }

    /// The next delay: a random value between half and all of a span that doubles up to the longest delay.
    pub fn next_delay(&mut self) -> Duration {
        let span = self.first.saturating_mul(2_u32.saturating_pow(self.attempts)).min(self.longest);
        self.attempts = self.attempts.saturating_add(1);
        // The first 32 bits of a version 4 UUID are random.
        let random = Uuid::new_v4().as_fields().0;
        span.mul_f64(0.5 + 0.5 * f64::from(random) / f64::from(u32::MAX))
    }

    /// Starts again with the first delay.
    pub fn reset(&mut self) {
        self.attempts = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_maximum_with_jitter() {
        let (first, longest) = (Duration::from_millis(100), Duration::from_secs(5));
        let mut backoff = Backoff::new(first, longest);
        let delays: Vec<Duration> = (0..100).map(|_| backoff.next_delay()).collect();
        for (attempt, delay) in delays.iter().enumerate() {
            let span = first.saturating_mul(2_u32.saturating_pow(attempt as u32)).min(longest);
            assert!(*delay >= span / 2 && *delay <= span, "{attempt}: {delay:?}");
        }
        assert!(delays[50..].windows(2).any(|pair| pair[0] != pair[1]));
        backoff.reset();
        assert!(backoff.next_delay() <= first);
    }
}
