//! Correlation, covariance and linear regression of pairs of doubles, as PostgreSQL computes them.
//!
//! They are computed from the moments of the pairs. The moments of parts can be merged, so that a part need not send its
//! rows: [`merged_moments`].

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, UInt64Array};
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type, UInt64Type};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::functions_aggregate::{correlation, covariance, regr};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, Signature, Volatility,
};

use super::moments::{GroupMoments, Moments, QueuedMoments, RowMoments};
use super::variance::{self, VarianceKind};

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

/// What is computed from the moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Measure {
    /// Of x.
    Variance(VarianceKind),
    Correlation,
    Covariance {
        is_sample: bool,
    },
    Slope,
    Intercept,
    Determination,
    Moment(Moment),
}

/// One of the moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Moment {
    MeanX,
    MeanY,
    SquaresX,
    SquaresY,
    Products,
}

impl Measure {
    /// The moments of parts from which it is computed, beside their numbers of pairs.
    fn part_moments(self) -> &'static [Moment] {
        use Moment::{MeanX, MeanY, Products, SquaresX, SquaresY};
        match self {
            Self::Variance(_) | Self::Moment(SquaresX) => &[MeanX, SquaresX],
            Self::Covariance { .. } | Self::Moment(Products) => &[MeanX, MeanY, Products],
            Self::Slope | Self::Intercept => &[MeanX, MeanY, SquaresX, Products],
            Self::Correlation | Self::Determination => &[MeanX, MeanY, SquaresX, SquaresY, Products],
            Self::Moment(MeanX) => &[MeanX],
            Self::Moment(MeanY) => &[MeanY],
            Self::Moment(SquaresY) => &[MeanY, SquaresY],
        }
    }
}

/// Count, sums, sums of the squared differences from the means, and the sum of their products. The latter three are NaN
/// beside a value that is not finite, and infinite where finite values have overflowed. Computed as in PostgreSQL (by
/// Youngs and Cramer), without a rounded mean.
#[derive(Debug, Clone, Copy, Default)]
struct PairMoments {
    count: u64,
    sum_x: f64,
    squares_x: f64,
    sum_y: f64,
    squares_y: f64,
    products: f64,
    /// The value of all x, or the mean of each part, so that equal values have no variance even if their sum is rounded.
    /// NaN if they differ.
    same_x: f64,
    same_y: f64,
}

impl PairMoments {
    fn from_pair(y: f64, x: f64) -> Self {
        // An infinity has no difference from itself, not even if it is alone.
        let zero = |is_finite: bool| if is_finite { 0.0 } else { f64::NAN };
        Self {
            count: 1,
            sum_x: x,
            squares_x: zero(x.is_finite()),
            sum_y: y,
            squares_y: zero(y.is_finite()),
            products: zero(x.is_finite() && y.is_finite()),
            same_x: x,
            same_y: y,
        }
    }

    /// The moments of a part with `count` pairs, from those that were sent. Without pairs it has no means.
    fn from_part(count: u64, sent: impl Fn(Moment) -> Option<f64>) -> Self {
        let mean = |moment| sent(moment).unwrap_or_default();
        let means = Self::from_pair(mean(Moment::MeanY), mean(Moment::MeanX));
        Self {
            count,
            sum_x: means.sum_x * count as f64,
            squares_x: sent(Moment::SquaresX).unwrap_or(means.squares_x),
            sum_y: means.sum_y * count as f64,
            squares_y: sent(Moment::SquaresY).unwrap_or(means.squares_y),
            products: sent(Moment::Products).unwrap_or(means.products),
            ..means
        }
    }

