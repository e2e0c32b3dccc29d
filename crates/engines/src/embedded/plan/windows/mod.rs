//! Window functions whose results may be much larger than what they are given, with a bound on how much.
//!
//! A window function gives a value for each row, and each may be as large as all of its partition:
//! `array_agg(x) OVER (ORDER BY y)` of n rows makes n²/2 elements. Neither that nor the time of it is counted by
//! DataFusion, which also asks nobody between two rows whether the query is still wanted.

mod aggregate;
mod partition;

use std::fmt;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::logical_expr::{AggregateUDF, WindowFunctionDefinition, WindowUDF};

use self::aggregate::BoundedAggregate;
use self::partition::BoundedWindow;
use super::guard::Wanted;

/// Bytes of a value that are not counted: as much as there may be of the row that it belongs to.
const FREE_BYTES: usize = 256;

/// The query that window functions compute for.
#[derive(Clone)]
pub(super) struct Bounds {
    wanted: Wanted,
    memory: Arc<dyn MemoryPool>,
}

impl Bounds {
    pub(super) fn new(wanted: Wanted, memory: Arc<dyn MemoryPool>) -> Self {
        Self { wanted, memory }
    }

    /// `function` with bounds; none where it has them.
    pub(super) fn of_window(&self, function: &WindowFunctionDefinition) -> Option<WindowFunctionDefinition> {
        Some(match function {
            WindowFunctionDefinition::AggregateUDF(inner) if !inner.inner().is::<BoundedAggregate>() => {
                let bounded = BoundedAggregate { inner: inner.clone(), bounds: self.clone() };
                WindowFunctionDefinition::AggregateUDF(Arc::new(AggregateUDF::new_from_impl(bounded)))
            }
            WindowFunctionDefinition::WindowUDF(inner) if !inner.inner().is::<BoundedWindow>() => {
                let bounded = BoundedWindow { inner: inner.clone(), bounds: self.clone() };
                WindowFunctionDefinition::WindowUDF(Arc::new(WindowUDF::new_from_impl(bounded)))
            }
            _ => return None,
        })
    }

    /// For the values of one partition.
    fn held(&self) -> Held {
        Held { bounds: self.clone(), reservation: None }
    }
}

impl fmt::Debug for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bounds")
    }
}

/// The bytes of the values of one partition, as part of the query's memory until the partition is done.
#[derive(Debug)]
struct Held {
    bounds: Bounds,
    reservation: Option<MemoryReservation>,
}

impl Held {
    /// # Errors
    /// When the query is no longer wanted.
    fn check(&self) -> Result<()> {
        self.bounds.wanted.check()
    }

    /// Counts the `bytes` of the values of `rows`.
    ///
    /// # Errors
    /// When the query has no memory for them.
    fn count(&mut self, bytes: usize, rows: usize) -> Result<()> {
        let bytes = bytes.saturating_sub(rows.saturating_mul(FREE_BYTES));
        if bytes == 0 {
            return Ok(());
        }
        let memory = &self.bounds.memory;
        let reservation =
            self.reservation.get_or_insert_with(|| MemoryConsumer::new("values of a window").register(memory));
        reservation.try_grow(bytes)
    }
}
