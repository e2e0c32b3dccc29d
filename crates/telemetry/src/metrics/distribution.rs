//! The values that a series has in one window, for comparisons.

use super::value_set::interpolate_sorted;

/// The number of values that are kept for the distribution of a series in a window.
const VALUES_KEPT_MAX: usize = 512;

/// The values of a series in a window. Count, mean, smallest and largest value are exact. For the shape, every value is
/// kept up to a bound, then every second, every fourth and so on, in the order of arrival.
#[derive(Debug, Clone)]
pub(super) struct Distribution {
    count: u64,
    mean: f64,
    min: f64,
    max: f64,
    kept: Vec<f64>,
    stride: u64,
}

impl Default for Distribution {
    fn default() -> Self {
        Self { count: 0, mean: 0.0, min: f64::INFINITY, max: f64::NEG_INFINITY, kept: Vec::new(), stride: 1 }
    }
}

/// The statistics of a window, which a reader can check.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DistributionSummary {
    /// The number of values.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// The smallest value.
    pub min: f64,
    /// The median; of a part of the values if there are more than 512.
    pub median: f64,
    /// The largest value.
    pub max: f64,
}

impl Distribution {
    /// Adds a value. Values that are not finite are ignored, because they have no mean.
    pub(super) fn add(&mut self, value: f64) {
        if !value.is_finite() {
            return;
        }
        if self.count.is_multiple_of(self.stride) {
            self.kept.push(value);
        }
        self.count += 1;
        // Unlike a sum, this does not overflow.
        let share = 1.0 / self.count as f64;
        self.mean = self.mean * (1.0 - share) + value * share;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        if self.kept.len() >= VALUES_KEPT_MAX {
            let mut index = 0;
            self.kept.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.stride *= 2;
        }
    }

    /// The statistics and the kept values in order; `None` without values.
    pub(super) fn finish(mut self) -> Option<(DistributionSummary, Vec<f64>)> {
        self.kept.sort_unstable_by(f64::total_cmp);
        let median = interpolate_sorted(&self.kept, 0.5)?;
        // Rounding may move the mean of equal values.
        let mean = self.mean.clamp(self.min, self.max);
        Some((DistributionSummary { count: self.count, mean, min: self.min, median, max: self.max }, self.kept))
    }
}

/// The Kolmogorov–Smirnov distance of two sorted samples: the largest difference between the shares of their values up
/// to the same value. 0 for equal samples, 1 for samples that do not overlap or if one is empty.
pub fn kolmogorov_smirnov_distance(first: &[f64], second: &[f64]) -> f64 {
    if first.is_empty() || second.is_empty() {
        return if first.len() == second.len() { 0.0 } else { 1.0 };
    }
    let (mut first_below, mut second_below, mut distance) = (0, 0, 0.0_f64);
    while let (Some(left), Some(right)) = (first.get(first_below), second.get(second_below)) {
        let value = left.min(*right);
        while first.get(first_below).is_some_and(|other| *other <= value) {
            first_below += 1;
        }
        while second.get(second_below).is_some_and(|other| *other <= value) {
            second_below += 1;
        }
        let shares = (first_below as f64 / first.len() as f64, second_below as f64 / second.len() as f64);
        distance = distance.max((shares.0 - shares.1).abs());
    }
    distance
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_distances() {
        assert_eq!(kolmogorov_smirnov_distance(&[1.0, 2.0], &[1.0, 2.0]), 0.0);
        assert_eq!(kolmogorov_smirnov_distance(&[1.0, 2.0], &[3.0, 4.0]), 1.0);
        assert_eq!(kolmogorov_smirnov_distance(&[1.0, 2.0, 3.0, 4.0], &[3.0, 4.0, 5.0, 6.0]), 0.5);
        assert_eq!(kolmogorov_smirnov_distance(&[1.0], &[]), 1.0);
        assert_eq!(kolmogorov_smirnov_distance(&[5.0, 5.0, 5.0], &[5.0]), 0.0);
    }

    #[test]
    fn many_values_are_thinned() {
        let mut distribution = Distribution::default();
        (0..100_000).for_each(|value| distribution.add(f64::from(value)));
        let (summary, kept) = distribution.finish().unwrap();
        assert!(kept.len() <= VALUES_KEPT_MAX && kept.len() >= VALUES_KEPT_MAX / 2);
        assert_eq!((summary.count, summary.min, summary.max), (100_000, 0.0, 99_999.0));
        assert!((summary.mean - 49_999.5).abs() < 1e-6 && (summary.median - 50_000.0).abs() < 500.0);
    }

    proptest! {
        #[test]
        fn distance_equals_its_definition(
            mut first in prop::collection::vec(-5..5_i32, 1..40), mut second in prop::collection::vec(-5..5_i32, 1..40)
        ) {
            first.sort_unstable();
            second.sort_unstable();
            let share = |values: &[i32], bound: i32| values.iter().filter(|value| **value <= bound).count() as f64 / values.len() as f64;
            let expected = (-5..5).map(|bound| (share(&first, bound) - share(&second, bound)).abs()).fold(0.0, f64::max);
            let floats = |values: &[i32]| values.iter().copied().map(f64::from).collect::<Vec<_>>();
            prop_assert_eq!(kolmogorov_smirnov_distance(&floats(&first), &floats(&second)), expected);
        }
    }
}
