//! The sum over a moving window.

use std::marker::PhantomData;

use arrow::array::{Array, ArrayRef, AsArray};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::Accumulator;

use super::total::{Summand, Total, TotalPrimitive, TotalType, batch_total};
use crate::aggregate::frame_queue::{FrameQueue, frame_methods};

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
    frame_methods!();

    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return exec_err!("sum has one argument") };
        if let Some(more) = batch_total::<V, T>(values.as_primitive::<V>(), &self.total_type)? {
            self.total = self.total_type.add(self.total, more)?;
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

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.total_type.to_scalar::<T>((self.count > 0).then_some(self.total))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// The sum over a window of floating-point numbers.
#[derive(Debug)]
pub(super) struct QueuedTotal<V, T: TotalPrimitive> {
    queue: FrameQueue<T::Native>,
    total_type: TotalType,
    values: PhantomData<fn(V)>,
}

impl<V, T: TotalPrimitive> QueuedTotal<V, T> {
    pub(super) fn new(total_type: TotalType) -> Self {
        Self { queue: FrameQueue::default(), total_type, values: PhantomData }
    }
}

impl<V: Summand<T>, T: TotalPrimitive> Accumulator for QueuedTotal<V, T> {
    frame_methods!();

    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return exec_err!("sum has one argument") };
        let mut values = values.as_primitive::<V>().iter().flatten();
        values.try_for_each(|value| self.queue.push(value.into(), |left, right| self.total_type.add(left, right)))
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return exec_err!("sum has one argument") };
        for _ in 0..values.len() - values.null_count() {
            self.queue.remove_oldest(|left, right| self.total_type.add(left, right))?;
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let total = self.queue.total(|left, right| self.total_type.add(left, right))?;
        self.total_type.to_scalar::<T>(total)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.queue.bytes()
    }
}
