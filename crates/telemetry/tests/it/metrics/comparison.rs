//! The ranking of changes between two windows.

use proptest::prelude::*;
use tidegate_telemetry::metrics::{
    ComparisonAnswer, ComparisonOptions, Labels, MetricKind, Sample, TimeWindow, WindowComparison,
};

use super::fixture::S;

/// 100 samples in each window, ten seconds apart.
const OPTIONS: ComparisonOptions = ComparisonOptions {
    baseline: TimeWindow { after_ns: 0, before_ns: 1_000 * S },
    interest: TimeWindow { after_ns: 1_000 * S, before_ns: 2_000 * S },
    ranked_max: 10,
};

fn series_labels(index: usize) -> Labels {
    Labels::new([("series", index.to_string())])
}

/// Compares series of a kind; the values of each are ten seconds apart from time 0.
fn compare(kind: MetricKind, series: &[Vec<f64>]) -> ComparisonAnswer {
    let mut comparison = WindowComparison::new(OPTIONS);
    for (index, values) in series.iter().enumerate() {
        let handle = comparison.series("m", kind, &series_labels(index)).unwrap();
        for (step, value) in (0..).zip(values) {
            comparison.push(handle, Sample { time_ns: step * 10 * S, value: *value });
        }
    }
    comparison.finish()
}

/// The values of the first window, then those of the second one.
fn both(first: impl Fn(usize) -> f64, second: impl Fn(usize) -> f64) -> Vec<f64> {
    (0..100).map(&first).chain((0..100).map(&second)).collect()
}

#[test]
fn numbers_that_a_person_can_check() {
    let answer = compare(MetricKind::Gauge, &[both(|_| 5.0, |_| 6.0), both(|_| 3.0, |_| 3.0)]);
    let changed = &answer.ranked[0];
    assert_eq!((answer.ranked.len(), answer.compared, answer.unchanged), (1, 2, 1));
    assert_eq!((changed.distance, changed.relative_change), (1.0, Some(0.2)));
    assert_eq!((changed.baseline.unwrap().mean, changed.interest.unwrap().max), (5.0, 6.0));
    assert_eq!(changed.note.as_deref(), Some("the value is constant in each window"));
    // The noise of twice 100 values is 1.36 × √0.02, and the change is a sixth of the larger mean.
    let expected = (1.0 - 1.36 * 0.02_f64.sqrt()) * (1.0 + 1.0 / 6.0) / 2.0;
    assert!((changed.score - expected).abs() < 1e-12, "{}", changed.score);
}

#[test]
fn counters_are_compared_by_their_rates() {
    // It grows by 10 in ten seconds, then by 30, and the process restarts in between.
    let mut value = 0.0;
    let values = (0..200).map(|step| {
        value = if step == 150 { 30.0 } else { value + if step < 100 { 10.0 } else { 30.0 } };
        value
    });
    let answer = compare(MetricKind::Counter, &[values.collect()]);
    let changed = &answer.ranked[0];
    assert_eq!((changed.baseline.unwrap().mean, changed.interest.unwrap().mean), (1.0, 3.0));
    assert_eq!((changed.relative_change, changed.baseline.unwrap().count), (Some(2.0), 99));
}

#[test]
fn few_values_rank_lower_and_missing_windows_are_noted() {
    let few = [vec![f64::NAN; 95], vec![1.0; 5], vec![2.0; 5]].concat();
    let appeared = both(|_| f64::NAN, |_| 2.0);
    let answer = compare(MetricKind::Gauge, &[few, appeared, both(|_| 1.0, |_| 2.0), vec![f64::NAN; 200]]);
    let ranked: Vec<_> =
        answer.ranked.iter().map(|series| (series.labels.get("series").unwrap(), series.note.as_deref())).collect();
    assert_eq!(
        ranked,
        [
            ("1", Some("the series has no values in the baseline")),
            ("2", Some("the value is constant in each window")),
            ("0", Some("few values (5 and 5), so the score is low")),
        ]
    );
    assert_eq!((answer.compared, answer.ranked[0].relative_change), (3, None));
}

proptest! {
    #[test]
    fn identical_windows_score_zero(values in prop::collection::vec(-1e9..1e9, 100)) {
        let answer = compare(MetricKind::Gauge, &[both(|index| values[index], |index| values[99 - index])]);
        prop_assert_eq!((answer.ranked.len(), answer.unchanged), (0, 1));
    }

    #[test]
    fn a_shifted_series_ranks_first_among_noise(
        noise in prop::collection::vec(prop::collection::vec(0.0..100.0, 200), 2..20), shifted in any::<prop::sample::Index>()
    ) {
        let mut series = noise;
        let index = shifted.index(series.len());
        series[index].iter_mut().skip(100).for_each(|value| *value += 80.0);
        let answer = compare(MetricKind::Gauge, &series);
        prop_assert_eq!(&answer.ranked[0].labels, &series_labels(index));
        prop_assert!(answer.ranked.iter().all(|series| (0.0..=1.0).contains(&series.score) && (0.0..=1.0).contains(&series.distance)));
        prop_assert_eq!(answer.ranked.len() + answer.unchanged + answer.left_out, answer.compared);
    }
}
