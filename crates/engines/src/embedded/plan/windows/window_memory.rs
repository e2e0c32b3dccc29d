//! What the values of a window take of the memory of its query.
//!
//! The functions do not know for which operator they compute, and only the operator knows when their values are handed on.
//! So the guard around it opens an account for as long as the operator computes, on the thread on which it does.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::common::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use parking_lot::Mutex;

/// Bytes of a value that are not counted: as much as there may be of the row that it belongs to.
const FREE_BYTES: usize = 256;

thread_local! {
    /// Of the operators that compute on this thread, the innermost last.
    static ACTIVE: RefCell<Vec<Arc<WindowMemory>>> = const { RefCell::new(Vec::new()) };
}

/// Rows that an operator of windows was given, in all its parts.
#[derive(Debug, Clone, Default)]
pub(crate) struct WindowRows(Arc<AtomicUsize>);

impl WindowRows {
    pub(crate) fn add(&self, rows: usize) {
        self.0.fetch_add(rows, Ordering::Relaxed);
    }
}

/// The values that one part of an operator holds.
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

    /// Does `work`, the values of which are counted here.
    pub(crate) fn run_counted<T>(self: &Arc<Self>, work: impl FnOnce() -> T) -> T {
        /// Closes it, also when the work panics.
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

    /// What was counted is handed on.
    pub(crate) fn release(&self) {
        self.reservation.lock().free();
    }
}

/// Counts `bytes` of the values of so many rows, of an operator that computes on this thread.
///
/// # Errors
/// When the query has no memory for them.
pub(super) fn count_values(bytes: usize, rows: usize) -> Result<()> {
    let bytes = bytes.saturating_sub(rows.saturating_mul(FREE_BYTES));
    if bytes == 0 {
        return Ok(());
    }
    ACTIVE.with_borrow(|open| open.last().map_or(Ok(()), |account| account.reservation.lock().try_grow(bytes)))
}

/// Counts one value of `bytes` that becomes that of every row of a partition of `rows`: of a part of the rows only, where
/// a filter hides how many there are, and then of all that the operator has.
///
/// # Errors
/// When the query has no memory for them.
pub(super) fn count_repeated_value(bytes: usize, rows: Option<usize>) -> Result<()> {
    let all = || ACTIVE.with_borrow(|open| open.last().map_or(1, |account| account.rows.0.load(Ordering::Relaxed)));
    let rows = rows.unwrap_or_else(all).max(1);
    count_values(bytes.saturating_mul(rows), rows)
}
