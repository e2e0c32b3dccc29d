//! Variance of floating-point numbers, over all rows and over a moving window.

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{Float64Type, UInt64Type};
use datafusion::common::{Result, ScalarValue, exec_err, not_impl_err};
use datafusion::logical_expr::Accumulator;

use super::moments::VarianceKind;

/// Count, mean, and sum of the squared differences from the mean.
#[derive(Debug, Clone, Copy, Default)]
struct DoubleMoments {
    count: u64,
    mean: f64,
    squares: f64,
}

impl DoubleMoments {
    fn from_value(value: f64) -> Self {
        // An infinity has no difference from itself, not even if it is alone.
        Self { count: 1, mean: value, squares: if value.is_finite() { 0.0 } else { f64::NAN } }
    }

    fn merged(self, other: Self) -> Self {
        if self.count == 0 || other.count == 0 {
            return if self.count == 0 { other } else { self };
        }
        let count = self.count + other.count;
        let (difference, share) = (other.mean - self.mean, other.count as f64 / count as f64);
        let squares = self.squares + other.squares + difference * difference * self.count as f64 * share;
        Self { count, mean: self.mean + difference * share, squares }
    }

    fn measure(self, kind: VarianceKind) -> ScalarValue {
        let others = if kind.is_sample { self.count.saturating_sub(1) } else { self.count };
        let variance = (others > 0).then(|| self.squares / others as f64);
        ScalarValue::Float64(variance.map(|variance| if kind.is_root { variance.sqrt() } else { variance }))
    }
}

fn moments_of(values: &[ArrayRef]) -> Result<impl Iterator<Item = DoubleMoments> + '_> {
    let [values] = values else { return exec_err!("a variance has one argument") };
    Ok(values.as_primitive::<Float64Type>().iter().flatten().map(DoubleMoments::from_value))
}

/// The moments over all rows.
#[derive(Debug)]
pub(super) struct RowDoubles {
    total: DoubleMoments,
    kind: VarianceKind,
}

impl RowDoubles {
    pub(super) fn new(kind: VarianceKind) -> Self {
        Self { total: DoubleMoments::default(), kind }
    }
}

impl Accumulator for RowDoubles {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.total = moments_of(values)?.fold(self.total, DoubleMoments::merged);
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [counts, means, squares] = states else { return exec_err!("a variance has three states") };
        let counts = counts.as_primitive::<UInt64Type>();
        let (means, squares) = (means.as_primitive::<Float64Type>(), squares.as_primitive::<Float64Type>());
        for row in 0..counts.len() {
            let (count, mean, squares) = (counts.value(row), means.value(row), squares.value(row));
            self.total = self.total.merged(DoubleMoments { count, mean, squares });
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let DoubleMoments { count, mean, squares } = self.total;
        Ok(vec![ScalarValue::from(count), ScalarValue::from(mean), ScalarValue::from(squares)])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(self.total.measure(self.kind))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// The moments over a window, from which nothing is subtracted: an infinity would never disappear.
///
/// It is a queue made of two stacks, as for sums. Each entry of the leaving stack has the moments of itself and of all
/// entries that leave later.
#[derive(Debug)]
pub(super) struct QueuedDoubles {
    /// The one that starts with the oldest value is last.
    leaving: Vec<DoubleMoments>,
    entered: Vec<DoubleMoments>,
    entered_total: DoubleMoments,
    kind: VarianceKind,
}

impl QueuedDoubles {
    pub(super) fn new(kind: VarianceKind) -> Self {
        Self { leaving: Vec::new(), entered: Vec::new(), entered_total: DoubleMoments::default(), kind }
    }

    fn remove_oldest(&mut self) {
        if self.leaving.is_empty() {
            let mut total = DoubleMoments::default();
            while let Some(entry) = self.entered.pop() {
                total = entry.merged(total);
                self.leaving.push(total);
            }
            self.entered_total = DoubleMoments::default();
        }
        self.leaving.pop();
    }
}

impl Accumulator for QueuedDoubles {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for entry in moments_of(values)? {
            self.entered_total = self.entered_total.merged(entry);
            self.entered.push(entry);
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        moments_of(values)?.for_each(|_| self.remove_oldest());
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let leaving = self.leaving.last().copied().unwrap_or_default();
        Ok(leaving.merged(self.entered_total).measure(self.kind))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        not_impl_err!("the state of a window aggregate cannot be merged")
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        not_impl_err!("the state of a window aggregate cannot be merged")
    }

    fn size(&self) -> usize {
        size_of_val(self) + (self.leaving.capacity() + self.entered.capacity()) * size_of::<DoubleMoments>()
    }
}
