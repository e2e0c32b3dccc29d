//! The total over a moving window of values from which nothing is subtracted: an infinity would never disappear.

/// A value that can be merged with others, in their order.
pub(super) trait Merge: Copy + Default {
    fn merged(self, other: Self) -> Self;
}

/// A queue made of two stacks. Each entry of the leaving stack has the total of itself and of all entries that leave
/// later.
#[derive(Debug, Default)]
pub(super) struct MergeQueue<T> {
    /// The one that starts with the oldest value is last.
    leaving: Vec<T>,
    entered: Vec<T>,
    entered_total: T,
}

impl<T: Merge> MergeQueue<T> {
    pub(super) fn push(&mut self, entry: T) {
        self.entered_total = self.entered_total.merged(entry);
        self.entered.push(entry);
    }

    pub(super) fn remove_oldest(&mut self) {
        if self.leaving.is_empty() {
            let mut total = T::default();
            while let Some(entry) = self.entered.pop() {
                total = entry.merged(total);
                self.leaving.push(total);
            }
            self.entered_total = T::default();
        }
        self.leaving.pop();
    }

    pub(super) fn total(&self) -> T {
        self.leaving.last().copied().unwrap_or_default().merged(self.entered_total)
    }

    /// The bytes of its entries.
    pub(super) fn size(&self) -> usize {
        (self.leaving.capacity() + self.entered.capacity()) * size_of::<T>()
    }
}