    /// The measure; `None` if there are too few pairs, or it is not defined for them.
    fn compute(self, measure: Measure) -> Result<Option<f64>> {
        let Self { sum_x, squares_x, sum_y, squares_y, products, same_x, same_y, .. } = self;
        if [squares_x, squares_y, products].iter().any(|moment| moment.is_infinite()) {
            return exec_err!("value out of range: overflow");
        }
        if self.count == 0 {
            return Ok(None);
        }
        let count = self.count as f64;
        // Equal values have no other mean, so that the means of parts of them are equal, too.
        let mean = |sum: f64, same: f64| if same.is_nan() { sum / count } else { same };
        // NaN differs from zero.
        let (varies_x, varies_y) = (squares_x != 0.0, squares_y != 0.0);
        Ok(match measure {
            Measure::Variance(kind) => kind.of_squares(self.count, squares_x),
            Measure::Correlation => (varies_x && varies_y).then(|| products / (squares_x * squares_y).sqrt()),
            Measure::Covariance { is_sample: true } => (self.count > 1).then(|| products / (count - 1.0)),
            Measure::Covariance { is_sample: false } => Some(products / count),
            Measure::Slope => varies_x.then(|| products / squares_x),
            Measure::Intercept => varies_x.then(|| (sum_y - sum_x * products / squares_x) / count),
            Measure::Determination if varies_x && !varies_y => Some(1.0),
            Measure::Determination => varies_x.then(|| products * products / (squares_x * squares_y)),
            Measure::Moment(Moment::MeanX) => Some(mean(sum_x, same_x)),
            Measure::Moment(Moment::MeanY) => Some(mean(sum_y, same_y)),
            Measure::Moment(Moment::SquaresX) => Some(squares_x),
            Measure::Moment(Moment::SquaresY) => Some(squares_y),
            Measure::Moment(Moment::Products) => Some(products),
        })
    }

    /// The moments of the pairs of both.
    fn with(self, other: Self) -> Self {
        let (own, others) = (self.count as f64, other.count as f64);
        let count = own + others;
        let (sum_x, sum_y) = (self.sum_x + other.sum_x, self.sum_y + other.sum_y);
        let (x, y, scale) = match (self.count, other.count) {
            (0, _) => return other,
            (_, 0) => return self,
            (_, 1) => (other.sum_x * count - sum_x, other.sum_y * count - sum_y, 1.0 / (count * own)),
            (1, _) => (self.sum_x * count - sum_x, self.sum_y * count - sum_y, 1.0 / (count * others)),
            _ => {
                let (x, y) = (self.sum_x / own - other.sum_x / others, self.sum_y / own - other.sum_y / others);
                (x, y, own * others / count)
            }
        };
        let same = |own: f64, other: f64| if own - other == 0.0 { own } else { f64::NAN };
        let (same_x, same_y) = (same(self.same_x, other.same_x), same(self.same_y, other.same_y));
        let x = if same_x.is_nan() { x } else { 0.0 };
        let y = if same_y.is_nan() { y } else { 0.0 };
        let add = |moment: f64, added: f64, are_finite: bool| match moment + added {
            _ if moment.is_nan() => moment,
            sum if are_finite && sum.is_finite() => sum,
            _ => f64::INFINITY,
        };
        Self {
            count: self.count + other.count,
            sum_x,
            squares_x: add(self.squares_x + other.squares_x, x * x * scale, sum_x.is_finite()),
            sum_y,
            squares_y: add(self.squares_y + other.squares_y, y * y * scale, sum_y.is_finite()),
            products: add(self.products + other.products, x * y * scale, sum_x.is_finite() && sum_y.is_finite()),
            same_x,
            same_y,
        }
    }
}

impl Moments for PairMoments {
    type Measure = Measure;

    fn of_rows(values: &[ArrayRef]) -> Result<impl Iterator<Item = Result<Option<Self>>>> {
        let [y, x] = values else { return exec_err!("a regression has two arguments") };
        let pairs = y.as_primitive::<Float64Type>().iter().zip(x.as_primitive::<Float64Type>().iter());
        Ok(pairs.map(|(y, x)| Ok(y.zip(x).map(|(y, x)| Self::from_pair(y, x)))))
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        *self = self.with(*other);
        Ok(())
    }

