//! DataFusion's `approx_percentile_cont` and `approx_percentile_cont_with_weight`, with a limit for the centroids.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::functions_aggregate::approx_percentile_cont::approx_percentile_cont_udaf;
use datafusion::functions_aggregate::approx_percentile_cont_with_weight::approx_percentile_cont_with_weight_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature};

use super::read_centroids;

pub(super) fn functions() -> [AggregateUDF; 2] {
    let bounded =
        |inner: Arc<AggregateUDF>, centroids| AggregateUDF::new_from_impl(BoundedPercentile { inner, centroids });
    [bounded(approx_percentile_cont_udaf(), 2), bounded(approx_percentile_cont_with_weight_udaf(), 3)]
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct BoundedPercentile {
    inner: Arc<AggregateUDF>,
    /// The position of the argument with the number of centroids.
    centroids: usize,
}

impl AggregateUDFImpl for BoundedPercentile {
    crate::delegate_to! { inner =>
        fn name(&self) -> &str;
        fn signature(&self) -> &Signature;
        fn return_type(&self, types: &[DataType]) -> Result<DataType>;
        fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>>;
        fn supports_within_group_clause(&self) -> bool;
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        read_centroids(&args, self.centroids, self.name())?;
        self.inner.accumulator(args)
    }
}
