//! What one holder of a level has of the node now.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::rate::RateMeter;
use super::slots::Slots;
use super::usage::{Taken, Usage};

/// What one holder of a level has of the node now.
#[derive(Debug, Default)]
pub(super) struct Meter {
    pub(super) rate: RateMeter,
    pub(super) slots: Slots,
    /// Calls that run or wait.
    open: AtomicUsize,
    usage: Mutex<Usage>,
}

/// One call that runs or waits, until it is dropped.
#[derive(Debug)]
pub(super) struct OpenCall(Arc<Meter>);

impl Meter {
    pub(super) fn with_usage(usage: Usage) -> Self {
        Self { usage: Mutex::new(usage), ..Self::default() }
    }

    /// Counts one more open call, unless there are `open_max`.
    pub(super) fn open(self: &Arc<Self>, open_max: usize) -> Option<OpenCall> {
        let more = |open: usize| (open < open_max).then_some(open + 1);
        self.open.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok()?;
        Some(OpenCall(self.clone()))
    }

    /// Adds what a call took on `day`, and gives what was taken on that day in all.
    pub(super) fn charge(&self, day: u64, more: Taken) -> Taken {
        let mut usage = self.usage.lock();
        usage.add(day, more);
        usage.of(day)
    }

    /// What was taken on `day`.
    pub(super) fn taken(&self, day: u64) -> Taken {
        self.usage.lock().of(day)
    }

    /// Takes over what is known of the day from elsewhere.
    pub(super) fn restore(&self, usage: Usage) {
        *self.usage.lock() = usage;
    }

    /// Whether forgetting it changes nothing but what was taken today. Whoever asks must know that nobody takes it up
    /// meanwhile.
    pub(super) fn is_idle(&self) -> bool {
        self.open.load(Ordering::Acquire) == 0 && self.slots.are_idle() && self.rate.is_idle()
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::AcqRel);
    }
}
