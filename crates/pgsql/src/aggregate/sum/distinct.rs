//! `sum(DISTINCT x)`.

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Accumulator;
use datafusion_functions_aggregate_common::utils::GenericDistinctBuffer;

use super::total::{Summand, Total, TotalPrimitive, TotalType};

/// Collects each value once and sums them at the end.
#[derive(Debug)]
pub(super) struct DistinctTotal<V: Summand<T>, T: TotalPrimitive> {
    values: GenericDistinctBuffer<V>,
    total_type: TotalType,
    totals: std::marker::PhantomData<T>,
}

impl<V: Summand<T>, T: TotalPrimitive> DistinctTotal<V, T> {
    pub(super) fn new(value: DataType, total_type: TotalType) -> Self {
        Self { values: GenericDistinctBuffer::new(value), total_type, totals: std::marker::PhantomData }
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
