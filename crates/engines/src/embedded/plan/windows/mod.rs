//! Window functions whose results may be much larger than what they are given, with a bound on how much.
//!
//! A window function gives a value for each row, and each may be as large as all of its partition:
//! `array_agg(x) OVER (ORDER BY y)` of n rows makes n²/2 elements. Neither that nor the time of it is counted by
//! DataFusion, which also asks nobody between two rows whether the query is still wanted.

mod account;
mod aggregate;
mod partition;

use std::sync::Arc;

use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{AggregateUDF, WindowFunctionDefinition, WindowUDF};

pub(super) use self::account::{Account, WindowRows};
use self::aggregate::{BoundedAggregate, Reach};
use self::partition::BoundedWindow;
use super::bytes::bytes_of;
use super::guard::Wanted;

/// Calls of a function between which it is asked whether the query is wanted.
const CHECK_EVERY: usize = 256;

/// The function of `call` with bounds, as long as its query is `wanted`; none where it has them.
pub(super) fn bounded(call: &WindowFunction, wanted: &Wanted) -> Option<WindowFunctionDefinition> {
    let wanted = wanted.clone();
    Some(match &call.fun {
        WindowFunctionDefinition::AggregateUDF(inner) if !inner.inner().is::<BoundedAggregate>() => {
            let frame = &call.params.window_frame;
            let reach = match frame.start_bound.is_unbounded() && frame.end_bound.is_unbounded() {
                false => Reach::Some,
                true if call.params.filter.is_some() => Reach::AllFiltered,
                true => Reach::All,
            };
            let bounded = BoundedAggregate { inner: inner.clone(), wanted, reach };
            WindowFunctionDefinition::AggregateUDF(Arc::new(AggregateUDF::new_from_impl(bounded)))
        }
        WindowFunctionDefinition::WindowUDF(inner) if !inner.inner().is::<BoundedWindow>() => {
            let bounded = BoundedWindow { inner: inner.clone(), wanted };
            WindowFunctionDefinition::WindowUDF(Arc::new(WindowUDF::new_from_impl(bounded)))
        }
        _ => return None,
    })
}

/// Whether the query is wanted, asked for each row.
#[derive(Debug)]
struct Check {
    wanted: Wanted,
    calls: usize,
}

impl Check {
    fn new(wanted: &Wanted) -> Self {
        Self { wanted: wanted.clone(), calls: 0 }
    }

    /// Asks now and then.
    ///
    /// # Errors
    /// When the query is no longer wanted.
    fn pass(&mut self) -> Result<()> {
        self.calls = self.calls.wrapping_add(1);
        if self.calls.is_multiple_of(CHECK_EVERY) { self.wanted.check() } else { Ok(()) }
    }
}

/// Bytes of `value`, of a list only those that it shows.
fn bytes_of_value(value: &ScalarValue) -> usize {
    match value {
        ScalarValue::List(list) => bytes_of(list.as_ref()),
        ScalarValue::LargeList(list) => bytes_of(list.as_ref()),
        ScalarValue::FixedSizeList(list) => bytes_of(list.as_ref()),
        ScalarValue::Struct(values) => bytes_of(values.as_ref()),
        ScalarValue::Map(map) => bytes_of(map.as_ref()),
        other => other.size(),
    }
}
