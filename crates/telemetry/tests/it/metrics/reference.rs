//! Any samples give the answer of a computation that collects everything first and is written in the simplest way.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tidegate_telemetry::metrics::{
    LabelAggregation, Labels, MetricQuery, MetricRequest, Sample, TimeAggregation, TimeWindow,
};

use super::fixture::{S, aggregated, evaluate, labels, request, resolve};

const TIME_AGGREGATIONS: [&str; 10] =
    ["average", "min", "max", "sum", "median", "p90", "rate", "increase", "last", "count"];
const LABEL_AGGREGATIONS: [&str; 6] = ["none", "sum", "average", "min", "max", "p25"];

fn percentile(mut values: Vec<f64>, percentage: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let rank = percentage / 100.0 * (values.len() - 1) as f64;
    let (low, high) = (values[rank.floor() as usize], values[rank.ceil() as usize]);
    low + (high - low) * rank.fract()
}

fn time_value(query: &MetricQuery, sorted: &[Sample], bucket: TimeWindow) -> Option<f64> {
    if query.aggregation.needs_counter() {
        return counter_value(query, sorted, bucket);
    }
    let inside: Vec<f64> =
        sorted.iter().filter(|sample| bucket.contains(sample.time_ns)).map(|sample| sample.value).collect();
    let sum: f64 = inside.iter().sum();
    let last = *inside.last()?;
    Some(match query.aggregation {
        TimeAggregation::Average => sum / inside.len() as f64,
        TimeAggregation::Min => inside.into_iter().fold(f64::INFINITY, f64::min),
        TimeAggregation::Max => inside.into_iter().fold(f64::NEG_INFINITY, f64::max),
        TimeAggregation::Sum => sum,
        TimeAggregation::Median => percentile(inside, 50.0),
        TimeAggregation::Percentile(percentage) => percentile(inside, percentage),
        TimeAggregation::Count => inside.len() as f64,
        _ => last,
    })
}

fn counter_value(query: &MetricQuery, sorted: &[Sample], bucket: TimeWindow) -> Option<f64> {
    let base_from_ns = query.read_window().after_ns;
    let pairs = sorted.windows(2).map(|pair| (pair[0], pair[1]));
    let pairs: Vec<_> =
        pairs.filter(|(before, after)| before.time_ns >= base_from_ns && bucket.contains(after.time_ns)).collect();
    let growth = |before: f64, after: f64| if after >= before { after - before } else { after };
    let increase: f64 = pairs.iter().map(|(before, after)| growth(before.value, after.value)).sum();
    let seconds: f64 = pairs.iter().map(|(before, after)| (after.time_ns - before.time_ns) as f64 / 1e9).sum();
    (!pairs.is_empty()).then_some(if query.aggregation == TimeAggregation::Rate {
        increase / seconds
    } else {
        increase
    })
}

fn series_value(aggregation: LabelAggregation, values: Vec<f64>) -> Option<f64> {
    let count = values.len() as f64;
    (!values.is_empty()).then(|| match aggregation {
        LabelAggregation::Sum => values.iter().sum(),
        LabelAggregation::Average => values.iter().sum::<f64>() / count,
        LabelAggregation::Min => values.into_iter().fold(f64::INFINITY, f64::min),
        LabelAggregation::Max => values.into_iter().fold(f64::NEG_INFINITY, f64::max),
        LabelAggregation::Percentile(percentage) => percentile(values, percentage),
    })
}

/// The values of all series with a value, by their labels.
fn reference(query: &MetricQuery, series: &BTreeMap<Labels, Vec<Sample>>) -> BTreeMap<Labels, Vec<Option<f64>>> {
    let buckets: Vec<TimeWindow> = (0..query.grid.len()).map(|index| query.grid.bucket(index)).collect();
    let mut groups: BTreeMap<Labels, Vec<Vec<f64>>> = BTreeMap::new();
    for (labels, samples) in series {
        let mut sorted = samples.clone();
        sorted.sort_by_key(|sample| sample.time_ns);
        let key = if query.label_aggregation.is_some() { labels.restricted_to(&query.by) } else { labels.clone() };
        let group = groups.entry(key).or_insert_with(|| vec![Vec::new(); buckets.len()]);
        for (values, bucket) in group.iter_mut().zip(&buckets) {
            values.extend(time_value(query, &sorted, *bucket));
        }
    }
    let aggregation = query.label_aggregation.unwrap_or(LabelAggregation::Sum);
    let values = |group: Vec<Vec<f64>>| group.into_iter().map(|values| series_value(aggregation, values)).collect();
    let all = groups.into_iter().map(|(labels, group)| (labels, values(group)));
    all.filter(|(_, values): &(_, Vec<Option<f64>>)| values.iter().any(Option::is_some)).collect()
}

