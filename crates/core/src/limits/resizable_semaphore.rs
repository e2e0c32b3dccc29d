//! Places among calls that run at once, as many as are said now.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Semaphore;

/// Places of one holder, handed out in the order in which they are asked for.
#[derive(Debug)]
pub(super) struct ResizableSemaphore {
    semaphore: Arc<Semaphore>,
    /// How many there are, held ones included.
    permit_count: Mutex<usize>,
}

impl Default for ResizableSemaphore {
    fn default() -> Self {
        Self { semaphore: Arc::new(Semaphore::new(0)), permit_count: Mutex::new(0) }
    }
}

impl ResizableSemaphore {
    /// Whether nobody holds one or waits for one.
    pub(super) fn is_idle(&self) -> bool {
        Arc::strong_count(&self.semaphore) == 1
    }

    /// The places, of which there shall be `permit_count`. Where there are more, those that are free go at once; those that are
    /// held, when it is said again.
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
