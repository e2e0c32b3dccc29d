//! Variance, covariance, correlation and linear regression of floats, from the moments of each branch.
//!
//! A branch computes the number, the means and the sums of squared differences from these means, which SQL calls
//! `regr_count`, `regr_avgx`, `regr_sxx` and so on. They are merged by the
//! [parallel algorithm](https://en.wikipedia.org/wiki/Algorithms_for_calculating_variance#Parallel_algorithm) of Chan et
//! al. Sums of squares could be merged by `sum`, but cancel where the mean is large.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type, UInt64Type};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::functions_aggregate::regr;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};

/// What is computed from the moments, by the name that DataFusion gives to the function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Measure {
    Variance { is_sample: bool },
    Deviation { is_sample: bool },
    Covariance { is_sample: bool },
    Correlation,
    Slope,
    Intercept,
    Determination,
    Moment(Moment),
}

/// One of the moments of pairs of `y` and `x`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Moment {
    Count,
    MeanX,
    MeanY,
    SquaresX,
    SquaresY,
    Products,
}

impl Moment {
    const ALL: [Self; 6] = [Self::Count, Self::MeanX, Self::MeanY, Self::SquaresX, Self::SquaresY, Self::Products];

    /// The function that computes it of `y` and `x`.
    pub(super) fn function(self) -> Arc<AggregateUDF> {
        match self {
            Self::Count => regr::regr_count_udaf(),
            Self::MeanX => regr::regr_avgx_udaf(),
            Self::MeanY => regr::regr_avgy_udaf(),
            Self::SquaresX => regr::regr_sxx_udaf(),
            Self::SquaresY => regr::regr_syy_udaf(),
            Self::Products => regr::regr_sxy_udaf(),
        }
    }
}

impl Measure {
    /// The measure of the function `name` of DataFusion.
    pub(super) fn of_function(name: &str) -> Option<Self> {
        Some(match name {
            "var" => Self::Variance { is_sample: true },
            "var_pop" => Self::Variance { is_sample: false },
            "stddev" => Self::Deviation { is_sample: true },
            "stddev_pop" => Self::Deviation { is_sample: false },
            "covar_samp" => Self::Covariance { is_sample: true },
            "covar_pop" => Self::Covariance { is_sample: false },
            "corr" => Self::Correlation,
            "regr_slope" => Self::Slope,
            "regr_intercept" => Self::Intercept,
            "regr_r2" => Self::Determination,
            "regr_count" => Self::Moment(Moment::Count),
            "regr_avgx" => Self::Moment(Moment::MeanX),
            "regr_avgy" => Self::Moment(Moment::MeanY),
            "regr_sxx" => Self::Moment(Moment::SquaresX),
            "regr_syy" => Self::Moment(Moment::SquaresY),
            "regr_sxy" => Self::Moment(Moment::Products),
            _ => return None,
        })
    }

    /// The moments that it needs. A variance has one argument, which is both `y` and `x`.
    pub(super) fn moments(self) -> &'static [Moment] {
        use Moment::{Count, MeanX, MeanY, Products, SquaresX, SquaresY};
        match self {
            Self::Variance { .. } | Self::Deviation { .. } | Self::Moment(SquaresX) => &[Count, MeanX, SquaresX],
            Self::Covariance { .. } | Self::Moment(Products) => &[Count, MeanX, MeanY, Products],
            Self::Slope => &[Count, MeanX, MeanY, SquaresX, Products],
            Self::Intercept => &[Count, MeanX, MeanY, SquaresX, Products],
            Self::Correlation | Self::Determination => &Moment::ALL,
            Self::Moment(Count) => &[Count],
            Self::Moment(MeanX) => &[Count, MeanX],
            Self::Moment(MeanY) => &[Count, MeanY],
            Self::Moment(SquaresY) => &[Count, MeanY, SquaresY],
        }
    }

    /// The function that merges the moments of the branches, which are its arguments.
    pub(super) fn merging_function(self) -> Arc<AggregateUDF> {
        let signature = Signature::variadic_any(Volatility::Immutable);
        Arc::new(AggregateUDF::new_from_impl(MergeMoments { measure: self, signature }))
    }
}

