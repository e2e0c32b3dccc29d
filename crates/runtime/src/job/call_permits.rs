//! The run permits of a call: it holds them while it runs, and releases them while it waits for input.

use parking_lot::Mutex;
use tidegate_core::Error;

use crate::limits::{PermitQueues, RunPermits};

#[derive(Debug)]
pub(crate) struct CallPermits {
    /// `None` for a call on behalf of one that already holds permits.
    queues: Option<PermitQueues>,
    held: Mutex<Option<RunPermits>>,
    acquire_lock: tokio::sync::Mutex<()>,
}

impl CallPermits {
    pub(super) fn new(queues: Option<PermitQueues>) -> Self {
        Self { queues, held: Mutex::default(), acquire_lock: tokio::sync::Mutex::default() }
    }

    pub(crate) fn are_needed(&self) -> bool {
        self.queues.is_some()
    }

    /// Waits for the permits, unless the call needs none or holds them.
    pub(crate) async fn acquire(&self) -> Result<(), Error> {
        let Some(queues) = &self.queues else { return Ok(()) };
        // If several input requests end at the same time, one of them acquires the permits for all.
        let _turn = self.acquire_lock.lock().await;
        if self.held.lock().is_none() {
            let permits = queues.acquire().await?;
            *self.held.lock() = Some(permits);
        }
        Ok(())
    }

    pub(crate) fn release(&self) {
        self.held.lock().take();
    }
}
