//! Correlation, covariance and linear regression of pairs of doubles, as PostgreSQL computes them.
//!
//! The moments of parts can be merged, so that a part need not send its rows: [`merged_moments`].

mod merged;
mod moments;
mod states;

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, plan_err};
use datafusion::functions_aggregate::{correlation, covariance, regr};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, Signature,
};

use self::moments::{Measure, Moment, PairMoments};
use super::moments::{GroupMoments, QueuedMoments, RowMoments};

pub use merged::{MergedMoments, merged_moments};

/// Returns the functions of DataFusion with other accumulators.
pub(super) fn functions() -> Vec<AggregateUDF> {
    measures().into_iter().map(|(inner, measure)| pair_function(inner, measure)).collect()
}

/// The functions of DataFusion, and what they compute. `regr_count` stays, because it only counts.
fn measures() -> [(Arc<AggregateUDF>, Measure); 11] {
    [
        (correlation::corr_udaf(), Measure::Correlation),
        (covariance::covar_samp_udaf(), Measure::Covariance { is_sample: true }),
        (covariance::covar_pop_udaf(), Measure::Covariance { is_sample: false }),
        (regr::regr_slope_udaf(), Measure::Slope),
        (regr::regr_intercept_udaf(), Measure::Intercept),
        (regr::regr_r2_udaf(), Measure::Determination),
        (regr::regr_avgx_udaf(), Measure::Moment(Moment::MeanX)),
        (regr::regr_avgy_udaf(), Measure::Moment(Moment::MeanY)),
        (regr::regr_sxx_udaf(), Measure::Moment(Moment::SquaresX)),
        (regr::regr_syy_udaf(), Measure::Moment(Moment::SquaresY)),
        (regr::regr_sxy_udaf(), Measure::Moment(Moment::Products)),
    ]
}

fn pair_function(inner: Arc<AggregateUDF>, measure: Measure) -> AggregateUDF {
    AggregateUDF::new_from_impl(PairFunction { inner, measure })
}

/// The states of the accumulators of the function `name`.
fn state_fields(name: &str) -> Vec<FieldRef> {
    let field = |state: &str, data_type| Arc::new(Field::new(format_state_name(name, state), data_type, true));
    let sums = ["sum_x", "squares_x", "sum_y", "squares_y", "products", "same_x", "same_y"];
    let sums = sums.map(|state| field(state, DataType::Float64));
    std::iter::once(field("count", DataType::UInt64)).chain(sums).collect()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct PairFunction {
    inner: Arc<AggregateUDF>,
    measure: Measure,
}

impl AggregateUDFImpl for PairFunction {
    crate::delegate_to! { inner =>
        fn name(&self) -> &str;
        fn aliases(&self) -> &[String];
        fn signature(&self) -> &Signature;
        fn return_type(&self, types: &[DataType]) -> Result<DataType>;
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        Ok(state_fields(args.name))
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if args.is_distinct {
            return plan_err!("{} does not take DISTINCT; select the distinct pairs in a subquery", self.name());
        }
        Ok(Box::new(RowMoments::<PairMoments>::new(self.measure)))
    }

    fn create_sliding_accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(QueuedMoments::<PairMoments>::new(self.measure)))
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        !args.is_distinct
    }

    fn create_groups_accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(GroupMoments::<PairMoments>::new(self.measure)))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }
}
