//! Places among calls that run at once, as many as are said now.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Semaphore;

/// Places of one holder, handed out in the order in which they are asked for.
#[derive(Debug)]
pub(super) struct Slots {
    places: Arc<Semaphore>,
    /// How many there are, held ones included.
    count: Mutex<usize>,
}

impl Default for Slots {
    fn default() -> Self {
        Self { places: Arc::new(Semaphore::new(0)), count: Mutex::new(0) }
    }
}

impl Slots {
    /// Whether nobody holds one or waits for one.
    pub(super) fn are_idle(&self) -> bool {
        Arc::strong_count(&self.places) == 1
    }

    /// The places, of which there shall be `count`. Where there are more, those that are free go at once; those that are
    /// held, when it is said again.
    pub(super) fn sized(&self, count: usize) -> Arc<Semaphore> {
        let wanted = count.min(Semaphore::MAX_PERMITS);
        let mut now = self.count.lock();
        if wanted > *now {
            self.places.add_permits(wanted - *now);
            *now = wanted;
        } else if wanted < *now {
            *now -= self.places.forget_permits(*now - wanted);
        }
        self.places.clone()
    }
}
