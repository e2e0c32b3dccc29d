//! Answers that were computed by hand.

use serde_json::json;
use tidegate_core::ErrorKind;
use tidegate_telemetry::metrics::{
    LabelAggregation, Labels, MetricEvaluator, MetricKind, MetricRequest, MetricSummary, Sample, TimeAggregation,
};

use super::fixture::{NOW_NS, S, aggregated, catalog, conditions, evaluate, labels, request, resolve, samples};

/// The values of the only series, over three buckets of 60 s.
fn values(metric: &str, aggregation: &str, points: &[(i64, f64)]) -> Vec<Option<f64>> {
    let query = resolve(&aggregated(request(metric, 60, 240, 3), aggregation));
    let answer = evaluate(query, &samples(&labels("a", "1"), points));
    answer.series.first().map(|series| series.values.clone()).unwrap_or_default()
}

#[test]
fn aggregations_of_a_gauge() {
    // The middle bucket has no samples; those at 59 s and 240 s are outside of the window.
    let points = [(59, 100.0), (60, 1.0), (90, 4.0), (119, 1.0), (180, 5.0), (200, f64::NAN), (239, 7.0), (240, 99.0)];
    let values = |aggregation| values("temperature", aggregation, &points);
    assert_eq!(values("average"), [Some(2.0), None, Some(6.0)]);
    assert_eq!(values("min"), [Some(1.0), None, Some(5.0)]);
    assert_eq!(values("max"), [Some(4.0), None, Some(7.0)]);
    assert_eq!(values("sum"), [Some(6.0), None, Some(12.0)]);
    assert_eq!(values("median"), [Some(1.0), None, Some(6.0)]);
    assert_eq!(values("p75"), [Some(2.5), None, Some(6.5)]);
    assert_eq!(values("last"), [Some(1.0), None, Some(7.0)]);
    assert_eq!(values("count"), [Some(3.0), None, Some(2.0)]);
}

#[test]
fn growth_of_a_counter_with_a_base_and_a_reset() {
    // The base is 100 at 50 s. 110 at 70 s: +10. 130 at 110 s: +20. Then a gap, and 160 at 190 s: +30 in 80 s.
    // The process restarts: 5 at 200 s is +5, 8 at 210 s is +3.
    let points = [(30, 1.0), (50, 100.0), (70, 110.0), (110, 130.0), (190, 160.0), (200, 5.0), (210, 8.0)];
    assert_eq!(values("requests_total", "increase", &points), [Some(30.0), None, Some(38.0)]);
    assert_eq!(values("requests_total", "rate", &points), [Some(30.0 / 60.0), None, Some(38.0 / 100.0)]);
}

#[test]
fn a_counter_without_a_base_grows_from_its_first_sample() {
    assert_eq!(values("requests_total", "increase", &[(70, 1_000.0), (80, 1_004.0)]), [Some(4.0), None, None]);
    // One sample is no growth, and a bucket with only that sample has no value.
    assert_eq!(values("requests_total", "increase", &[(70, 1_000.0), (130, 1_001.0)]), [None, Some(1.0), None]);
    assert!(values("requests_total", "increase", &[(70, 1_000.0)]).is_empty());
    // A base is at most five minutes older than the window.
    assert_eq!(values("requests_total", "increase", &[(-241, 0.0), (70, 9.0), (71, 9.0)]), [Some(0.0), None, None]);
    assert_eq!(values("requests_total", "increase", &[(-240, 0.0), (70, 9.0), (71, 9.0)]), [Some(9.0), None, None]);
}

#[test]
fn samples_of_a_counter_may_be_late() {
    let points = [(70, 1.0), (90, 3.0), (80, 2.0), (75, f64::INFINITY), (110, 5.0), (100, 4.0)];
    assert_eq!(values("requests_total", "increase", &points), [Some(4.0), None, None]);
    // The first sample is used when sixteen more have arrived.
    let mut late: Vec<_> = (0..40).map(|index| (60 + index, index as f64)).collect();
    late.push((60, 0.0));
    let query = resolve(&aggregated(request("requests_total", 60, 240, 3), "increase"));
    let answer = evaluate(query, &samples(&labels("a", "1"), &late));
    assert_eq!((answer.series[0].values[0], answer.counts.out_of_order), (Some(39.0), 1));
    assert!(answer.notes.iter().any(|note| note.starts_with("1 samples arrived too late")), "{:?}", answer.notes);
}

