//! Totals over a moving frame.

use datafusion::common::Result;

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