/// Moments of pairs; of the same value twice for a variance.
#[derive(Debug, Clone, Copy, Default)]
struct Moments {
    count: u64,
    mean_x: f64,
    mean_y: f64,
    squares_x: f64,
    squares_y: f64,
    products: f64,
}

impl Moments {
    /// Reads the moments of a branch, which has no means without values.
    fn of_row(moments: &[Moment], columns: &[ArrayRef], row: usize) -> Self {
        let mut read = Self::default();
        for (moment, column) in moments.iter().zip(columns).filter(|(_, column)| column.is_valid(row)) {
            let value = || column.as_primitive::<Float64Type>().value(row);
            match moment {
                Moment::Count => read.count = column.as_primitive::<UInt64Type>().value(row),
                Moment::MeanX => read.mean_x = value(),
                Moment::MeanY => read.mean_y = value(),
                Moment::SquaresX => read.squares_x = value(),
                Moment::SquaresY => read.squares_y = value(),
                Moment::Products => read.products = value(),
            }
        }
        read
    }

    fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = *other;
            return;
        }
        let count = self.count + other.count;
        let share = other.count as f64 / count as f64;
        let weight = self.count as f64 * share;
        // Equal means have no difference, so that the variance of equal values is zero exactly.
        let (x, y) = (other.mean_x - self.mean_x, other.mean_y - self.mean_y);
        self.count = count;
        self.mean_x += x * share;
        self.mean_y += y * share;
        self.squares_x += other.squares_x + x * weight * x;
        self.squares_y += other.squares_y + y * weight * y;
        self.products += other.products + x * weight * y;
    }

    /// The measure; `None` if there are too few values, or it is not defined for them.
    fn compute(&self, measure: Measure) -> Option<f64> {
        let count = self.count as f64;
        let divisor = |is_sample: bool| self.count.checked_sub(u64::from(is_sample)).filter(|count| *count > 0);
        // NaN differs from zero.
        let is_line = self.squares_x != 0.0;
        let slope = self.products / self.squares_x;
        match measure {
            Measure::Variance { is_sample } => Some(self.squares_x / divisor(is_sample)? as f64),
            Measure::Deviation { is_sample } => Some((self.squares_x / divisor(is_sample)? as f64).sqrt()),
            Measure::Covariance { is_sample } => Some(self.products / divisor(is_sample)? as f64),
            Measure::Correlation => (is_line && self.squares_y != 0.0).then(|| {
                let deviations = ((self.squares_x / count).sqrt(), (self.squares_y / count).sqrt());
                self.products / count / deviations.1 / deviations.0
            }),
            Measure::Slope => is_line.then_some(slope),
            Measure::Intercept => is_line.then_some(self.mean_y - slope * self.mean_x),
            Measure::Determination if is_line && self.squares_y == 0.0 => Some(1.0),
            Measure::Determination => {
                let products = self.products / count;
                is_line.then(|| products * products / (self.squares_x / count * (self.squares_y / count)))
            }
            Measure::Moment(_) if self.count == 0 => None,
            Measure::Moment(Moment::Count) => Some(count),
            Measure::Moment(Moment::MeanX) => Some(self.mean_x),
            Measure::Moment(Moment::MeanY) => Some(self.mean_y),
            Measure::Moment(Moment::SquaresX) => Some(self.squares_x),
            Measure::Moment(Moment::SquaresY) => Some(self.squares_y),
            Measure::Moment(Moment::Products) => Some(self.products),
        }
    }
}

/// The function over the results of branches: its arguments are [`Measure::moments`].
#[derive(Debug, PartialEq, Eq, Hash)]
struct MergeMoments {
    measure: Measure,
    signature: Signature,
}

