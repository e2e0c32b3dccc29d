//! Accumulates moments over all rows, over windows and of groups, and totals over a moving frame.

use std::fmt::Debug;

use arrow::array::{ArrayRef, BooleanArray};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};

use super::apply_filter;

/// The values of a frame from which nothing is subtracted: 1e300 + 1 - 1e300 would be zero, and an infinity would never
/// disappear.
///
/// It is a queue made of two stacks. Each entry of the leaving stack is stored as the total of itself and all entries
/// that leave later.
#[derive(Debug, Default)]
pub(super) struct FrameQueue<T> {
    /// The totals of the leaving stack; the one that starts with the oldest value is last.
    leaving: Vec<T>,
    entered: Vec<T>,
    entered_total: T,
}

impl<T: Copy + Default> FrameQueue<T> {
    pub(super) fn push(&mut self, value: T, add: impl Fn(T, T) -> Result<T>) -> Result<()> {
        self.entered_total = add(self.entered_total, value)?;
        self.entered.push(value);
        Ok(())
    }

    pub(super) fn remove_oldest(&mut self, add: impl Fn(T, T) -> Result<T>) -> Result<()> {
        if self.leaving.is_empty() {
            let mut total = T::default();
            while let Some(value) = self.entered.pop() {
                total = add(value, total)?;
                self.leaving.push(total);
            }
            self.entered_total = T::default();
        }
        self.leaving.pop();
        Ok(())
    }

    /// Returns the total; `None` if the frame is empty.
    pub(super) fn total(&self, add: impl Fn(T, T) -> Result<T>) -> Result<Option<T>> {
        match (self.leaving.last(), self.entered.is_empty()) {
            (None, is_empty) => Ok((!is_empty).then_some(self.entered_total)),
            (Some(leaving), true) => Ok(Some(*leaving)),
            (Some(leaving), false) => add(*leaving, self.entered_total).map(Some),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        (self.leaving.capacity() + self.entered.capacity()) * size_of::<T>()
    }
}

/// The methods of an accumulator for moving frames only.
macro_rules! frame_methods {
    () => {
        fn supports_retract_batch(&self) -> bool {
            true
        }

        fn state(&mut self) -> Result<Vec<ScalarValue>> {
            datafusion::common::not_impl_err!("the state of a window aggregate cannot be merged")
        }

        fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
            datafusion::common::not_impl_err!("the state of a window aggregate cannot be merged")
        }
    };
}

pub(super) use frame_methods;

/// The moments of some values, such as their number, their sum and the sum of their squares.
pub(super) trait Moments: Debug + Copy + Default + Send + Sync + 'static {
    /// What is computed from the moments.
    type Measure: Debug + Send + Sync + 'static;

    const CAN_REMOVE: bool = false;

    /// Returns the moments of each row; `None` if an argument is NULL.
    fn of_rows(values: &[ArrayRef]) -> Result<impl Iterator<Item = Result<Option<Self>>>>;

    fn merge(&mut self, other: &Self) -> Result<()>;

    /// Removes what was merged, if [`Self::CAN_REMOVE`].
    fn remove(&mut self, _: &Self) -> Result<()> {
        internal_err!("moments cannot be removed")
    }

    /// Reads the moments from rows of states.
    fn read_states(states: &[ArrayRef]) -> Result<impl Iterator<Item = Self>>;

    fn write_states(moments: &[Self]) -> Result<Vec<ArrayRef>>;

    fn evaluate(moments: &[Self], measure: &Self::Measure) -> Result<ArrayRef>;

    fn merged(mut self, other: Self) -> Result<Self> {
        self.merge(&other).map(|()| self)
    }
}

/// Calls `visit` with the moments of each row whose arguments are not NULL.
fn visit_rows<M: Moments>(values: &[ArrayRef], mut visit: impl FnMut(M) -> Result<()>) -> Result<()> {
    M::of_rows(values)?.try_for_each(|moments| moments?.map_or(Ok(()), &mut visit))
}

fn evaluate_one<M: Moments>(moments: M, measure: &M::Measure) -> Result<ScalarValue> {
    ScalarValue::try_from_array(&M::evaluate(&[moments], measure)?, 0)
}

/// The moments over all rows, or over a window if values can be removed.
#[derive(Debug)]
pub(super) struct RowMoments<M: Moments> {
    moments: M,
    measure: M::Measure,
}

impl<M: Moments> RowMoments<M> {
    pub(super) fn new(measure: M::Measure) -> Self {
        Self { moments: M::default(), measure }
    }
}

impl<M: Moments> Accumulator for RowMoments<M> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        visit_rows(values, |moments| self.moments.merge(&moments))
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        visit_rows(values, |moments| self.moments.remove(&moments))
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
        evaluate_one(self.moments, &self.measure)
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// The moments over a window, from which none are removed.
#[derive(Debug)]
pub(super) struct QueuedMoments<M: Moments> {
    queue: FrameQueue<M>,
    measure: M::Measure,
}

impl<M: Moments> QueuedMoments<M> {
    pub(super) fn new(measure: M::Measure) -> Self {
        Self { queue: FrameQueue::default(), measure }
    }
}

impl<M: Moments> Accumulator for QueuedMoments<M> {
    frame_methods!();

    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        visit_rows(values, |moments| self.queue.push(moments, M::merged))
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        visit_rows::<M>(values, |_| self.queue.remove_oldest(M::merged))
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        evaluate_one(self.queue.total(M::merged)?.unwrap_or_default(), &self.measure)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.queue.bytes()
    }
}

/// The moments of each group.
#[derive(Debug)]
pub(super) struct GroupMoments<M: Moments> {
    groups: Vec<M>,
    measure: M::Measure,
}

impl<M: Moments> GroupMoments<M> {
    pub(super) fn new(measure: M::Measure) -> Self {
        Self { groups: Vec::new(), measure }
    }
}

/// The values, without those of rows that `filter` excludes.
fn filtered(values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
    values.iter().map(|values| apply_filter(values, filter)).collect()
}

impl<M: Moments> GroupsAccumulator for GroupMoments<M> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.groups.resize(total_num_groups, M::default());
        let values = filtered(values, opt_filter)?;
        for (moments, group) in M::of_rows(&values)?.zip(group_indices) {
            if let Some(moments) = moments? {
                self.groups[*group].merge(&moments)?;
            }
        }
        Ok(())
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
        let values = filtered(values, opt_filter)?;
        let moments = M::of_rows(&values)?.map(|moments| moments.map(Option::unwrap_or_default));
        M::write_states(&moments.collect::<Result<Vec<_>>>()?)
    }

    fn size(&self) -> usize {
        self.groups.capacity() * size_of::<M>()
    }
}
