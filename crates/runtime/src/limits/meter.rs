//! The current usage of one holder of a level.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::rate_meter::RateMeter;
use super::resizable_semaphore::ResizableSemaphore;
use super::usage::{DailyUsage, UsageAmount};

/// The current usage of one holder of a level.
#[derive(Debug, Default)]
pub(super) struct UsageMeter {
    pub(super) rate: RateMeter,
    pub(super) slots: ResizableSemaphore,
    /// Calls that run or wait.
    open_calls: AtomicUsize,
    usage: Mutex<DailyUsage>,
}

/// One call that runs or waits. Dropping this ends it.
#[derive(Debug)]
pub(super) struct OpenCallPermit(Arc<UsageMeter>);

impl UsageMeter {
    pub(super) fn with_usage(usage: DailyUsage) -> Self {
        Self { usage: Mutex::new(usage), ..Self::default() }
    }

    /// Counts one more open call, unless `open_max` calls are open.
    pub(super) fn try_open_call(self: &Arc<Self>, open_max: usize) -> Option<OpenCallPermit> {
        let more = |open: usize| (open < open_max).then_some(open + 1);
        self.open_calls.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok()?;
        Some(OpenCallPermit(self.clone()))
    }

    /// Adds what a call used on `day` and returns the total of that day.
    pub(super) fn charge(&self, day: u64, more: UsageAmount) -> UsageAmount {
        let mut usage = self.usage.lock();
        usage.add(day, more);
        usage.on_day(day)
    }

    /// The usage on `day`.
    pub(super) fn usage_on(&self, day: u64) -> UsageAmount {
        self.usage.lock().on_day(day)
    }

    /// Replaces the daily usage, for example with that of the usage file.
    pub(super) fn restore(&self, usage: DailyUsage) {
        *self.usage.lock() = usage;
    }

    /// Whether the meter can be removed without changing anything except the daily usage. The caller must make sure
    /// that no one obtains the meter meanwhile.
    pub(super) fn is_idle(&self) -> bool {
        self.open_calls.load(Ordering::Acquire) == 0 && self.slots.is_idle() && self.rate.is_idle()
    }
}

impl Drop for OpenCallPermit {
    fn drop(&mut self) {
        self.0.open_calls.fetch_sub(1, Ordering::AcqRel);
    }
}
