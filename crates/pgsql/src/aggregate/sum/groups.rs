//! The sums of many groups.

use std::marker::PhantomData;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, PrimitiveArray};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use datafusion_functions_aggregate_common::aggregate::groups_accumulator::accumulate::NullState;

use super::total::{Summand, Total, TotalPrimitive, TotalType};
use crate::aggregate::apply_filter;

/// Keeps one sum for each group.
#[derive(Debug)]
pub(super) struct GroupTotals<V, T: TotalPrimitive> {
    totals: Vec<T::Native>,
    nulls: NullState,
    total_type: TotalType,
    values: PhantomData<fn(V)>,
}

impl<V, T: TotalPrimitive> GroupTotals<V, T> {
    pub(super) fn new(total_type: TotalType) -> Self {
        Self { totals: Vec::new(), nulls: NullState::new(), total_type, values: PhantomData }
    }

    fn add<A: Summand<T>>(
        &mut self,
        values: &PrimitiveArray<A>,
        groups: &[usize],
        filter: Option<&BooleanArray>,
        count: usize,
    ) -> Result<()> {
        self.totals.resize(count, T::Native::default());
        let totals = &mut self.totals;
        let mut has_overflowed = false;
        self.nulls.accumulate(groups, values, filter, count, |group, value| {
            match totals[group].checked_plus(value.into()) {
                Some(total) => totals[group] = total,
                None => has_overflowed = true,
            }
        });
        if has_overflowed { Err(self.total_type.overflow_error()) } else { Ok(()) }
    }

    fn emit(&mut self, emit_to: EmitTo) -> PrimitiveArray<T> {
        let totals = emit_to.take_needed(&mut self.totals);
        let nulls = self.nulls.build(emit_to);
        PrimitiveArray::<T>::new(totals.into(), nulls).with_data_type(self.total_type.data_type.clone())
    }
}

impl<V: Summand<T>, T: TotalPrimitive> GroupsAccumulator for GroupTotals<V, T> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        let [values] = values else { return exec_err!("sum has one argument") };
        self.add(values.as_primitive::<V>(), group_indices, opt_filter, total_num_groups)
    }

    fn merge_batch(&mut self, values: &[ArrayRef], group_indices: &[usize], total_num_groups: usize) -> Result<()> {
        let [totals] = values else { return exec_err!("sum has one state") };
        self.add(totals.as_primitive::<T>(), group_indices, None, total_num_groups)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let totals = self.emit(emit_to);
        if totals.values().iter().any(|total| !total.fits_numeric()) {
            return Err(self.total_type.overflow_error());
        }
        if self.total_type.result == self.total_type.data_type {
            return Ok(Arc::new(totals));
        }
        let narrow = arrow::compute::cast(&totals, &self.total_type.result)?;
        if let Some(narrow) = narrow.as_primitive_opt::<arrow::datatypes::Float32Type>() {
            let wide = arrow::compute::cast(&totals, &arrow::datatypes::DataType::Float64)?;
            let mut pairs = narrow.values().iter().zip(wide.as_primitive::<arrow::datatypes::Float64Type>().values());
            if pairs.any(|(narrow, wide)| narrow.is_infinite() && wide.is_finite()) {
                return Err(self.total_type.overflow_error());
            }
        }
        Ok(narrow)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![Arc::new(self.emit(emit_to))])
    }

    fn convert_to_state(&self, values: &[ArrayRef], opt_filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let [values] = values else { return exec_err!("sum has one argument") };
        let values = apply_filter(values, opt_filter)?;
        let totals = values.as_primitive::<V>().unary::<_, T>(Into::into);
        Ok(vec![Arc::new(totals.with_data_type(self.total_type.data_type.clone()))])
    }

    fn size(&self) -> usize {
        self.totals.capacity() * size_of::<T::Native>() + self.nulls.size()
    }
}