    fn read_states(states: &[ArrayRef]) -> Result<impl Iterator<Item = Self>> {
        let [counts, sums_x, squares_x, sums_y, squares_y, products, same_x, same_y] = states else {
            return exec_err!("a regression has eight states");
        };
        let counts = counts.as_primitive::<UInt64Type>();
        let sums = [sums_x, squares_x, sums_y, squares_y, products, same_x, same_y];
        let [sums_x, squares_x, sums_y, squares_y, products, same_x, same_y] =
            sums.map(|column| column.as_primitive::<Float64Type>());
        Ok((0..counts.len()).map(move |row| Self {
            count: counts.value(row),
            sum_x: sums_x.value(row),
            squares_x: squares_x.value(row),
            sum_y: sums_y.value(row),
            squares_y: squares_y.value(row),
            products: products.value(row),
            same_x: same_x.value(row),
            same_y: same_y.value(row),
        }))
    }

    fn write_states(moments: &[Self]) -> Result<Vec<ArrayRef>> {
        let counts: UInt64Array = moments.iter().map(|moments| Some(moments.count)).collect();
        let column = |value: fn(&Self) -> f64| -> ArrayRef {
            Arc::new(moments.iter().map(|moments| Some(value(moments))).collect::<Float64Array>())
        };
        Ok(vec![
            Arc::new(counts),
            column(|moments| moments.sum_x),
            column(|moments| moments.squares_x),
            column(|moments| moments.sum_y),
            column(|moments| moments.squares_y),
            column(|moments| moments.products),
            column(|moments| moments.same_x),
            column(|moments| moments.same_y),
        ])
    }

    fn evaluate(moments: &[Self], measure: &Measure) -> Result<ArrayRef> {
        let measures = moments.iter().map(|moments| moments.compute(*measure));
        Ok(Arc::new(measures.collect::<Result<Float64Array>>()?))
    }
}

/// How a function of doubles is computed from the moments of parts.
pub struct MergedMoments {
    /// The functions that each part computes of `y` and `x`. A variance has one argument, which is both.
    pub part_functions: Vec<Arc<AggregateUDF>>,
    /// The function over their results.
    pub merging_function: Arc<AggregateUDF>,
}

