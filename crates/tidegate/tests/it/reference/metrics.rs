//! `docs/reference/metrics.md`, from the list of metrics.

use tidegate::transport::{METRICS, MetricType};

use super::{check_page, code, plain, root, table};

const INTRODUCTION: &str = "\
# Metrics

`/metrics` exports these metrics in the Prometheus text format. Callers need a role with `access: [metrics]`, if the server has `auth`.
`server: {transports: {metrics: false}}` disables the endpoint.

A name ends with its unit. Those with `_total` are counters, which begin at zero when the server starts, those with `_duration_seconds`
histograms, all others gauges. Most metrics appear after their first event. Names in labels come from the server's own lists, never from a
caller's text.

";

#[test]
fn metrics_page_is_current() {
    let mut rows = Vec::new();
    for metric in &METRICS {
        let is_counter = metric.kind == MetricType::Counter;
        assert_eq!(is_counter, metric.name.ends_with("_total"), "{}", metric.name);
        let is_histogram = metric.kind == MetricType::Histogram;
        assert_eq!(is_histogram, metric.name.ends_with("_duration_seconds"), "{}", metric.name);
        let labels = metric.labels.iter().map(|label| code(label)).collect::<Vec<_>>().join(", ");
        rows.push(vec![code(metric.name), labels, plain(metric.meaning)]);
    }
    check_page("metrics.md", &format!("{INTRODUCTION}{}", table(&["name", "labels", "meaning"], &rows)));
}

#[test]
fn metrics_are_listed_and_recorded() {
    let source = std::fs::read_to_string(root().join("crates/transport/src/metrics.rs")).unwrap();
    let named: Vec<&str> = source.split('"').filter(|text| text.starts_with("tidegate_")).collect();
    for name in &named {
        assert!(METRICS.iter().any(|metric| metric.name == *name), "METRICS lacks {name}");
    }
    for metric in &METRICS {
        let count = named.iter().filter(|name| **name == metric.name).count();
        assert!(count > 1, "{} is listed and not recorded", metric.name);
    }
}
