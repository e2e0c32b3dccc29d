//! Aggregate and window functions.

use datafusion::logical_expr::{AggregateUDF, WindowUDF};

/// The aggregate functions. One with the name of a function of DataFusion takes its place.
pub(crate) fn functions() -> Vec<AggregateUDF> {
    Vec::new()
}

/// The window functions. One with the name of a function of DataFusion takes its place.
pub(crate) fn window_functions() -> Vec<WindowUDF> {
    Vec::new()
}
