//! What is wrong with a request, all at once.

use serde_json::json;
use tidegate_telemetry::metrics::MetricRequest;

use super::fixture::{NOW_NS, S, aggregated, catalog, conditions, request};

fn problems(request: &MetricRequest) -> String {
    request.resolve(&catalog(), NOW_NS).unwrap_err().to_string()
}

#[test]
fn all_violations_are_reported_at_once() {
    let request = MetricRequest {
        labels: conditions(&json!({"jb": "a", "instance": {"matches": "("}})),
        points: Some(1_001),
        aggregation: Some("avrage".to_owned()),
        by: Some(vec!["job".to_owned(), "region".to_owned()]),
        label_aggregation: Some("rate".to_owned()),
        series: Some(0),
        ..request("temperature", 200, 100, 1)
    };
    let expected = "the request for the metric is invalid
- labels.jb: there is no label \"jb\"; did you mean \"job\"? The labels are instance, job
- labels.instance: the pattern \"(\" cannot be compiled at character 1: unclosed group
- before: the window ends at 1970-01-01T00:01:40Z, not after its start at 1970-01-01T00:03:20Z; the metric has samples from 1970-01-01T00:00:00Z to 1970-01-01T01:00:00Z
- points: is 1001; expected 1 to 1000
- series: is 0; expected 1 to 1000
- aggregation: \"avrage\" is unknown; did you mean \"average\"? The choices are average, min, max, sum, median, percentile(P), rate, increase, last, count
- label_aggregation: \"rate\" is unknown; the choices are sum, average, min, max, median, percentile(P)
- by.1: there is no label \"region\"; the labels are instance, job";
    assert_eq!(problems(&request), expected);
}

#[test]
fn unknown_metrics_have_nearest_names() {
    assert!(problems(&request("request_total", 0, 1, 1)).contains("the nearest names are requests_total"));
    assert!(problems(&request("xyzzy", 0, 1, 1)).contains("list_metrics lists the 2 metrics"));
    let error = request("x", 0, 1, 1).resolve(&[], NOW_NS).unwrap_err();
    assert!(error.to_string().contains("the source has no metrics"));
}

#[test]
fn a_window_in_the_future_and_one_beyond_all_times() {
    let future = problems(&request("temperature", NOW_NS / S + 60, NOW_NS / S + 120, 1));
    assert!(future.contains("after: the window begins at 1970-01-12T13:47:40Z, in the future; it is 1970-01-12T13:46:40Z now; the metric has samples from"), "{future}");
    let beyond = MetricRequest { after_ns: i64::MIN, before_ns: i64::MAX, ..request("temperature", 0, 0, 1) };
    assert!(problems(&beyond).contains("between the years 1824 and 2116"));
}

#[test]
fn rates_need_counters() {
    let problem = problems(&aggregated(request("temperature", 0, 60, 1), "rate"));
    assert!(problem.contains("aggregation: rate needs a counter, and \"temperature\" is a gauge"), "{problem}");
}
