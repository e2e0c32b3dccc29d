//! Accumulates moments over all rows, windows and groups.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, Decimal128Array, Decimal256Array, Int64Array};
use arrow::datatypes::{DataType, Decimal128Type, Decimal256Type, Int64Type};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};
use datafusion_functions_aggregate_common::aggregate::groups_accumulator::accumulate::accumulate;

use super::moments::{Moments, Scales, VarianceKind};
use crate::aggregate::apply_filter;

/// Which measure to compute from the moments.
#[derive(Debug)]
struct VarianceSpec {
    measure: VarianceKind,
    scales: Scales,
    result: DataType,
}

impl VarianceSpec {
    fn evaluate_moments(&self, moments: &[Moments]) -> Result<ArrayRef> {
        let answers = moments.iter().map(|moments| moments.compute(self.measure, self.scales));
        let answers: Decimal128Array = answers.collect::<Result<_>>()?;
        Ok(Arc::new(answers.with_data_type(self.result.clone())))
    }
}

fn write_states(moments: &[Moments]) -> Result<Vec<ArrayRef>> {
    let counts: Int64Array = moments.iter().map(|moments| Some(moments.count)).collect();
    let sums: Decimal128Array = moments.iter().map(|moments| Some(moments.sum)).collect();
    let squares: Decimal256Array = moments.iter().map(|moments| Some(moments.squares)).collect();
    let sums = sums.with_precision_and_scale(38, 0)?;
    Ok(vec![Arc::new(counts), Arc::new(sums), Arc::new(squares.with_precision_and_scale(76, 0)?)])
}

/// Reads the moments from rows of states.
fn read_states(states: &[ArrayRef]) -> Result<impl Iterator<Item = Moments>> {
    let [counts, sums, squares] = states else { return exec_err!("a variance has three states") };
    let counts = counts.as_primitive::<Int64Type>();
    let (sums, squares) = (sums.as_primitive::<Decimal128Type>(), squares.as_primitive::<Decimal256Type>());
    Ok((0..counts.len()).map(move |row| Moments {
        count: counts.value(row),
        sum: sums.value(row),
        squares: squares.value(row),
    }))
}

/// The moments over all rows, or over a window.
#[derive(Debug)]
pub(super) struct RowMoments {
    moments: Moments,
    spec: VarianceSpec,
}

impl RowMoments {
    pub(super) fn new(measure: VarianceKind, scales: Scales, result: DataType) -> Self {
        Self { moments: Moments::default(), spec: VarianceSpec { measure, scales, result } }
    }
}

impl Accumulator for RowMoments {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return exec_err!("a variance has one argument") };
        values.as_primitive::<Decimal128Type>().iter().flatten().try_for_each(|value| self.moments.add(value))
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return exec_err!("a variance has one argument") };
        values.as_primitive::<Decimal128Type>().iter().flatten().try_for_each(|value| self.moments.remove(value))
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        read_states(states)?.try_for_each(|moments| self.moments.merge(&moments))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        write_states(&[self.moments])?.iter().map(|state| ScalarValue::try_from_array(state, 0)).collect()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        ScalarValue::try_from_array(&self.spec.evaluate_moments(&[self.moments])?, 0)
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// The moments of each group.
#[derive(Debug)]
pub(super) struct GroupMoments {
    groups: Vec<Moments>,
    spec: VarianceSpec,
}

impl GroupMoments {
    pub(super) fn new(measure: VarianceKind, scales: Scales, result: DataType) -> Self {
        Self { groups: Vec::new(), spec: VarianceSpec { measure, scales, result } }
    }
}

impl GroupsAccumulator for GroupMoments {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        let [values] = values else { return exec_err!("a variance has one argument") };
        self.groups.resize(total_num_groups, Moments::default());
        let groups = &mut self.groups;
        let mut added = Ok(());
        accumulate(group_indices, values.as_primitive::<Decimal128Type>(), opt_filter, |group, value| {
            if let Err(error) = groups[group].add(value) {
                added = Err(error);
            }
        });
        added
    }

    fn merge_batch(&mut self, values: &[ArrayRef], group_indices: &[usize], total_num_groups: usize) -> Result<()> {
        self.groups.resize(total_num_groups, Moments::default());
        let mut pairs = read_states(values)?.zip(group_indices);
        pairs.try_for_each(|(moments, group)| self.groups[*group].merge(&moments))
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        self.spec.evaluate_moments(&emit_to.take_needed(&mut self.groups))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        write_states(&emit_to.take_needed(&mut self.groups))
    }

    fn convert_to_state(&self, values: &[ArrayRef], opt_filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let [values] = values else { return exec_err!("a variance has one argument") };
        let values = apply_filter(values, opt_filter)?;
        let moments = values.as_primitive::<Decimal128Type>().iter().map(|value| {
            let mut moments = Moments::default();
            value.map_or(Ok(()), |value| moments.add(value)).map(|()| moments)
        });
        write_states(&moments.collect::<Result<Vec<_>>>()?)
    }

    fn size(&self) -> usize {
        self.groups.capacity() * size_of::<Moments>()
    }
}
