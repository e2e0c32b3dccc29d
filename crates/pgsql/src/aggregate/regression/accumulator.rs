//! Accumulates the moments of pairs over all rows, over a moving window, and of groups.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, Float64Array, UInt64Array};
use arrow::datatypes::{Float64Type, UInt64Type};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};

use super::moments::{Measure, PairMoments};
use crate::aggregate::apply_filter;
use crate::aggregate::frame_queue::{FrameQueue, frame_methods};

/// Returns the moments of each row; `None` without one of the values.
fn moments_of(values: &[ArrayRef]) -> Result<impl Iterator<Item = Option<PairMoments>> + '_> {
    let [y, x] = values else { return exec_err!("a regression has two arguments") };
    let pairs = y.as_primitive::<Float64Type>().iter().zip(x.as_primitive::<Float64Type>().iter());
    Ok(pairs.map(|(y, x)| Some(PairMoments::from_pair(y?, x?))))
}

/// Reads the moments from rows of states.
fn read_states(states: &[ArrayRef]) -> Result<impl Iterator<Item = PairMoments> + '_> {
    let [counts, sums_x, squares_x, sums_y, squares_y, products, same_x, same_y] = states else {
        return exec_err!("a regression has eight states");
    };
    let counts = counts.as_primitive::<UInt64Type>();
    let sums = [sums_x, squares_x, sums_y, squares_y, products, same_x, same_y];
    let [sums_x, squares_x, sums_y, squares_y, products, same_x, same_y] =
        sums.map(|column| column.as_primitive::<Float64Type>());
    Ok((0..counts.len()).map(move |row| PairMoments {
        count: counts.value(row),
        sum_x: sums_x.value(row),
        squares_x: squares_x.value(row),
        sum_y: sums_y.value(row),
        squares_y: squares_y.value(row),
        products: products.value(row),
        same_x: same_x.value(row),
        same_y: same_y.value(row),
    }))
}

fn write_states(moments: &[PairMoments]) -> Vec<ArrayRef> {
    let counts: UInt64Array = moments.iter().map(|moments| Some(moments.count)).collect();
    let column = |value: fn(&PairMoments) -> f64| -> ArrayRef {
        Arc::new(moments.iter().map(|moments| Some(value(moments))).collect::<Float64Array>())
    };
    vec![
        Arc::new(counts),
        column(|moments| moments.sum_x),
        column(|moments| moments.squares_x),
        column(|moments| moments.sum_y),
        column(|moments| moments.squares_y),
        column(|moments| moments.products),
        column(|moments| moments.same_x),
        column(|moments| moments.same_y),
    ]
}

/// The moments over all rows.
#[derive(Debug)]
pub(super) struct RowPairs {
    total: PairMoments,
    measure: Measure,
}

impl RowPairs {
    pub(super) fn new(measure: Measure) -> Self {
        Self { total: PairMoments::default(), measure }
    }
}

impl Accumulator for RowPairs {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.total = moments_of(values)?.flatten().fold(self.total, PairMoments::merged);
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.total = read_states(states)?.fold(self.total, PairMoments::merged);
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        write_states(&[self.total]).iter().map(|state| ScalarValue::try_from_array(state, 0)).collect()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.total.compute(self.measure).map(ScalarValue::Float64)
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// The moments over a window.
#[derive(Debug)]
pub(super) struct QueuedPairs {
    queue: FrameQueue<PairMoments>,
    measure: Measure,
}

impl QueuedPairs {
    pub(super) fn new(measure: Measure) -> Self {
        Self { queue: FrameQueue::default(), measure }
    }
}

impl Accumulator for QueuedPairs {
    frame_methods!();

    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let mut pairs = moments_of(values)?.flatten();
        pairs.try_for_each(|pair| self.queue.push(pair, |left, right| Ok(left.merged(right))))
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let mut pairs = moments_of(values)?.flatten();
        pairs.try_for_each(|_| self.queue.remove_oldest(|left, right| Ok(left.merged(right))))
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let total = self.queue.total(|left, right| Ok(left.merged(right)))?.unwrap_or_default();
        total.compute(self.measure).map(ScalarValue::Float64)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.queue.bytes()
    }
}

/// The moments of each group.
#[derive(Debug)]
pub(super) struct GroupPairs {
    groups: Vec<PairMoments>,
    measure: Measure,
}

impl GroupPairs {
    pub(super) fn new(measure: Measure) -> Self {
        Self { groups: Vec::new(), measure }
    }

    fn merge(&mut self, rows: impl Iterator<Item = Option<PairMoments>>, groups: &[usize], groups_count: usize) {
        self.groups.resize(groups_count, PairMoments::default());
        for (moments, group) in rows.zip(groups) {
            if let Some(moments) = moments {
                self.groups[*group] = self.groups[*group].merged(moments);
            }
        }
    }
}

/// The values, without those of rows that `filter` excludes.
fn filtered(values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
    values.iter().map(|values| apply_filter(values, filter)).collect()
}

impl GroupsAccumulator for GroupPairs {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        let values = filtered(values, opt_filter)?;
        self.merge(moments_of(&values)?, group_indices, total_num_groups);
        Ok(())
    }

    fn merge_batch(&mut self, values: &[ArrayRef], group_indices: &[usize], total_num_groups: usize) -> Result<()> {
        self.merge(read_states(values)?.map(Some), group_indices, total_num_groups);
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let groups = emit_to.take_needed(&mut self.groups);
        let measures = groups.into_iter().map(|moments| moments.compute(self.measure));
        Ok(Arc::new(measures.collect::<Result<Float64Array>>()?))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(write_states(&emit_to.take_needed(&mut self.groups)))
    }

    fn convert_to_state(&self, values: &[ArrayRef], opt_filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let values = filtered(values, opt_filter)?;
        let moments = moments_of(&values)?.map(Option::unwrap_or_default);
        Ok(write_states(&moments.collect::<Vec<_>>()))
    }

    fn size(&self) -> usize {
        self.groups.capacity() * size_of::<PairMoments>()
    }
}
