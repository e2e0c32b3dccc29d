//! What a call takes from the limits of its caller: what it has used so far, counted for its status and charged to the daily
//! usage; and its run permits, which it holds while it runs, and releases while it waits for input.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_core::Error;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::lifetime::CallTimer;
use crate::limits::{PermitQueues, ReachedLimit, RunPermits, UsageAmount, UsageCharges};

const TIME_CHARGE_INTERVAL: Duration = Duration::from_secs(1);

/// The rows and bytes of a call.
#[derive(Debug)]
pub struct CallUsage {
    rows: AtomicU64,
    bytes: AtomicU64,
    charges: UsageCharges,
    cancellation: CancellationToken,
}

impl CallUsage {
    /// The usage of a call that `cancellation` ends.
    pub(super) fn new(charges: UsageCharges, cancellation: CancellationToken) -> Self {
        Self { rows: AtomicU64::new(0), bytes: AtomicU64::new(0), charges, cancellation }
    }

    /// Counts `rows` as returned, or as received. A call that exceeds a daily limit of its caller is cancelled.
    pub fn count_rows(&self, rows: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
        self.charge(UsageAmount { rows, ..UsageAmount::default() });
    }

    /// The number of rows returned or received so far.
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    pub(crate) fn count_bytes(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.charge(UsageAmount { bytes: bytes as u64, ..UsageAmount::default() });
    }

    /// The number of bytes of text, or of a body, sent so far, and of the body of the request received so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn exceeded_limit(&self) -> Option<ReachedLimit> {
        self.charges.exceeded_limit()
    }

    /// Charges the run time each second, and the remainder when this is dropped; never resolves.
    pub(crate) async fn charge_time(&self, timer: &CallTimer) {
        if self.charges.is_empty() {
            return std::future::pending().await;
        }
        let mut running = TimeCharger { usage: self, timer, charged_until: Instant::now() };
        loop {
            tokio::time::sleep(TIME_CHARGE_INTERVAL).await;
            running.charge();
        }
    }

    fn charge(&self, amount: UsageAmount) {
        if !self.charges.charge(amount) {
            self.cancellation.cancel();
        }
    }
}

struct TimeCharger<'a> {
    usage: &'a CallUsage,
    timer: &'a CallTimer,
    charged_until: Instant,
}

impl TimeCharger<'_> {
    fn charge(&mut self) {
        let now = Instant::now();
        let time = now.duration_since(std::mem::replace(&mut self.charged_until, now));
        // A call that waits for input uses no time.
        if !self.timer.is_paused() {
            self.usage.charge(UsageAmount { time, ..UsageAmount::default() });
        }
    }
}

impl Drop for TimeCharger<'_> {
    fn drop(&mut self) {
        self.charge();
    }
}

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