impl AggregateUDFImpl for MergeMoments {
    tidegate_pgsql::name_and_signature!("merge_moments");

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.measure {
            Measure::Moment(Moment::Count) => DataType::UInt64,
            _ => DataType::Float64,
        })
    }

    fn is_nullable(&self) -> bool {
        self.measure != Measure::Moment(Moment::Count)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let field = |moment: &Moment| {
            let data_type = if *moment == Moment::Count { DataType::UInt64 } else { DataType::Float64 };
            Arc::new(Field::new(format_state_name(args.name, moment.function().name()), data_type, true))
        };
        Ok(Moment::ALL.iter().map(field).collect())
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if args.is_distinct {
            return exec_err!("moments of distinct values cannot be merged");
        }
        Ok(Box::new(MomentsAccumulator { measure: self.measure, moments: Moments::default() }))
    }
}

#[derive(Debug)]
struct MomentsAccumulator {
    measure: Measure,
    moments: Moments,
}

impl MomentsAccumulator {
    fn merge_rows(&mut self, moments: &[Moment], columns: &[ArrayRef]) -> Result<()> {
        if moments.len() != columns.len() {
            return exec_err!("{} moments were expected, and {} given", moments.len(), columns.len());
        }
        for row in 0..columns[0].len() {
            self.moments.merge(&Moments::of_row(moments, columns, row));
        }
        Ok(())
    }
}

impl Accumulator for MomentsAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.merge_rows(self.measure.moments(), values)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.merge_rows(&Moment::ALL, states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let Moments { count, mean_x, mean_y, squares_x, squares_y, products } = self.moments;
        let floats = [mean_x, mean_y, squares_x, squares_y, products].map(ScalarValue::from);
        Ok([ScalarValue::from(count)].into_iter().chain(floats).collect())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(match self.measure {
            Measure::Moment(Moment::Count) => ScalarValue::from(self.moments.count),
            measure => ScalarValue::Float64(self.moments.compute(measure)),
        })
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments_of(values: &[f64]) -> Moments {
        let mut moments = Moments::default();
        for value in values {
            let one = Moments { count: 1, mean_x: *value, mean_y: *value, ..Moments::default() };
            moments.merge(&one);
        }
        moments
    }

    #[test]
    fn a_large_mean_does_not_cancel() {
        let values = [1e9 + 4.0, 1e9 + 7.0, 1e9 + 13.0, 1e9 + 16.0];
        for split in 0..=4 {
            let mut moments = moments_of(&values[..split]);
            moments.merge(&moments_of(&values[split..]));
            assert_eq!(moments.compute(Measure::Variance { is_sample: true }), Some(30.0), "{split}");
            assert_eq!(moments.compute(Measure::Correlation), Some(1.0), "{split}");
        }
    }

    #[test]
    fn equal_values_have_no_variance_and_no_correlation() {
        let mut moments = moments_of(&[0.1; 3]);
        moments.merge(&moments_of(&[0.1; 7]));
        moments.merge(&moments_of(&[0.1; 2]));
        assert_eq!(moments.compute(Measure::Deviation { is_sample: false }), Some(0.0));
        assert_eq!(moments.compute(Measure::Correlation), None);
    }

    #[test]
    fn large_values_do_not_overflow_where_their_differences_are_small() {
        let mut moments = moments_of(&[1.5e308, 1.5e308]);
        moments.merge(&moments_of(&[1.5e308]));
        assert_eq!(moments.compute(Measure::Variance { is_sample: true }), Some(0.0));
    }

    #[test]
    fn too_few_values_have_no_sample() {
        assert_eq!(moments_of(&[]).compute(Measure::Variance { is_sample: false }), None);
        assert_eq!(moments_of(&[1.0]).compute(Measure::Variance { is_sample: true }), None);
        assert_eq!(moments_of(&[1.0]).compute(Measure::Variance { is_sample: false }), Some(0.0));
        assert_eq!(moments_of(&[1.0]).compute(Measure::Slope), None);
    }
}