/// How the variance, covariance, correlation or regression that DataFusion calls `name` is computed from parts; `None` if
/// it is none.
pub fn merged_moments(name: &str) -> Option<MergedMoments> {
    let measure = match variance::kind_of(name) {
        Some(kind) => Measure::Variance(kind),
        None => measures().into_iter().find(|(function, _)| function.name() == name)?.1,
    };
    let moments = measure.part_moments();
    let is_part = |of: &Measure| matches!(of, Measure::Moment(moment) if moments.contains(moment));
    let functions = measures().into_iter().filter(|(_, measure)| is_part(measure));
    let functions = functions.map(|(inner, measure)| Arc::new(pair_function(inner, measure)));
    let part_functions = std::iter::once(regr::regr_count_udaf()).chain(functions).collect();
    let function = MergingFunction { measure, signature: Signature::variadic_any(Volatility::Immutable) };
    Some(MergedMoments { part_functions, merging_function: Arc::new(AggregateUDF::new_from_impl(function)) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct MergingFunction {
    measure: Measure,
    signature: Signature,
}

impl AggregateUDFImpl for MergingFunction {
    crate::name_and_signature!("merge_moments");

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        Ok(state_fields(args.name))
    }

    fn accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let merged = RowMoments::new(self.measure);
        Ok(Box::new(MergingAccumulator { moments: self.measure.part_moments(), merged }))
    }
}

#[derive(Debug)]
struct MergingAccumulator {
    /// What the arguments are, after the number of pairs.
    moments: &'static [Moment],
    merged: RowMoments<PairMoments>,
}

impl Accumulator for MergingAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [counts, columns @ ..] = values else { return exec_err!("parts have a number of pairs") };
        if columns.len() != self.moments.len() {
            return exec_err!("{} moments were expected, and {} given", self.moments.len(), columns.len());
        }
        let columns: Vec<_> = columns.iter().map(|column| column.as_primitive::<Float64Type>()).collect();
        let parts = counts.as_primitive::<UInt64Type>().iter().enumerate().map(|(row, count)| {
            PairMoments::from_part(count.unwrap_or(0), |moment| {
                let column = columns[self.moments.iter().position(|known| *known == moment)?];
                column.is_valid(row).then(|| column.value(row))
            })
        });
        let parts: Vec<PairMoments> = parts.collect();
        self.merged.merge_batch(&PairMoments::write_states(&parts)?)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.merged.merge_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.merged.state()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.merged.evaluate()
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The moments of equal `y` and `x`.
    fn moments_of(values: &[f64]) -> PairMoments {
        let pairs = values.iter().map(|value| PairMoments::from_pair(*value, *value));
        pairs.fold(PairMoments::default(), PairMoments::with)
    }

    /// The moments of parts, each as its functions return them.
    fn merged(parts: &[&[f64]]) -> PairMoments {
        let parts = parts.iter().map(|values| {
            let own = moments_of(values);
            PairMoments::from_part(own.count, |moment| own.compute(Measure::Moment(moment)).unwrap())
        });
        parts.fold(PairMoments::default(), PairMoments::with)
    }

    fn variance(name: &str) -> Measure {
        Measure::Variance(variance::kind_of(name).unwrap())
    }

    #[test]
    fn a_large_mean_does_not_cancel() {
        let values = [1e9 + 4.0, 1e9 + 7.0, 1e9 + 13.0, 1e9 + 16.0];
        for split in 0..=4 {
            let moments = merged(&[&values[..split], &values[split..]]);
            assert_eq!(moments.compute(variance("var")).unwrap(), Some(30.0), "{split}");
            assert_eq!(moments.compute(Measure::Correlation).unwrap(), Some(1.0), "{split}");
        }
    }

    #[test]
    fn equal_values_have_no_variance_and_no_correlation() {
        let moments = merged(&[&[0.1; 3], &[0.1; 7], &[0.1; 2]]);
        assert_eq!(moments.compute(variance("stddev_pop")).unwrap(), Some(0.0));
        assert_eq!(moments.compute(Measure::Correlation).unwrap(), None);
        assert_eq!(moments.compute(Measure::Moment(Moment::MeanX)).unwrap(), Some(0.1));
    }

    #[test]
    fn parts_of_one_value_are_added_as_rows_are() {
        let values = [0.1, 0.7, 1e9, -3.3];
        let parts: Vec<&[f64]> = values.chunks(1).collect();
        let (parts, rows) = (merged(&parts), moments_of(&values));
        for measure in [variance("var_pop"), Measure::Slope, Measure::Intercept, Measure::Determination] {
            assert_eq!(parts.compute(measure).unwrap(), rows.compute(measure).unwrap(), "{measure:?}");
        }
    }

    #[test]
    fn infinite_values_have_a_mean_without_other_moments() {
        let parts = [(1.0, 2), (f64::INFINITY, 1)];
        let parts = parts
            .map(|(mean, count)| PairMoments::from_part(count, |moment| (moment == Moment::MeanX).then_some(mean)));
        let merged = parts.into_iter().fold(PairMoments::default(), PairMoments::with);
        assert_eq!(merged.compute(Measure::Moment(Moment::MeanX)).unwrap(), Some(f64::INFINITY));
    }

    #[test]
    fn sums_overflow_as_those_of_rows_do() {
        assert!(moments_of(&[1.5e308; 2]).compute(variance("var")).is_err());
        assert!(merged(&[&[1.5e308], &[1.5e308]]).compute(variance("var")).is_err());
    }

    #[test]
    fn too_few_values_have_no_sample() {
        assert_eq!(merged(&[&[], &[]]).compute(variance("var_pop")).unwrap(), None);
        assert_eq!(merged(&[&[1.0], &[]]).compute(variance("var")).unwrap(), None);
        assert_eq!(merged(&[&[1.0], &[]]).compute(variance("var_pop")).unwrap(), Some(0.0));
        assert_eq!(merged(&[&[1.0], &[]]).compute(Measure::Slope).unwrap(), None);
    }
}