fn is_near(first: Option<f64>, second: Option<f64>) -> bool {
    match (first, second) {
        (Some(first), Some(second)) => (first - second).abs() <= 1e-9 * (1.0 + first.abs()),
        (first, second) => first == second,
    }
}

/// Up to six series with unique times, mixed: `(series, time in seconds, value)` with a little disorder within each.
fn arrivals() -> impl Strategy<Value = Vec<(usize, i64, f64)>> {
    let sample = (0_usize..6, -400_i64..700, -50_i32..1_000);
    prop::collection::vec(sample, 0..300).prop_map(|mut samples| {
        samples.sort_by_key(|(series, time_s, _)| (*time_s, *series));
        samples.dedup_by_key(|(series, time_s, _)| (*time_s, *series));
        // Blocks of eight are turned round, so that a sample is at most seven late.
        let blocks = samples.chunks(8).flat_map(|block| block.iter().rev());
        blocks.map(|(series, time_s, value)| (*series, *time_s, f64::from(*value))).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn one_pass_gives_the_answer_of_the_reference(
        arrivals in arrivals(),
        aggregation in prop::sample::select(&TIME_AGGREGATIONS[..]),
        label_aggregation in prop::sample::select(&LABEL_AGGREGATIONS[..]),
        by in prop::collection::vec(prop::sample::select(vec!["job", "instance"]), 0..2),
        after_s in -100_i64..300, length_s in 1_i64..600, points in 1_i64..100,
    ) {
        let is_grouped = label_aggregation != "none";
        let query = resolve(&MetricRequest {
            by: is_grouped.then(|| by.iter().map(|name| (*name).to_owned()).collect()),
            label_aggregation: is_grouped.then(|| label_aggregation.to_owned()),
            ..aggregated(request(if matches!(aggregation, "rate" | "increase") { "requests_total" } else { "temperature" }, after_s, after_s + length_s, points), aggregation)
        });
        let all: Vec<_> = arrivals.iter().map(|(series, time_s, value)| {
            let labels = labels(["a", "b", "c"][series / 2], &(series % 2).to_string());
            (labels, Sample { time_ns: time_s * S, value: *value })
        }).collect();
        let mut series: BTreeMap<Labels, Vec<Sample>> = BTreeMap::new();
        for (labels, sample) in &all {
            series.entry(labels.clone()).or_default().push(*sample);
        }
        let expected = reference(&query, &series);
        let answer = evaluate(query, &all);
        prop_assert_eq!(answer.counts.out_of_order, 0);
        prop_assert_eq!(answer.series.len(), expected.len());
        for answered in &answer.series {
            let expected = &expected[&answered.labels];
            for (index, (value, expected)) in answered.values.iter().zip(expected).enumerate() {
                prop_assert!(is_near(*value, *expected), "bucket {}: {:?} instead of {:?}", index, value, expected);
            }
        }
        let is_ordered = answer.series.windows(2).all(|pair| pair[0].contribution >= pair[1].contribution);
        prop_assert!(is_ordered);
    }

    /// Whatever the number of points, the increases add up to the increase of the window.
    #[test]
    fn increases_add_up(values in prop::collection::vec((1_i64..90, 0_u32..1_000), 2..200), points in 2_i64..500) {
        let mut time_s = 0;
        let all: Vec<_> = values.iter().map(|(wait_s, value)| {
            time_s += wait_s;
            (labels("a", "1"), Sample { time_ns: time_s * S, value: f64::from(*value) })
        }).collect();
        let total = |points: i64| {
            let query = resolve(&aggregated(request("requests_total", 0, time_s + 1, points), "increase"));
            evaluate(query, &all).series[0].values.iter().flatten().sum::<f64>()
        };
        prop_assert_eq!(total(points), total(1));
    }

    /// Memory and answer are bounded, whatever arrives: also times and values at the ends of their ranges.
    #[test]
    fn extreme_samples_never_panic(samples in prop::collection::vec((any::<i64>(), prop::num::f64::ANY), 0..60), aggregation in prop::sample::select(&TIME_AGGREGATIONS[..]), points in 1_i64..1_001) {
        let metric = if matches!(aggregation, "rate" | "increase") { "requests_total" } else { "temperature" };
        let mut request = aggregated(request(metric, 0, 0, points), aggregation);
        (request.after_ns, request.before_ns) = (-i64::MAX / 2, i64::MAX / 2);
        let all: Vec<_> = samples.iter().map(|(time_ns, value)| (labels("a", "1"), Sample { time_ns: *time_ns, value: *value })).collect();
        let Ok(query) = request.resolve(&super::fixture::catalog(), i64::MAX) else { return Ok(()) };
        let answer = evaluate(query, &all);
        prop_assert!(answer.series.iter().flat_map(|series| &series.values).flatten().all(|value| !value.is_nan()));
    }
}
