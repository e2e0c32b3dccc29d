//! A metric source that speaks the HTTP API of Prometheus: what is requested, and how answers are read. Sending is the
//! task of the caller.
//!
//! [HTTP API](https://prometheus.io/docs/prometheus/latest/querying/api/)
//!
//! Differences to [`super::MetricEvaluator`], because the server computes the values:
//!
//! - The first and the last bucket are not cut at the ends of the window.
//! - `rate` and `increase` are extrapolated by the server, and need two samples within the range.
//! - Regular expressions have the syntax of RE2.
//! - A value is never held over buckets without samples.

mod answer;
mod promql;
mod request;

pub use answer::{
    BODY_BYTES_MAX, PrometheusAnswer, PrometheusSeries, RangeSeries, parse_label_values, parse_metadata, parse_range,
    parse_series, to_metric_answer,
};
pub use promql::{render_query, render_selector};
pub use request::{PrometheusOptions, PrometheusRequest};
