//! Limits progress notifications of a call: values rise, and only a few are sent per second.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

const SENT_MAX: usize = 4;
const WINDOW: Duration = Duration::from_secs(1);

/// Notifications that come too soon are dropped, not queued, because a later value replaces them.
#[derive(Debug, Default)]
pub(super) struct ProgressThrottle {
    /// The times of the last notifications, oldest first; at most [`SENT_MAX`].
    sent_at: VecDeque<Instant>,
    last_progress: Option<f64>,
}

impl ProgressThrottle {
    /// Whether a notification is sent now: the value rises, and the window has room. If so, it counts as sent.
    pub(super) fn admits(&mut self, done: f64) -> bool {
        if self.last_progress.is_some_and(|before| done <= before) {
            return false;
        }
        let now = Instant::now();
        if self.sent_at.len() >= SENT_MAX {
            if self.sent_at.front().is_some_and(|oldest| now.duration_since(*oldest) < WINDOW) {
                return false;
            }
            self.sent_at.pop_front();
        }
        self.sent_at.push_back(now);
        self.last_progress = Some(done);
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn admits_rising_values_four_times_a_second() {
        let mut throttle = ProgressThrottle::default();
        assert!(throttle.admits(0.0), "the first value is always sent");
        assert!(!throttle.admits(0.0) && !throttle.admits(-1.0));
        assert!(throttle.admits(0.5) && throttle.admits(1.0) && throttle.admits(2.0));
        assert!(!throttle.admits(3.0), "the fifth within one second");
        tokio::time::advance(Duration::from_millis(999)).await;
        assert!(!throttle.admits(4.0));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(throttle.admits(3.0), "a dropped value does not count as sent");
        assert!(throttle.admits(5.0));
    }

    proptest! {
        #[test]
        fn never_admits_more_than_four_a_second(steps in prop::collection::vec((0u64..700, -3i32..10), 1..80)) {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
            let sent = runtime.block_on(async {
                let (mut throttle, mut done, mut sent) = (ProgressThrottle::default(), 0.0, Vec::new());
                for (wait_ms, step) in steps {
                    tokio::time::advance(Duration::from_millis(wait_ms)).await;
                    done += f64::from(step);
                    if throttle.admits(done) {
                        sent.push((Instant::now(), done));
                    }
                }
                sent
            });
            prop_assert!(sent.windows(2).all(|pair| pair[0].1 < pair[1].1));
            prop_assert!(sent.windows(SENT_MAX + 1).all(|five| five[SENT_MAX].0 - five[0].0 >= WINDOW));
        }
    }
}
