//! The moments of floating-point numbers.
//!
//! It has the digits that PostgreSQL computes. DataFusion's merge of groups also gives NaN for large values:
//! `docs/decisions/upstream` has the text to be filed.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array, UInt64Array};
use arrow::datatypes::{Float64Type, UInt64Type};
use datafusion::common::{Result, exec_err};

use super::moments::VarianceKind;
use crate::aggregate::moments::Moments;

/// Count, sum, and sum of the squared differences from the mean: NaN beside a value that is not finite, infinite where
/// finite values have overflowed. Computed as in PostgreSQL (by Youngs and Cramer), without a rounded mean.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DoubleMoments {
    count: u64,
    sum: f64,
    squares: f64,
}

impl DoubleMoments {
    fn from_value(value: f64) -> Self {
        // An infinity has no difference from itself, not even if it is alone.
        Self { count: 1, sum: value, squares: if value.is_finite() { 0.0 } else { f64::NAN } }
    }

    fn with(self, other: Self) -> Self {
        let (own, others) = (self.count as f64, other.count as f64);
        let count = own + others;
        let sum = self.sum + other.sum;
        let added = match (self.count, other.count) {
            (0, _) => return other,
            (_, 0) => return self,
            (_, 1) => (other.sum * count - sum).powi(2) / (count * own),
            (1, _) => (self.sum * count - sum).powi(2) / (count * others),
            _ => own * others * (self.sum / own - other.sum / others).powi(2) / count,
        };
        let mut squares = self.squares + other.squares;
        if !squares.is_nan() {
            squares += added;
            if !sum.is_finite() || !squares.is_finite() {
                squares = f64::INFINITY;
            }
        }
        Self { count: self.count + other.count, sum, squares }
    }

    fn measure(self, kind: VarianceKind) -> Result<Option<f64>> {
        if self.squares.is_infinite() {
            return exec_err!("value out of range: overflow");
        }
        Ok(kind.of_squares(self.count, self.squares))
    }
}

impl Moments for DoubleMoments {
    type Measure = VarianceKind;

    fn of_rows(values: &[ArrayRef]) -> Result<impl Iterator<Item = Result<Option<Self>>>> {
        let [values] = values else { return exec_err!("a variance has one argument") };
        Ok(values.as_primitive::<Float64Type>().iter().map(|value| Ok(value.map(Self::from_value))))
    }

    #[inline]
    fn merge(&mut self, other: &Self) -> Result<()> {
        *self = self.with(*other);
        Ok(())
    }

    fn read_states(states: &[ArrayRef]) -> Result<impl Iterator<Item = Self>> {
        let [counts, sums, squares] = states else { return exec_err!("a variance has three states") };
        let counts = counts.as_primitive::<UInt64Type>();
        let (sums, squares) = (sums.as_primitive::<Float64Type>(), squares.as_primitive::<Float64Type>());
        let rows = counts.values().iter().zip(sums.values()).zip(squares.values());
        Ok(rows.map(|((count, sum), squares)| Self { count: *count, sum: *sum, squares: *squares }))
    }

    fn write_states(moments: &[Self]) -> Result<Vec<ArrayRef>> {
        let counts: UInt64Array = moments.iter().map(|moments| Some(moments.count)).collect();
        let sums: Float64Array = moments.iter().map(|moments| Some(moments.sum)).collect();
        let squares: Float64Array = moments.iter().map(|moments| Some(moments.squares)).collect();
        Ok(vec![Arc::new(counts), Arc::new(sums), Arc::new(squares)])
    }

    fn evaluate(moments: &[Self], kind: &VarianceKind) -> Result<ArrayRef> {
        let measures = moments.iter().map(|moments| moments.measure(*kind));
        Ok(Arc::new(measures.collect::<Result<Float64Array>>()?))
    }
}
