//! Accumulates moments over all rows, windows and groups.

use std::fmt::Debug;

use arrow::array::{ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray};
use datafusion::common::{Result, ScalarValue, exec_err, internal_err};
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};
use datafusion_functions_aggregate_common::aggregate::groups_accumulator::accumulate::accumulate;

use crate::aggregate::apply_filter;

type Native<M> = <<M as VarianceMoments>::Values as ArrowPrimitiveType>::Native;

/// The moments of some values.
pub(super) trait VarianceMoments: Debug + Copy + Default + Send + Sync + 'static {
    type Values: ArrowPrimitiveType + Send;
    /// What is computed from the moments.
    type Measure: Debug + Send + Sync + 'static;

    const CAN_REMOVE: bool = false;

    fn add(&mut self, value: Native<Self>) -> Result<()>;

    /// Removes a value, if [`Self::CAN_REMOVE`].
    fn remove(&mut self, _: Native<Self>) -> Result<()> {
        internal_err!("a value cannot be removed from the moments")
    }

    fn merge(&mut self, other: &Self) -> Result<()>;

    /// Reads the moments from rows of states.
    fn read_states(states: &[ArrayRef]) -> Result<impl Iterator<Item = Self>>;

    fn write_states(moments: &[Self]) -> Result<Vec<ArrayRef>>;

    fn evaluate(moments: &[Self], measure: &Self::Measure) -> Result<ArrayRef>;
}

/// The moments over all rows, or over a window.
#[derive(Debug)]
pub(super) struct RowMoments<M: VarianceMoments> {
    moments: M,
    measure: M::Measure,
}

impl<M: VarianceMoments> RowMoments<M> {
    pub(super) fn new(measure: M::Measure) -> Self {
        Self { moments: M::default(), measure }
    }
}

impl<M: VarianceMoments> Accumulator for RowMoments<M> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return exec_err!("a variance has one argument") };
        values.as_primitive::<M::Values>().iter().flatten().try_for_each(|value| self.moments.add(value))
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return exec_err!("a variance has one argument") };
        values.as_primitive::<M::Values>().iter().flatten().try_for_each(|value| self.moments.remove(value))
    }

    fn supports_retract_batch(&self) -> bool {
        M::CAN_REMOVE
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        M::read_states(states)?.try_for_each(|moments| self.moments.merge(&moments))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        M::write_states(&[self.moments])?.iter().map(|state| ScalarValue::try_from_array(state, 0)).collect()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        ScalarValue::try_from_array(&M::evaluate(&[self.moments], &self.measure)?, 0)
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// The moments of each group.
#[derive(Debug)]
pub(super) struct GroupMoments<M: VarianceMoments> {
    groups: Vec<M>,
    measure: M::Measure,
}

impl<M: VarianceMoments> GroupMoments<M> {
    pub(super) fn new(measure: M::Measure) -> Self {
        Self { groups: Vec::new(), measure }
    }
}

impl<M: VarianceMoments> GroupsAccumulator for GroupMoments<M> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        let [values] = values else { return exec_err!("a variance has one argument") };
        self.groups.resize(total_num_groups, M::default());
        let groups = &mut self.groups;
        let mut added = Ok(());
        accumulate(group_indices, values.as_primitive::<M::Values>(), opt_filter, |group, value| {
            if let Err(error) = groups[group].add(value) {
                added = Err(error);
            }
        });
        added
    }

    fn merge_batch(&mut self, values: &[ArrayRef], group_indices: &[usize], total_num_groups: usize) -> Result<()> {
        self.groups.resize(total_num_groups, M::default());
        let mut pairs = M::read_states(values)?.zip(group_indices);
        pairs.try_for_each(|(moments, group)| self.groups[*group].merge(&moments))
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        M::evaluate(&emit_to.take_needed(&mut self.groups), &self.measure)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        M::write_states(&emit_to.take_needed(&mut self.groups))
    }

    fn convert_to_state(&self, values: &[ArrayRef], opt_filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let [values] = values else { return exec_err!("a variance has one argument") };
        let values = apply_filter(values, opt_filter)?;
        let moments = values.as_primitive::<M::Values>().iter().map(|value| {
            let mut moments = M::default();
            value.map_or(Ok(()), |value| moments.add(value)).map(|()| moments)
        });
        M::write_states(&moments.collect::<Result<Vec<_>>>()?)
    }

    fn size(&self) -> usize {
        self.groups.capacity() * size_of::<M>()
    }
}
