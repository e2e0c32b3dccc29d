//! The values of one bucket, for percentiles: exact while they are few, then a sketch of fixed size.

use std::f64::consts::PI;

/// The number of values that are kept exactly.
const EXACT_VALUES_MAX: usize = 512;
/// The bound on the centroids of a sketch. A centroid at the median spans at most π / this (1.6 %) of the ranks, and one
/// towards the ends less. Between centroids values are interpolated.
const CENTROIDS_MAX: f64 = 200.0;
/// The number of values that a sketch collects before it merges them.
const PENDING_VALUES_MAX: usize = 256;

/// Values whose percentiles can be computed. Up to 512 values they are exact. With more values it becomes a t-digest (Dunning): sorted centroids, small at the ends and large in the middle.
#[derive(Debug, Clone, Default)]
pub struct ValueSet {
    /// Values in the order of their arrival; with centroids, those that are not merged yet.
    values: Vec<f64>,
    centroids: Vec<Centroid>,
    min: f64,
    max: f64,
}

/// Neighbouring values, as their mean and their number.
#[derive(Debug, Clone, Copy)]
struct Centroid {
    mean: f64,
    weight: f64,
}

impl ValueSet {
    /// Adds a value. `NaN` is ignored.
    pub fn add(&mut self, value: f64) {
        if value.is_nan() {
            return;
        }
        let is_first = self.is_empty();
        self.min = if is_first { value } else { self.min.min(value) };
        self.max = if is_first { value } else { self.max.max(value) };
        self.values.push(value);
        let values_max = if self.centroids.is_empty() { EXACT_VALUES_MAX } else { PENDING_VALUES_MAX };
        if self.values.len() > values_max {
            self.merge();
        }
    }

    /// Whether it has no values.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty() && self.centroids.is_empty()
    }

    /// Whether percentiles are approximate.
    pub fn is_approximate(&self) -> bool {
        !self.centroids.is_empty()
    }

    /// The memory that the values take, in bytes.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + self.values.capacity() * size_of::<f64>()
            + self.centroids.capacity() * size_of::<Centroid>()
    }

    /// The value below which `percentage` (0 to 100) of the values lie: with the values sorted and numbered from 0, the
    /// one at `percentage / 100 × (n − 1)`, interpolated linearly. `None` without values.
    pub fn percentile(mut self, percentage: f64) -> Option<f64> {
        let fraction = (percentage / 100.0).clamp(0.0, 1.0);
        if self.centroids.is_empty() {
            self.values.sort_unstable_by(f64::total_cmp);
            return interpolate_sorted(&self.values, fraction);
        }
        self.merge();
        Some(self.interpolate_centroids(fraction))
    }

    /// Merges the collected values into the centroids. Neighbours become one centroid while it spans at most one unit
    /// of the scale `CENTROIDS_MAX / 2π × asin(2q − 1)`, which limits their number to about `CENTROIDS_MAX`.
    fn merge(&mut self) {
        let mut all = std::mem::take(&mut self.centroids);
        all.extend(self.values.drain(..).map(|mean| Centroid { mean, weight: 1.0 }));
        self.values.shrink_to(PENDING_VALUES_MAX + 1);
        all.sort_by(|first, second| first.mean.total_cmp(&second.mean));
        let total: f64 = all.iter().map(|centroid| centroid.weight).sum();
        let scale = |weight_before: f64| {
            let quantile = (weight_before / total).clamp(0.0, 1.0);
            CENTROIDS_MAX / (2.0 * PI) * (2.0 * quantile - 1.0).asin()
        };
        let mut weight_before = 0.0;
        for centroid in all {
            if let Some(last) = self.centroids.last_mut() {
                let weight = last.weight + centroid.weight;
                // An infinite value is not averaged with a finite one: the mean would be infinite for all of them.
                let is_mergeable = last.mean == centroid.mean || (last.mean.is_finite() && centroid.mean.is_finite());
                if is_mergeable && scale(weight_before + weight) - scale(weight_before) <= 1.0 {
                    if last.mean != centroid.mean {
                        last.mean += (centroid.mean - last.mean) * (centroid.weight / weight);
                    }
                    last.weight = weight;
                    continue;
                }
                weight_before += last.weight;
            }
            self.centroids.push(centroid);
        }
    }

    /// Each centroid lies at the middle of its ranks, and the smallest and the largest value at the ends.
    fn interpolate_centroids(&self, fraction: f64) -> f64 {
        let total: f64 = self.centroids.iter().map(|centroid| centroid.weight).sum();
        let rank = fraction * (total - 1.0);
        let (mut lower_rank, mut lower_value) = (0.0, self.min);
        let mut weight_before = 0.0;
        for centroid in &self.centroids {
            let middle = weight_before + (centroid.weight - 1.0) / 2.0;
            if rank <= middle {
                return interpolate(lower_value, centroid.mean, (rank - lower_rank) / (middle - lower_rank));
            }
            (lower_rank, lower_value) = (middle, centroid.mean);
            weight_before += centroid.weight;
        }
        interpolate(lower_value, self.max, (rank - lower_rank) / (total - 1.0 - lower_rank))
    }
}

