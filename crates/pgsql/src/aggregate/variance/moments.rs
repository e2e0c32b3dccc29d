//! Count, sum and sum of squares of numerics, and the measures computed from them.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Decimal128Array, Decimal256Array, Int64Array};
use arrow::datatypes::{DataType, Decimal128Type, Decimal256Type, Int64Type, i256};
use datafusion::common::{DataFusionError, Result, exec_err};

use crate::aggregate::moments::Moments;

/// The measure of dispersion to compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::aggregate) struct VarianceKind {
    /// Of a sample, rather than of the population.
    pub(super) is_sample: bool,
    /// The standard deviation, rather than the variance.
    pub(super) is_root: bool,
}

impl VarianceKind {
    /// The measure of `count` doubles with the sum `squares` of the squared differences from their mean.
    pub(in crate::aggregate) fn of_squares(self, count: u64, squares: f64) -> Option<f64> {
        let others = if self.is_sample { count.saturating_sub(1) } else { count };
        let variance = (others > 0).then(|| squares / others as f64);
        variance.map(|variance| if self.is_root { variance.sqrt() } else { variance })
    }
}

/// The digits after the point of the values and of the result.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scales {
    pub(super) from: i8,
    pub(super) to: i8,
}

/// A measure of exact numbers, and its type.
#[derive(Debug)]
pub(super) struct ExactMeasure {
    pub(super) kind: VarianceKind,
    pub(super) scales: Scales,
    pub(super) data_type: DataType,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ExactMoments {
    count: i64,
    sum: i128,
    squares: i256,
}

fn overflow_error() -> DataFusionError {
    DataFusionError::Execution(
        "numeric field overflow: a variance has too many digits; cast its argument to double precision".to_owned(),
    )
}

impl Moments for ExactMoments {
    type Measure = ExactMeasure;

    const CAN_REMOVE: bool = true;

    fn of_rows(values: &[ArrayRef]) -> Result<impl Iterator<Item = Result<Option<Self>>>> {
        let [values] = values else { return exec_err!("a variance has one argument") };
        let moments = |value: i128| -> Result<Self> {
            let square = i256::from_i128(value).checked_mul(i256::from_i128(value)).ok_or_else(overflow_error)?;
            Ok(Self { count: 1, sum: value, squares: square })
        };
        Ok(values.as_primitive::<Decimal128Type>().iter().map(move |value| value.map(moments).transpose()))
    }

    #[inline]
    fn merge(&mut self, other: &Self) -> Result<()> {
        self.count += other.count;
        self.sum = self.sum.checked_add(other.sum).ok_or_else(overflow_error)?;
        self.squares = self.squares.checked_add(other.squares).ok_or_else(overflow_error)?;
        Ok(())
    }

    fn remove(&mut self, other: &Self) -> Result<()> {
        self.count -= other.count;
        self.sum = self.sum.checked_sub(other.sum).ok_or_else(overflow_error)?;
        self.squares = self.squares.checked_sub(other.squares).ok_or_else(overflow_error)?;
        Ok(())
    }

    fn read_states(states: &[ArrayRef]) -> Result<impl Iterator<Item = Self>> {
        let [counts, sums, squares] = states else { return exec_err!("a variance has three states") };
        let counts = counts.as_primitive::<Int64Type>();
        let (sums, squares) = (sums.as_primitive::<Decimal128Type>(), squares.as_primitive::<Decimal256Type>());
        Ok((0..counts.len()).map(move |row| Self {
            count: counts.value(row),
            sum: sums.value(row),
            squares: squares.value(row),
        }))
    }

    fn write_states(moments: &[Self]) -> Result<Vec<ArrayRef>> {
        let counts: Int64Array = moments.iter().map(|moments| Some(moments.count)).collect();
        let sums: Decimal128Array = moments.iter().map(|moments| Some(moments.sum)).collect();
        let squares: Decimal256Array = moments.iter().map(|moments| Some(moments.squares)).collect();
        let sums = sums.with_precision_and_scale(38, 0)?;
        Ok(vec![Arc::new(counts), Arc::new(sums), Arc::new(squares.with_precision_and_scale(76, 0)?)])
    }

    fn evaluate(moments: &[Self], measure: &ExactMeasure) -> Result<ArrayRef> {
        let answers = moments.iter().map(|moments| moments.compute(measure.kind, measure.scales));
        let answers: Decimal128Array = answers.collect::<Result<_>>()?;
        Ok(Arc::new(answers.with_data_type(measure.data_type.clone())))
    }
}

impl ExactMoments {
    /// Computes the measure; `None` if there are too few values.
    fn compute(&self, measure: VarianceKind, scales: Scales) -> Result<Option<i128>> {
        if self.count <= i64::from(measure.is_sample) {
            return Ok(None);
        }
        let count = i256::from(self.count);
        let sum = i256::from_i128(self.sum);
        let numerator = count
            .checked_mul(self.squares)
            .zip(sum.checked_mul(sum))
            .and_then(|(left, right)| left.checked_sub(right))
            .ok_or_else(overflow_error)?;
        let others = if measure.is_sample { count - i256::ONE } else { count };
        let denominator = count.checked_mul(others).ok_or_else(overflow_error)?;
        let (from, to) = (i32::from(scales.from), i32::from(scales.to));
        let answer = if measure.is_root {
            root(numerator, denominator, 2 * (to - from))?
        } else {
            quotient(numerator, denominator, to - 2 * from)?
        };
        let answer = answer.to_i128().filter(|answer| answer.unsigned_abs() < 10_u128.pow(38));
        answer.map(Some).ok_or_else(overflow_error)
    }
}

fn power_of_ten(exponent: i32) -> Result<i256> {
    i256::from_i128(10).checked_pow(u32::try_from(exponent).unwrap_or(0)).ok_or_else(overflow_error)
}

/// Computes `numerator / denominator * 10^exponent`, rounded. Both are positive.
fn quotient(numerator: i256, denominator: i256, exponent: i32) -> Result<i256> {
    let (numerator, denominator) = if exponent >= 0 {
        (numerator.checked_mul(power_of_ten(exponent)?), Some(denominator))
    } else {
        (Some(numerator), denominator.checked_mul(power_of_ten(-exponent)?))
    };
    let (numerator, denominator) = numerator.zip(denominator).ok_or_else(overflow_error)?;
    let (whole, rest) = (numerator / denominator, numerator % denominator);
    Ok(if rest >= denominator - rest { whole + i256::ONE } else { whole })
}

/// Computes the square root of `numerator / denominator * 10^exponent`, rounded. The exponent is even.
fn root(numerator: i256, denominator: i256, exponent: i32) -> Result<i256> {
    // Computes as many digits as the type has room for; the others are zero.
    let mut positions = exponent;
    loop {
        match quotient(numerator, denominator, positions) {
            Ok(square) => {
                let unit = power_of_ten((exponent - positions) / 2)?;
                return rounded_root(square).checked_mul(unit).ok_or_else(overflow_error);
            }
            Err(error) if positions <= 0 => return Err(error),
            Err(_) => positions -= 2,
        }
    }
}

fn rounded_root(square: i256) -> i256 {
    if square <= i256::ONE {
        return square;
    }
    let two = i256::ONE + i256::ONE;
    let bits = 256 - square.leading_zeros();
    let mut root = i256::ONE << u8::try_from(bits.div_ceil(2)).unwrap_or(u8::MAX);
    loop {
        let next = (root + square / root) / two;
        if next >= root {
            break;
        }
        root = next;
    }
    if square - root * root > root { root + i256::ONE } else { root }
}
