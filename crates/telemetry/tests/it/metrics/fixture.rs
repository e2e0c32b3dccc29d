//! Catalogs, requests and samples.

use serde_json::Value;
use tidegate_telemetry::metrics::{
    LabelSummary, Labels, MetricAnswer, MetricEvaluator, MetricKind, MetricQuery, MetricRequest, MetricSummary, Sample,
    TimeWindow,
};

/// Nanoseconds of a second.
pub(crate) const S: i64 = 1_000_000_000;
/// The present time of all tests.
pub(crate) const NOW_NS: i64 = 1_000_000 * S;

/// A counter and a gauge with the labels `job` and `instance`.
pub(crate) fn catalog() -> Vec<MetricSummary> {
    let metric = |name: &str, kind| MetricSummary {
        name: name.to_owned(),
        kind,
        unit: Some("seconds".to_owned()),
        labels: Some(
            ["instance", "job"]
                .map(|name| LabelSummary { name: name.to_owned(), values: 3, is_lower_bound: false, only_value: None })
                .into(),
        ),
        covers: Some(TimeWindow::new(0, 3_600 * S)),
        ..MetricSummary::default()
    };
    vec![metric("requests_total", MetricKind::Counter), metric("temperature", MetricKind::Gauge)]
}

/// A request for `metric` over a window in seconds.
pub(crate) fn request(metric: &str, after_s: i64, before_s: i64, points: i64) -> MetricRequest {
    MetricRequest {
        metric: metric.to_owned(),
        after_ns: after_s * S,
        before_ns: before_s * S,
        points: Some(points),
        ..MetricRequest::default()
    }
}

/// The same request with an aggregation over time.
pub(crate) fn aggregated(request: MetricRequest, aggregation: &str) -> MetricRequest {
    MetricRequest { aggregation: Some(aggregation.to_owned()), ..request }
}

pub(crate) fn resolve(request: &MetricRequest) -> MetricQuery {
    request.resolve(&catalog(), NOW_NS).unwrap()
}

pub(crate) fn labels(job: &str, instance: &str) -> Labels {
    Labels::new([("job", job), ("instance", instance)])
}

pub(crate) fn conditions(json: &Value) -> serde_json::Map<String, Value> {
    json.as_object().unwrap().clone()
}

/// The answer to `query` over samples in the order of their arrival.
pub(crate) fn evaluate(query: MetricQuery, samples: &[(Labels, Sample)]) -> MetricAnswer {
    let mut evaluator = MetricEvaluator::new(query);
    for (labels, sample) in samples {
        if let Some(series) = evaluator.series(labels).unwrap() {
            evaluator.push(series, *sample).unwrap();
        }
    }
    evaluator.finish().unwrap()
}

/// Samples of one series at times in seconds.
pub(crate) fn samples(labels: &Labels, points: &[(i64, f64)]) -> Vec<(Labels, Sample)> {
    points.iter().map(|(time_s, value)| (labels.clone(), Sample { time_ns: time_s * S, value: *value })).collect()
}
