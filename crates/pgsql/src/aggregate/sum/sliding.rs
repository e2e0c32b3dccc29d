//! The sum over a moving window.

use std::marker::PhantomData;

use arrow::array::{Array, ArrayRef, AsArray};
use datafusion::common::{Result, ScalarValue, exec_err, not_impl_err};
use datafusion::logical_expr::Accumulator;

use super::total::{Summand, Total, TotalPrimitive, TotalType, batch_total};

/// The sum over a window. Values that leave the window are subtracted.
#[derive(Debug)]
pub(super) struct RetractingTotal<V, T: TotalPrimitive> {
    total: T::Native,
    count: usize,
    total_type: TotalType,
    values: PhantomData<fn(V)>,
}

impl<V, T: TotalPrimitive> RetractingTotal<V, T> {
    pub(super) fn new(total_type: TotalType) -> Self {
        Self { total: T::Native::default(), count: 0, total_type, values: PhantomData }
    }
}

impl<V: Summand<T>, T: TotalPrimitive> Accumulator for RetractingTotal<V, T> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return exec_err!("sum has one argument") };
        if let Some(more) = batch_total::<V, T>(values.as_primitive::<V>(), &self.total_type)? {
            self.total = self.total.checked_plus(more).ok_or_else(|| self.total_type.overflow_error())?;
            self.count += values.len() - values.null_count();
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return exec_err!("sum has one argument") };
        if let Some(less) = batch_total::<V, T>(values.as_primitive::<V>(), &self.total_type)? {
            self.total = self.total.checked_minus(less).ok_or_else(|| self.total_type.overflow_error())?;
            self.count -= values.len() - values.null_count();
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.total_type.to_scalar::<T>((self.count > 0).then_some(self.total))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        not_impl_err!("the state of a window aggregate cannot be merged")
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        not_impl_err!("the state of a window aggregate cannot be merged")
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// The sum over a window of floating-point numbers, from which nothing is subtracted: 1e300 + 1 - 1e300 would be zero,
/// and an infinity would never disappear.
///
/// It is a queue made of two stacks. Each entry of the leaving stack is stored as the sum of itself and all entries
/// that leave later.
#[derive(Debug)]
pub(super) struct QueuedTotal<V, T: TotalPrimitive> {
    /// The sums of the leaving stack; the one that starts with the oldest value is last.
    leaving: Vec<T::Native>,
    entered: Vec<T::Native>,
    entered_total: T::Native,
    total_type: TotalType,
    values: PhantomData<fn(V)>,
}

impl<V, T: TotalPrimitive> QueuedTotal<V, T> {
    pub(super) fn new(total_type: TotalType) -> Self {
        let entered_total = T::Native::default();
        Self { leaving: Vec::new(), entered: Vec::new(), entered_total, total_type, values: PhantomData }
    }

    fn remove_oldest(&mut self) -> Result<()> {
        if self.leaving.is_empty() {
            let mut total = T::Native::default();
            while let Some(value) = self.entered.pop() {
                total = total.checked_plus(value).ok_or_else(|| self.total_type.overflow_error())?;
                self.leaving.push(total);
            }
            self.entered_total = T::Native::default();
        }
        self.leaving.pop();
        Ok(())
    }
}

impl<V: Summand<T>, T: TotalPrimitive> Accumulator for QueuedTotal<V, T> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return exec_err!("sum has one argument") };
        for value in values.as_primitive::<V>().iter().flatten() {
            let value = value.into();
            self.entered_total =
                self.entered_total.checked_plus(value).ok_or_else(|| self.total_type.overflow_error())?;
            self.entered.push(value);
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return exec_err!("sum has one argument") };
        for _ in 0..values.len() - values.null_count() {
            self.remove_oldest()?;
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let total = match (self.leaving.last(), self.entered.is_empty()) {
            (None, true) => None,
            (None, false) => Some(self.entered_total),
            (Some(leaving), true) => Some(*leaving),
            (Some(leaving), false) => {
                Some(leaving.checked_plus(self.entered_total).ok_or_else(|| self.total_type.overflow_error())?)
            }
        };
        self.total_type.to_scalar::<T>(total)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        not_impl_err!("the state of a window aggregate cannot be merged")
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        not_impl_err!("the state of a window aggregate cannot be merged")
    }

    fn size(&self) -> usize {
        size_of_val(self) + (self.leaving.capacity() + self.entered.capacity()) * size_of::<T::Native>()
    }
}
