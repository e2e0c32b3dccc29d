//! A semaphore for run permits whose number of permits can change.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Semaphore;

/// The run permits of one holder, given out in the order of requests.
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

    /// Sets the number of permits to `count`. If there are more, free permits are removed at once, and held ones in a
    /// later call of this function.
    pub(super) fn resize(&self, count: usize) -> Arc<Semaphore> {
        let expected = count.min(Semaphore::MAX_PERMITS);
        let mut now = self.permit_count.lock();
        if expected > *now {
            self.semaphore.add_permits(expected - *now);
            *now = expected;
        } else if expected < *now {
            *now -= self.semaphore.forget_permits(*now - expected);
        }
        self.semaphore.clone()
    }
}
