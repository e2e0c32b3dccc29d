//! The sum of all values.

use std::marker::PhantomData;

use arrow::array::{ArrayRef, AsArray};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::Accumulator;

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