/// The value at `fraction` of the ranks of sorted values.
pub(super) fn interpolate_sorted(sorted: &[f64], fraction: f64) -> Option<f64> {
    let rank = fraction * sorted.len().saturating_sub(1) as f64;
    let lower = rank.floor() as usize;
    let lower_value = sorted.get(lower).copied()?;
    let upper_value = sorted.get(lower + 1).copied().unwrap_or(lower_value);
    Some(interpolate(lower_value, upper_value, rank - lower as f64))
}

/// Also right for infinite values, and never outside of the two values.
fn interpolate(lower: f64, upper: f64, share: f64) -> f64 {
    if share.is_nan() || share <= 0.0 || lower == upper {
        return lower;
    }
    if share >= 1.0 {
        return upper;
    }
    let value = lower * (1.0 - share) + upper * share;
    if value.is_nan() { lower } else { value.clamp(lower.min(upper), lower.max(upper)) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn percentile(values: impl IntoIterator<Item = f64>, percentage: f64) -> Option<f64> {
        let mut set = ValueSet::default();
        values.into_iter().for_each(|value| set.add(value));
        set.percentile(percentage)
    }

    #[test]
    fn known_percentiles() {
        assert_eq!(percentile([3.0, 1.0, 2.0, 4.0], 50.0), Some(2.5));
        assert_eq!(percentile([3.0, 1.0, 2.0, 4.0], 100.0), Some(4.0));
        assert_eq!(percentile([10.0, 20.0, 30.0, 40.0, 50.0], 90.0), Some(46.0));
        assert_eq!(percentile([7.0], 1.0), Some(7.0));
        assert_eq!(percentile([f64::NAN], 50.0), None);
        assert_eq!(percentile([f64::NEG_INFINITY, 1.0, f64::INFINITY], 50.0), Some(1.0));
    }

    #[test]
    fn a_sketch_is_small_and_close() {
        let mut set = ValueSet::default();
        // Every number below 100,003 once, in an order without pattern.
        (0..100_003_u64).for_each(|index| set.add((index * 7_919 % 100_003) as f64));
        assert!(set.is_approximate());
        assert!(set.memory_bytes() < 20_000, "{}", set.memory_bytes());
        for percentage in [0.0, 1.0, 25.0, 50.0, 90.0, 99.0, 99.9, 100.0] {
            let value = set.clone().percentile(percentage).unwrap();
            let error = (value - percentage / 100.0 * 100_002.0).abs() / 100_003.0;
            assert!(error < 0.005, "{percentage}: {value}");
        }
        assert_eq!((set.clone().percentile(0.0), set.percentile(100.0)), (Some(0.0), Some(100_002.0)));
    }

    #[test]
    fn a_sketch_holds_infinite_and_equal_values() {
        let values = (0..3_000).map(|index| if index % 3 == 0 { f64::INFINITY } else { 1.0 });
        assert_eq!(percentile(values.clone(), 50.0), Some(1.0));
        assert_eq!(percentile(values, 99.0), Some(f64::INFINITY));
        let opposite = (0..2_000).map(|index| if index % 2 == 0 { f64::INFINITY } else { f64::NEG_INFINITY });
        assert_eq!(percentile(opposite, 10.0), Some(f64::NEG_INFINITY));
    }

    proptest! {
        #[test]
        fn few_values_are_exact(values in prop::collection::vec(-1e6_f64..1e6, 1..400), percentage in 0.0_f64..=100.0) {
            let mut sorted = values.clone();
            sorted.sort_by(f64::total_cmp);
            let rank = percentage / 100.0 * (sorted.len() - 1) as f64;
            let (low, high) = (sorted[rank.floor() as usize], sorted[rank.ceil() as usize]);
            let expected = low + (high - low) * rank.fract();
            prop_assert!((percentile(values, percentage).unwrap() - expected).abs() < 1e-6);
        }

        #[test]
        fn many_values_have_a_small_error_of_rank(values in prop::collection::vec(-1e3_f64..1e3, 600..4_000), percentage in 0.0_f64..=100.0) {
            let value = percentile(values.iter().copied(), percentage).unwrap();
            let below = values.iter().filter(|other| **other < value).count() as f64;
            let at_most = values.iter().filter(|other| **other <= value).count() as f64;
            let rank = percentage / 100.0 * (values.len() - 1) as f64;
            let error = (below - rank - 1.0).max(rank - at_most).max(0.0) / values.len() as f64;
            prop_assert!(error < 0.01, "{error}");
        }
    }
}
