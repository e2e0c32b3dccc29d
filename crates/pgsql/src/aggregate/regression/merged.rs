//! A measure of all rows, from the moments of parts of them.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, FieldRef, Float64Type, UInt64Type};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::functions_aggregate::regr;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};

use super::moments::{Measure, Moment, PairMoments};
use super::{measures, pair_function, state_fields};
use crate::aggregate::moments::{Moments, RowMoments};
use crate::aggregate::variance;

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
