//! Accounts for the memory of window function results.
//!
//! A function does not know which operator it computes for, and only the operator knows when its results are passed on.
//! So the cancellation operator around it registers a [`WindowMemory`] for the thread while the window operator
//! computes.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::common::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use parking_lot::Mutex;

/// Number of bytes of a value that are not counted. The row of the value may be that large anyway.
const FREE_BYTES: usize = 256;

thread_local! {
    /// The memory accounts of the operators that compute on this thread, the innermost last.
    static ACTIVE: RefCell<Vec<Arc<WindowMemory>>> = const { RefCell::new(Vec::new()) };
}

/// The number of input rows of a window operator, in all its partitions.
#[derive(Debug, Clone, Default)]
pub(crate) struct WindowRows(Arc<AtomicUsize>);

impl WindowRows {
    pub(crate) fn add(&self, rows: usize) {
        self.0.fetch_add(rows, Ordering::Relaxed);
    }
}

/// The memory of the results that one partition of an operator holds.
#[derive(Debug)]
pub(crate) struct WindowMemory {
    rows: WindowRows,
    reservation: Mutex<MemoryReservation>,
}

impl WindowMemory {
    pub(crate) fn new(rows: WindowRows, memory: &Arc<dyn MemoryPool>) -> Self {
        let reservation = MemoryConsumer::new("values of a window").register(memory);
        Self { rows, reservation: Mutex::new(reservation) }
    }

    pub(crate) fn run_counted<T>(self: &Arc<Self>, work: impl FnOnce() -> T) -> T {
        /// Unregisters the account, even if the work panics.
        struct Closing;
        impl Drop for Closing {
            fn drop(&mut self) {
                ACTIVE.with_borrow_mut(Vec::pop);
            }
        }
        ACTIVE.with_borrow_mut(|open| open.push(self.clone()));
        let _closing = Closing;
        work()
    }

    pub(crate) fn release(&self) {
        self.reservation.lock().free();
    }
}

/// Counts `bytes` of results for `rows` rows of the operator that computes on this thread.
pub(super) fn count_values(bytes: usize, rows: usize) -> Result<()> {
    let bytes = bytes.saturating_sub(rows.saturating_mul(FREE_BYTES));
    if bytes == 0 {
        return Ok(());
    }
    ACTIVE.with_borrow(|open| open.last().map_or(Ok(()), |account| account.reservation.lock().try_grow(bytes)))
}

/// Counts one value of `bytes` that all `rows` rows of a partition share. `None`: a filter hides the number of rows,
/// and the number of all rows of the operator is used.
pub(super) fn count_repeated_value(bytes: usize, rows: Option<usize>) -> Result<()> {
    let all = || ACTIVE.with_borrow(|open| open.last().map_or(1, |account| account.rows.0.load(Ordering::Relaxed)));
    let rows = rows.unwrap_or_else(all).max(1);
    count_values(bytes.saturating_mul(rows), rows)
}
