//! Addition of numbers with overflow checks.

use std::fmt::Debug;

use arrow::array::{Array, ArrowPrimitiveType, PrimitiveArray};
use arrow::datatypes::{DataType, IntervalMonthDayNano};
use datafusion::common::{DataFusionError, Result, ScalarValue};

use crate::number::{NUMERIC_UNITS_MAX, out_of_range_error};

/// An Arrow type of totals.
pub(super) trait TotalPrimitive: ArrowPrimitiveType<Native: Total> + Debug + Send + Sync {}

impl<P: ArrowPrimitiveType<Native: Total> + Debug + Send + Sync> TotalPrimitive for P {}

/// An Arrow type of values that are added to totals of the type `T`.
pub(super) trait Summand<T: TotalPrimitive>:
    ArrowPrimitiveType<Native: Into<T::Native>> + Debug + Send + Sync
{
}

impl<T: TotalPrimitive, P: ArrowPrimitiveType<Native: Into<T::Native>> + Debug + Send + Sync> Summand<T> for P {}

/// A total that values are added to.
pub(super) trait Total: Copy + Default + Debug + Send + Sync + 'static {
    /// Whether an added value can be subtracted again without an error.
    const IS_EXACT: bool;
    /// Returns `None` if the sum is out of range.
    fn checked_plus(self, other: Self) -> Option<Self>;
    /// Returns `None` if the difference is out of range.
    fn checked_minus(self, other: Self) -> Option<Self>;
    /// Whether a numeric of 38 digits can hold the total; true for other types.
    fn fits_numeric(self) -> bool {
        true
    }
}

impl Total for i64 {
    const IS_EXACT: bool = true;

    #[inline]
    fn checked_plus(self, other: Self) -> Option<Self> {
        self.checked_add(other)
    }

    fn checked_minus(self, other: Self) -> Option<Self> {
        self.checked_sub(other)
    }
}

impl Total for i128 {
    const IS_EXACT: bool = true;

    #[inline]
    fn checked_plus(self, other: Self) -> Option<Self> {
        self.checked_add(other)
    }

    fn checked_minus(self, other: Self) -> Option<Self> {
        self.checked_sub(other)
    }

    fn fits_numeric(self) -> bool {
        self.unsigned_abs() < NUMERIC_UNITS_MAX
    }
}

impl Total for f64 {
    const IS_EXACT: bool = false;

    #[inline]
    fn checked_plus(self, other: Self) -> Option<Self> {
        let sum = self + other;
        (sum.is_finite() || !self.is_finite() || !other.is_finite()).then_some(sum)
    }

    fn checked_minus(self, other: Self) -> Option<Self> {
        self.checked_plus(-other)
    }
}

impl Total for IntervalMonthDayNano {
    const IS_EXACT: bool = true;

    fn checked_plus(self, other: Self) -> Option<Self> {
        Some(Self {
            months: self.months.checked_add(other.months)?,
            days: self.days.checked_add(other.days)?,
            nanoseconds: self.nanoseconds.checked_add(other.nanoseconds)?,
        })
    }

    fn checked_minus(self, other: Self) -> Option<Self> {
        Some(Self {
            months: self.months.checked_sub(other.months)?,
            days: self.days.checked_sub(other.days)?,
            nanoseconds: self.nanoseconds.checked_sub(other.nanoseconds)?,
        })
    }
}

/// The types of a sum.
#[derive(Debug, Clone)]
pub(super) struct TotalType {
    /// The type of the totals during the addition.
    pub(super) data_type: DataType,
    /// The type of the result.
    pub(super) result: DataType,
    /// Whether the sum of the values of one batch always fits into a total.
    pub(super) is_narrow: bool,
}

impl TotalType {
    /// Returns PostgreSQL's error for a sum that is out of range.
    pub(super) fn overflow_error(&self) -> DataFusionError {
        match &self.result {
            DataType::Interval(_) | DataType::Duration(_) => {
                DataFusionError::Execution("interval out of range".to_owned())
            }
            DataType::Float32 | DataType::Float64 => {
                DataFusionError::Execution("value out of range: overflow".to_owned())
            }
            DataType::Decimal128(..) => DataFusionError::Execution(
                "numeric field overflow: a sum has more than 38 digits; round its values first, for instance \
                 sum(round(x, 4))"
                    .to_owned(),
            ),
            other => out_of_range_error(other),
        }
    }

    pub(super) fn add<T: Total>(&self, left: T, right: T) -> Result<T> {
        left.checked_plus(right).ok_or_else(|| self.overflow_error())
    }

    /// Converts `total` to the type of the result.
    pub(super) fn to_scalar<T: TotalPrimitive>(&self, total: Option<T::Native>) -> Result<ScalarValue> {
        if total.is_some_and(|total| !total.fits_numeric()) {
            return Err(self.overflow_error());
        }
        let total = ScalarValue::new_primitive::<T>(total, &self.data_type)?;
        if self.result == self.data_type { Ok(total) } else { self.narrow(total) }
    }

    fn narrow(&self, total: ScalarValue) -> Result<ScalarValue> {
        let narrow = total.cast_to(&self.result)?;
        let is_lost = |value: &ScalarValue| matches!(value, ScalarValue::Float32(Some(value)) if value.is_infinite());
        let was_finite = matches!(total, ScalarValue::Float64(Some(value)) if value.is_finite());
        if was_finite && is_lost(&narrow) { Err(self.overflow_error()) } else { Ok(narrow) }
    }
}

/// Returns the sum of the values of a batch; `None` if all are NULL.
pub(super) fn batch_total<V: Summand<T>, T: TotalPrimitive>(
    values: &PrimitiveArray<V>,
    total_type: &TotalType,
) -> Result<Option<T::Native>> {
    if values.null_count() == values.len() {
        return Ok(None);
    }
    let overflow = || total_type.overflow_error();
    let add = |total: T::Native, value: V::Native| total.checked_plus(value.into());
    if values.null_count() > 0 {
        let total = values.iter().flatten().try_fold(T::Native::default(), add);
        return total.map(Some).ok_or_else(overflow);
    }
    if !total_type.is_narrow {
        let total = values.values().iter().copied().try_fold(T::Native::default(), add);
        return total.map(Some).ok_or_else(overflow);
    }
    // Several independent sums let the processor add in parallel.
    let mut pools = [T::Native::default(); 8];
    let chunks = values.values().chunks_exact(pools.len());
    for value in chunks.remainder() {
        pools[0] = add(pools[0], *value).ok_or_else(overflow)?;
    }
    for chunk in chunks {
        for (pool, value) in pools.iter_mut().zip(chunk) {
            *pool = pool.checked_plus((*value).into()).ok_or_else(overflow)?;
        }
    }
    let total = pools.into_iter().try_fold(T::Native::default(), T::Native::checked_plus);
    total.map(Some).ok_or_else(overflow)
}
