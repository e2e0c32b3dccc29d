//! Limits for window functions whose results may be much larger than their arguments.
//!
//! A window function returns a value for each row, and each may be as large as the whole partition: `array_agg(x) OVER
//! (ORDER BY y)` of n rows returns n²/2 elements. DataFusion limits neither the memory nor the time, and does not check
//! for cancellation between two rows.

mod aggregate;
mod partition;
mod window_memory;

use std::sync::Arc;

use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{AggregateUDF, WindowFunctionDefinition, WindowUDF};
use tidegate_query::array_bytes;

use self::aggregate::{BoundedAggregate, FrameReach};
use self::partition::BoundedWindow;
pub(super) use self::window_memory::{WindowMemory, WindowRows};
use super::query_cancellation::QueryCancellation;

/// Number of calls of a function between two checks for cancellation.
const CHECK_EVERY: usize = 256;

/// The function of `call` with limits, for the query of `query_cancellation`. `None` if it already has them.
pub(super) fn limit_window_function(
    call: &WindowFunction,
    query_cancellation: &QueryCancellation,
) -> Option<WindowFunctionDefinition> {
    let cancellation = query_cancellation.clone();
    Some(match &call.fun {
        WindowFunctionDefinition::AggregateUDF(inner) if !inner.inner().is::<BoundedAggregate>() => {
            let frame = &call.params.window_frame;
            let reach = match frame.start_bound.is_unbounded() && frame.end_bound.is_unbounded() {
                false => FrameReach::Rows,
                true if call.params.filter.is_some() => FrameReach::FilteredPartition,
                true => FrameReach::Partition,
            };
            let bounded = BoundedAggregate { inner: inner.clone(), cancellation, reach };
            WindowFunctionDefinition::AggregateUDF(Arc::new(AggregateUDF::new_from_impl(bounded)))
        }
        WindowFunctionDefinition::WindowUDF(inner) if !inner.inner().is::<BoundedWindow>() => {
            let bounded = WindowUDF::new_from_impl(BoundedWindow { inner: inner.clone(), cancellation });
            WindowFunctionDefinition::WindowUDF(Arc::new(bounded))
        }
        _ => return None,
    })
}

#[derive(Debug)]
struct CancellationCheck {
    cancellation: QueryCancellation,
    calls: usize,
}

impl CancellationCheck {
    fn new(query_cancellation: &QueryCancellation) -> Self {
        Self { cancellation: query_cancellation.clone(), calls: 0 }
    }

    fn check(&mut self) -> Result<()> {
        self.calls = self.calls.wrapping_add(1);
        if self.calls.is_multiple_of(CHECK_EVERY) { self.cancellation.check_cancelled() } else { Ok(()) }
    }
}

/// Number of bytes of `value`; for lists, without unused parts of their buffers.
fn scalar_bytes(value: &ScalarValue) -> usize {
    match value {
        ScalarValue::List(list) => array_bytes(list.as_ref()),
        ScalarValue::LargeList(list) => array_bytes(list.as_ref()),
        ScalarValue::FixedSizeList(list) => array_bytes(list.as_ref()),
        ScalarValue::Struct(values) => array_bytes(values.as_ref()),
        ScalarValue::Map(map) => array_bytes(map.as_ref()),
        other => other.size(),
    }
}