#[test]
fn series_are_aggregated_by_labels() {
    let mut all = samples(&labels("a", "1"), &[(60, 1.0), (120, 10.0)]);
    all.extend(samples(&labels("a", "2"), &[(60, 3.0)]));
    all.extend(samples(&labels("b", "1"), &[(60, 100.0), (180, 7.0)]));
    let answer = |aggregation: &str, by: Option<Vec<String>>| {
        let request = MetricRequest {
            by,
            label_aggregation: Some(aggregation.to_owned()),
            ..aggregated(request("temperature", 60, 240, 3), "last")
        };
        let answer = evaluate(resolve(&request), &all);
        let series = answer.series.into_iter();
        series.map(|series| (series.labels.to_string(), series.values)).collect::<Vec<_>>()
    };
    let by_job = || Some(vec!["job".to_owned()]);
    assert_eq!(
        answer("sum", by_job()),
        [
            (r#"{job="b"}"#.to_owned(), vec![Some(100.0), None, Some(7.0)]),
            (r#"{job="a"}"#.to_owned(), vec![Some(4.0), Some(10.0), None]),
        ]
    );
    assert_eq!(answer("average", by_job())[1].1, [Some(2.0), Some(10.0), None]);
    assert_eq!(answer("max", None), [("{}".to_owned(), vec![Some(100.0), Some(10.0), Some(7.0)])]);
    assert_eq!(answer("median", None)[0].1, [Some(3.0), Some(10.0), Some(7.0)]);
}

#[test]
fn left_out_series_are_counted_and_named() {
    let mut all = Vec::new();
    for index in 1..=100 {
        all.extend(samples(&labels("a", &index.to_string()), &[(60, f64::from(index))]));
    }
    let request = MetricRequest { series: Some(3), ..aggregated(request("temperature", 60, 240, 3), "last") };
    let answer = evaluate(resolve(&request), &all);
    let instances: Vec<_> = answer.series.iter().map(|series| series.labels.get("instance").unwrap()).collect();
    assert_eq!(instances, ["100", "99", "98"]);
    let left_out = answer.left_out.unwrap();
    assert_eq!((left_out.count, left_out.largest.len()), (97, 20));
    assert_eq!(left_out.largest[0], labels("a", "97"));
    assert!((left_out.share - (5_050.0 - 297.0) / 5_050.0).abs() < 1e-12);
}

#[test]
fn a_step_below_the_interval_of_the_samples_is_noted() {
    let points: Vec<_> = (0..10).map(|index| (index * 60, 1.0)).collect();
    let answer = evaluate(resolve(&request("temperature", 0, 600, 60)), &samples(&labels("a", "1"), &points));
    let expected = "the samples are about 1m apart, more than the step of 10s: buckets without samples have no value; \
                    request at most 10 points for values without gaps";
    assert_eq!(answer.notes, [expected]);
    let answer = evaluate(resolve(&request("temperature", 0, 600, 10)), &samples(&labels("a", "1"), &points));
    assert!(answer.notes.is_empty());
}

#[test]
fn conditions_select_series() {
    let request = MetricRequest {
        labels: conditions(&json!({"job": {"matches": "a.*"}, "instance": ["1", "2"]})),
        ..request("temperature", 60, 240, 3)
    };
    let mut evaluator = MetricEvaluator::new(resolve(&request));
    assert!(evaluator.series(&labels("ab", "1")).unwrap().is_some());
    assert!(evaluator.series(&labels("b", "1")).unwrap().is_none());
    assert!(evaluator.series(&labels("ab", "3")).unwrap().is_none());
    assert_eq!(evaluator.finish().unwrap().counts.series, 1);
}

#[test]
fn a_query_that_needs_too_much_memory_is_refused() {
    let mut evaluator = MetricEvaluator::new(resolve(&request("temperature", 0, 1_000, 1_000)));
    let error = (0..50_000).find_map(|index| {
        let labels = Labels::new([("instance", index.to_string())]);
        let series = evaluator.series(&labels).unwrap()?;
        evaluator.push(series, Sample { time_ns: 5, value: 1.0 }).err()
    });
    let error = error.unwrap();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert!(
        error.to_string().contains("series of 1000 points need more than 96 MiB of memory\nRequest fewer points"),
        "{error}"
    );
}

#[test]
fn increments_are_added_and_never_compared_with_the_one_before() {
    let delta = MetricSummary { kind: MetricKind::Delta, ..catalog()[1].clone() };
    let points = [(59, 100.0), (60, 3.0), (90, 9.0), (130, 5.0)];
    let values = |aggregation: Option<&str>| {
        let request =
            MetricRequest { aggregation: aggregation.map(str::to_owned), ..request("temperature", 60, 240, 3) };
        let query = request.resolve(std::slice::from_ref(&delta), NOW_NS).unwrap();
        evaluate(query, &samples(&labels("a", "1"), &points)).series[0].values.clone()
    };
    assert_eq!(values(None), [Some(0.2), Some(5.0 / 60.0), None]);
    assert_eq!(values(Some("increase")), [Some(12.0), Some(5.0), None]);
    assert_eq!(values(Some("max")), [Some(9.0), Some(5.0), None]);
}

#[test]
fn defaults_of_a_request() {
    let by = MetricRequest { by: Some(vec!["job".to_owned()]), ..request("requests_total", 0, 3_600, 60) };
    let query = resolve(&by);
    assert_eq!((query.aggregation, query.label_aggregation), (TimeAggregation::Rate, Some(LabelAggregation::Sum)));
    assert_eq!(query.grid.step_text(), "1m");
    assert_eq!(query.read_window().after_ns, -300 * S);
    let query = resolve(&request("temperature", 0, 60, 6));
    assert_eq!((query.aggregation, query.grid.step_text()), (TimeAggregation::Average, "10s".to_owned()));
    assert_eq!(catalog()[0].label_names(), Some(vec!["instance", "job"]));
}
