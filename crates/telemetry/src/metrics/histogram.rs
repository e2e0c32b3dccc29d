//! Percentiles of histograms, whose buckets are series with the label `le`.

use std::collections::BTreeMap;

use tidegate_core::{Error, ErrorKind};

use super::answer::MetricAnswer;
use super::label_groups::SeriesCollector;
use super::model::Labels;

/// The label with the upper bound of a bucket.
const BOUND_LABEL: &str = "le";

/// The value below which `percentage` (0 to 100) of the observations lie, from `(upper bound, observations up to it)`
/// in any order. Within a bucket, observations are assumed to be spread evenly, and the first bucket is assumed to begin
/// at 0 if its bound is positive. If the value lies above the largest finite bound, that bound is returned. `None` if
/// there are no observations, or no bucket without an upper bound (`+Inf`), which has the number of all of them.
pub fn histogram_percentile(buckets: &[(f64, f64)], percentage: f64) -> Option<f64> {
    let mut buckets: Vec<(f64, f64)> = buckets.iter().copied().filter(|(bound, _)| !bound.is_nan()).collect();
    buckets.sort_by(|(first, _), (second, _)| first.total_cmp(second));
    let (last_bound, _) = *buckets.last()?;
    // Counts that were not read at the same time may decrease a little.
    let mut total = 0.0_f64;
    for (_, count) in &mut buckets {
        total = total.max(*count);
        *count = total;
    }
    if last_bound != f64::INFINITY || total <= 0.0 || !total.is_finite() {
        return None;
    }
    let rank = percentage.clamp(0.0, 100.0) / 100.0 * total;
    let index = buckets.iter().position(|(_, count)| *count >= rank && *count > 0.0)?;
    let (bound, count) = *buckets.get(index)?;
    let previous = index.checked_sub(1).and_then(|index| buckets.get(index)).copied();
    if bound == f64::INFINITY {
        return previous.map(|(bound, _)| bound);
    }
    let (lower, below) = previous.unwrap_or((bound.min(0.0), 0.0));
    if lower == f64::NEG_INFINITY || count <= below {
        return Some(bound);
    }
    Some(lower + (bound - lower) * ((rank - below) / (count - below)).clamp(0.0, 1.0))
}

/// The counts of one bucket of a histogram over time.
struct BucketSeries {
    bound: f64,
    values: Vec<Option<f64>>,
}

impl MetricAnswer {
    /// The percentiles of histograms, from the answer for their buckets: increases or rates, each with the label `le`.
    /// All series with the same other labels become one. At most `series_max` series remain.
    ///
    /// # Errors
    /// `TooLarge` if the answer leaves out series, because a histogram without some of its buckets is wrong.
    pub fn into_histogram_percentile(mut self, percentage: f64, series_max: usize) -> Result<Self, Error> {
        if let Some(left_out) = &self.left_out {
            let message = format!("the histogram has {} more series than can be read", left_out.count);
            let hint = "Add conditions on labels, or group by fewer labels.";
            return Err(Error::new(ErrorKind::TooLarge, message).with_hint(hint));
        }
        let mut histograms: BTreeMap<Labels, Vec<BucketSeries>> = BTreeMap::new();
        for series in std::mem::take(&mut self.series) {
            let Some(bound) = series.labels.get(BOUND_LABEL).and_then(|bound| bound.parse().ok()) else { continue };
            let others = series.labels.iter().filter(|(name, _)| *name != BOUND_LABEL);
            histograms.entry(Labels::new(others)).or_default().push(BucketSeries { bound, values: series.values });
        }
        let mut collector = SeriesCollector::new(None, series_max);
        for (labels, buckets) in histograms {
            let value = |index: usize| {
                let counts = buckets.iter().filter_map(|series| Some((series.bound, (*series.values.get(index)?)?)));
                histogram_percentile(&counts.collect::<Vec<_>>(), percentage)
            };
            let values: Vec<Option<f64>> = (0..self.grid.len()).map(value).collect();
            if values.iter().any(Option::is_some) {
                collector.add(labels, values);
            }
        }
        (self.series, self.left_out, _) = collector.finish();
        self.is_approximate = true;
        self.notes.push(format!("percentile({percentage}) of a histogram, interpolated within its buckets"));
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const INF: f64 = f64::INFINITY;

    #[test]
    fn known_percentiles() {
        let buckets = [(INF, 100.0), (1.0, 50.0), (2.0, 90.0), (0.5, 0.0)];
        assert_eq!(histogram_percentile(&buckets, 50.0), Some(1.0));
        assert_eq!(histogram_percentile(&buckets, 70.0), Some(1.5));
        assert_eq!(histogram_percentile(&buckets, 25.0), Some(0.75));
        assert_eq!(histogram_percentile(&buckets, 99.0), Some(2.0));
        assert_eq!(histogram_percentile(&[(4.0, 10.0), (INF, 10.0)], 50.0), Some(2.0));
        assert_eq!(histogram_percentile(&[(-4.0, 10.0), (INF, 10.0)], 50.0), Some(-4.0));
        assert_eq!(histogram_percentile(&[(1.0, 10.0)], 50.0), None);
        assert_eq!(histogram_percentile(&[(1.0, 0.0), (INF, 0.0)], 50.0), None);
        assert_eq!(histogram_percentile(&[(INF, 5.0)], 50.0), None);
        assert_eq!(histogram_percentile(&[], 50.0), None);
    }

    proptest! {
        /// The percentile lies in the bucket that contains the exact one.
        #[test]
        fn it_lies_in_the_right_bucket(mut values in prop::collection::vec(0.0_f64..10.0, 1..200), percentage in 1.0_f64..100.0) {
            let bounds = [1.0, 2.0, 5.0, 10.0, INF];
            let buckets = bounds.map(|bound| (bound, values.iter().filter(|value| **value <= bound).count() as f64));
            let estimate = histogram_percentile(&buckets, percentage).unwrap();
            values.sort_by(f64::total_cmp);
            let rank = percentage / 100.0 * values.len() as f64;
            let exact = values[(rank.ceil() as usize - 1).min(values.len() - 1)];
            let upper = bounds.into_iter().find(|bound| exact <= *bound).unwrap();
            let lower = [0.0, 1.0, 2.0, 5.0].into_iter().rfind(|bound| *bound < upper).unwrap();
            prop_assert!((lower..=upper).contains(&estimate), "{} not in {}..{}", estimate, lower, upper);
        }

        #[test]
        fn arbitrary_buckets_never_panic(buckets in prop::collection::vec((prop::num::f64::ANY, prop::num::f64::ANY), 0..9), percentage in prop::num::f64::ANY) {
            let _ = histogram_percentile(&buckets, percentage);
        }
    }
}
