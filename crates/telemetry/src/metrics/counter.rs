//! The growth of one counter, from samples that may arrive a little out of order.

use std::collections::VecDeque;

use super::model::Sample;

/// The number of samples of a series that are held back, so that later ones with an earlier time are put in order.
pub(super) const REORDERED_SAMPLES_MAX: usize = 16;

/// The state of a counter between its samples.
#[derive(Debug, Clone, Default)]
pub(super) struct CounterState {
    /// Samples by time, not yet used.
    pending: VecDeque<Sample>,
    /// The latest used sample.
    previous: Option<Sample>,
}

/// The growth of a counter up to one of its samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CounterGrowth {
    /// The time of the sample.
    pub time_ns: i64,
    /// The growth since the sample before it.
    pub growth: f64,
    /// The time since the sample before it.
    pub between_ns: u64,
}

/// A sample that is earlier than one that was already used, or has the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LateSample;

impl CounterState {
    /// Adds a sample. If enough later ones have arrived, the earliest pending one is used and its growth returned.
    /// Growth since a sample before `base_from_ns` is not known.
    pub(super) fn add(&mut self, sample: Sample, base_from_ns: i64) -> Result<Option<CounterGrowth>, LateSample> {
        if self.previous.is_some_and(|previous| sample.time_ns <= previous.time_ns) {
            return Err(LateSample);
        }
        let index = match self.pending.back() {
            Some(last) if last.time_ns >= sample.time_ns => {
                self.pending.partition_point(|other| other.time_ns < sample.time_ns)
            }
            _ => self.pending.len(),
        };
        match self.pending.get_mut(index) {
            // Of two samples with the same time, the one that arrived later counts.
            Some(same) if same.time_ns == sample.time_ns => *same = sample,
            _ => self.pending.insert(index, sample),
        }
        if self.pending.len() <= REORDERED_SAMPLES_MAX {
            return Ok(None);
        }
        Ok(self.use_next(base_from_ns).flatten())
    }

    /// Uses the earliest pending sample; `None` if there is none. The growth of the first sample is not known.
    pub(super) fn use_next(&mut self, base_from_ns: i64) -> Option<Option<CounterGrowth>> {
        let sample = self.pending.pop_front()?;
        let base = self.previous.replace(sample).filter(|base| base.time_ns >= base_from_ns);
        Some(base.map(|base| CounterGrowth {
            time_ns: sample.time_ns,
            // Below the value before it, the counter has begun again at zero.
            growth: if sample.value < base.value { sample.value } else { sample.value - base.value },
            between_ns: sample.time_ns.abs_diff(base.time_ns),
        }))
    }
}
