//! Collects the values of groups until they are sorted.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, ListArray, UInt32Array};
use arrow::buffer::OffsetBuffer;
use arrow::compute::{concat, filter, is_not_null, take};
use arrow::datatypes::{DataType, Field};
use datafusion::common::{DataFusionError, Result, ScalarValue, exec_err};
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};

use super::evaluation::OrderedSetSpec;
use crate::aggregate::apply_filter;

/// The values of all groups, in order of arrival.
#[derive(Debug)]
pub(super) struct GroupValues {
    data_type: DataType,
    batches: Vec<ArrayRef>,
    /// The group of each value.
    groups: Vec<u32>,
    batch_bytes: usize,
    group_count: usize,
    spec: OrderedSetSpec,
}

impl GroupValues {
    pub(super) fn new(data_type: DataType, spec: OrderedSetSpec) -> Self {
        Self { data_type, batches: Vec::new(), groups: Vec::new(), batch_bytes: 0, group_count: 0, spec }
    }

    /// Adds the values that are not NULL.
    fn add(&mut self, values: &ArrayRef, group_indices: &[usize]) -> Result<()> {
        let mask = is_not_null(values.as_ref())?;
        let filtered = if values.logical_null_count() == 0 { values.clone() } else { filter(values, &mask)? };
        // `gc` frees the strings that were filtered out.
        let filtered: ArrayRef = match filtered.as_string_view_opt() {
            Some(views) => Arc::new(views.gc()),
            None => filtered,
        };
        let groups = group_indices.iter().zip(mask.values().iter()).filter(|(_, is_value)| *is_value);
        for (group, _) in groups {
            self.groups.push(u32::try_from(*group).map_err(|_| too_many_values_error())?);
        }
        if !filtered.is_empty() {
            self.batch_bytes += filtered.get_array_memory_size();
            self.batches.push(filtered);
        }
        Ok(())
    }

    /// Takes the collected values, group by group, with the bounds of each group.
    fn sorted_by_group(&mut self) -> Result<(ArrayRef, Vec<usize>)> {
        let batches: Vec<&dyn Array> = self.batches.iter().map(AsRef::as_ref).collect();
        let values = match batches.as_slice() {
            [] => arrow::array::new_empty_array(&self.data_type),
            batches => concat(batches)?,
        };
        self.batches.clear();
        self.batch_bytes = 0;
        let mut bounds = vec![0_usize; self.group_count + 1];
        for group in &self.groups {
            bounds[*group as usize + 1] += 1;
        }
        for group in 0..self.group_count {
            bounds[group + 1] += bounds[group];
        }
        if self.group_count < 2 {
            return Ok((values, bounds));
        }
        let mut next = bounds.clone();
        let mut order = vec![0_u32; self.groups.len()];
        for (row, group) in self.groups.iter().enumerate() {
            let position = &mut next[*group as usize];
            order[*position] = u32::try_from(row).map_err(|_| too_many_values_error())?;
            *position += 1;
        }
        Ok((take(&values, &UInt32Array::from(order), None)?, bounds))
    }

    /// Takes the values and bounds of the groups to emit. The other groups stay.
    fn emit(&mut self, emit_to: EmitTo) -> Result<(ArrayRef, Vec<usize>)> {
        let (values, bounds) = self.sorted_by_group()?;
        let EmitTo::First(count) = emit_to else {
            self.groups = Vec::new();
            self.group_count = 0;
            return Ok((values, bounds));
        };
        let emitted = bounds[count];
        self.groups.clear();
        for (group, [start, end]) in bounds.array_windows().skip(count).enumerate() {
            let group = u32::try_from(group).map_err(|_| too_many_values_error())?;
            self.groups.extend(std::iter::repeat_n(group, end - start));
        }
        self.group_count -= count;
        let rest = values.slice(emitted, values.len() - emitted);
        if !rest.is_empty() {
            self.batch_bytes = rest.get_array_memory_size();
            self.batches.push(rest);
        }
        Ok((values.slice(0, emitted), bounds[..=count].to_vec()))
    }

    fn to_lists(&self, values: ArrayRef, bounds: &[usize]) -> Result<ListArray> {
        let lengths = bounds.array_windows().map(|[start, end]| end - start);
        if i32::try_from(values.len()).is_err() {
            return Err(too_many_values_error());
        }
        let field = Arc::new(Field::new_list_field(self.data_type.clone(), true));
        Ok(ListArray::try_new(field, OffsetBuffer::from_lengths(lengths), values, None)?)
    }
}

fn too_many_values_error() -> DataFusionError {
    DataFusionError::Execution("too many values for an ordered-set aggregate; group or filter them first".to_owned())
}

impl GroupsAccumulator for GroupValues {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.group_count = total_num_groups;
        let Some(values) = values.first() else { return exec_err!("an ordered-set aggregate has a value") };
        match opt_filter {
            Some(_) => self.add(&apply_filter(values, opt_filter)?, group_indices),
            None => self.add(values, group_indices),
        }
    }

    fn merge_batch(&mut self, values: &[ArrayRef], group_indices: &[usize], total_num_groups: usize) -> Result<()> {
        self.group_count = total_num_groups;
        let Some(lists) = values.first() else { return exec_err!("an ordered-set aggregate has a state") };
        let lists = lists.as_list::<i32>();
        let mut groups = Vec::new();
        for (row, group) in group_indices.iter().enumerate() {
            groups.extend(std::iter::repeat_n(*group, lists.value_length(row).try_into().unwrap_or(0)));
        }
        let bound = |row: usize| usize::try_from(lists.value_offsets()[row]).unwrap_or(0);
        let (start, end) = (bound(0), bound(lists.len()));
        self.add(&lists.values().slice(start, end - start), &groups)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let (values, bounds) = self.emit(emit_to)?;
        self.spec.evaluate_groups(&values, &bounds)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let (values, bounds) = self.emit(emit_to)?;
        Ok(vec![Arc::new(self.to_lists(values, &bounds)?)])
    }

    fn convert_to_state(&self, values: &[ArrayRef], opt_filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let Some(values) = values.first() else { return exec_err!("an ordered-set aggregate has a value") };
        let values = apply_filter(values, opt_filter)?;
        let bounds: Vec<usize> = (0..=values.len()).collect();
        Ok(vec![Arc::new(self.to_lists(values, &bounds)?)])
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.batch_bytes + self.groups.capacity() * size_of::<u32>()
    }
}

/// The values of all rows.
#[derive(Debug)]
pub(super) struct OrderedSetAccumulator(pub(super) GroupValues);

impl Accumulator for OrderedSetAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let rows = values.first().map_or(0, |values| values.len());
        self.0.update_batch(values, &vec![0; rows], None, 1)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let rows = states.first().map_or(0, |states| states.len());
        self.0.merge_batch(states, &vec![0; rows], 1)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.0.group_count = 1;
        let states = self.0.state(EmitTo::All)?;
        states.iter().map(|state| ScalarValue::try_from_array(state, 0)).collect()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.0.group_count = 1;
        ScalarValue::try_from_array(&self.0.evaluate(EmitTo::All)?, 0)
    }

    fn size(&self) -> usize {
        GroupsAccumulator::size(&self.0)
    }
}
