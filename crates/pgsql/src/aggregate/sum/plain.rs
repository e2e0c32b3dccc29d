//! The sum of all values, or of all distinct values.

use std::marker::PhantomData;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::Accumulator;
use datafusion_functions_aggregate_common::utils::GenericDistinctBuffer;

use super::total::{Summand, Total, TotalPrimitive, TotalType, batch_total};

/// A sum; `None` before the first value.
#[derive(Debug)]
pub(super) struct PlainTotal<V, T: TotalPrimitive> {
    total: Option<T::Native>,
    total_type: TotalType,
    values: PhantomData<V>,
}

impl<V, T: TotalPrimitive> PlainTotal<V, T> {
    pub(super) fn new(total_type: TotalType) -> Self {
        Self { total: None, total_type, values: PhantomData }
    }

    fn add(&mut self, more: Option<T::Native>) -> Result<()> {
        if let Some(more) = more {
            let total = self.total.unwrap_or_default().checked_plus(more);
            self.total = Some(total.ok_or_else(|| self.total_type.overflow_error())?);
        }
        Ok(())
    }
}

impl<V: Summand<T>, T: TotalPrimitive> Accumulator for PlainTotal<V, T> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return exec_err!("sum has one argument") };
        self.add(batch_total::<V, T>(values.as_primitive::<V>(), &self.total_type)?)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [totals] = states else { return exec_err!("sum has one state") };
        let wide = TotalType { is_narrow: false, ..self.total_type.clone() };
        self.add(batch_total::<T, T>(totals.as_primitive::<T>(), &wide)?)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::new_primitive::<T>(self.total, &self.total_type.data_type)?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.total_type.to_scalar::<T>(self.total)
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// Collects each value once and sums them at the end.
#[derive(Debug)]
pub(super) struct DistinctTotal<V: Summand<T>, T: TotalPrimitive> {
    values: GenericDistinctBuffer<V>,
    total_type: TotalType,
    totals: PhantomData<T>,
}

impl<V: Summand<T>, T: TotalPrimitive> DistinctTotal<V, T> {
    pub(super) fn new(value: DataType, total_type: TotalType) -> Self {
        Self { values: GenericDistinctBuffer::new(value), total_type, totals: PhantomData }
    }
}

impl<V: Summand<T>, T: TotalPrimitive> Accumulator for DistinctTotal<V, T> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.values.update_batch(values)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.values.merge_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.values.state()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.values.values.is_empty() {
            return self.total_type.to_scalar::<T>(None);
        }
        let values = self.values.values.iter().map(|value| value.0.into());
        let total =
            values.into_iter().try_fold(T::Native::default(), |total: T::Native, value| total.checked_plus(value));
        self.total_type.to_scalar::<T>(Some(total.ok_or_else(|| self.total_type.overflow_error())?))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.size()
    }
}
