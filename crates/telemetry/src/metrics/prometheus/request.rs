//! The paths and parameters of requests.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::super::model::TimeWindow;
use super::super::request::MetricQuery;
use super::promql::{is_plain_name, render_query};

/// Nanoseconds of a millisecond, the smallest unit of the API.
pub(super) const MILLISECOND_NS: u64 = 1_000_000;
/// The characters that need no escape in a path or a parameter.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// How queries are written for a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrometheusOptions {
    /// The shortest range of `rate`, in nanoseconds. A range needs two samples, so four times the scrape interval of
    /// the server is usual.
    pub rate_range_ns_min: u64,
}

impl Default for PrometheusOptions {
    /// One minute, for a scrape interval of 15 seconds.
    fn default() -> Self {
        Self { rate_range_ns_min: 60_000_000_000 }
    }
}

/// A request to a server: a path below its base URL, and parameters, which may be sent in the query (GET) or as a form
/// (POST).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrometheusRequest {
    /// The path, escaped.
    pub path: String,
    /// Names and values, not escaped.
    pub parameters: Vec<(&'static str, String)>,
}

impl PrometheusRequest {
    /// The points of a query: `query_range`.
    pub fn range(query: &MetricQuery, options: &PrometheusOptions) -> Self {
        let (first_ms, step_ms) = (first_evaluation_ms(query), i128::from(step_ms(query)));
        let last_ms = first_ms + step_ms * (query.grid.len() as i128 - 1);
        let parameters = vec![
            ("query", render_query(query, options)),
            ("start", seconds(first_ms)),
            ("end", seconds(last_ms)),
            ("step", seconds(step_ms)),
        ];
        Self { path: api_path("query_range"), parameters }
    }

    /// The series that fulfil one of the selectors: `series`.
    pub fn series(selectors: Vec<String>, window: TimeWindow, limit: usize) -> Self {
        Self { path: api_path("series"), parameters: parameters(selectors, Some(window), limit) }
    }

    /// The names of labels of the series that fulfil one of the selectors: `labels`. Without selectors, of all series.
    pub fn label_names(selectors: Vec<String>, window: TimeWindow, limit: usize) -> Self {
        Self { path: api_path("labels"), parameters: parameters(selectors, Some(window), limit) }
    }

    /// The values of a label: `label/…/values`. Those of `__name__` are the names of the metrics.
    pub fn label_values(label: &str, selectors: Vec<String>, window: TimeWindow, limit: usize) -> Self {
        let name = if is_plain_name(label, false) { label.to_owned() } else { escape_name(label) };
        let path = api_path(&format!("label/{}/values", utf8_percent_encode(&name, ESCAPED)));
        Self { path, parameters: parameters(selectors, Some(window), limit) }
    }

    /// The kinds, units and descriptions of metrics: `metadata`.
    pub fn metadata(metric: Option<&str>, limit: usize) -> Self {
        let mut parameters = vec![("limit", limit.to_string())];
        parameters.extend(metric.map(|metric| ("metric", metric.to_owned())));
        Self { path: api_path("metadata"), parameters }
    }

    /// The parameters as a query or a form.
    pub fn encoded_parameters(&self) -> String {
        let encode = |(name, value): &(&str, String)| {
            format!("{}={}", utf8_percent_encode(name, ESCAPED), utf8_percent_encode(value, ESCAPED))
        };
        self.parameters.iter().map(encode).collect::<Vec<_>>().join("&")
    }

    /// The path with the parameters behind it, for GET.
    pub fn path_and_query(&self) -> String {
        format!("{}?{}", self.path, self.encoded_parameters())
    }
}

fn api_path(name: &str) -> String {
    format!("/api/v1/{name}")
}

fn parameters(selectors: Vec<String>, window: Option<TimeWindow>, limit: usize) -> Vec<(&'static str, String)> {
    let mut parameters: Vec<_> = selectors.into_iter().map(|selector| ("match[]", selector)).collect();
    if let Some(window) = window {
        let milliseconds = |time_ns: i64| seconds(i128::from(time_ns).div_euclid(i128::from(MILLISECOND_NS)));
        parameters.push(("start", milliseconds(window.after_ns)));
        parameters.push(("end", milliseconds(window.before_ns)));
    }
    parameters.push(("limit", limit.to_string()));
    parameters
}

/// The width of a bucket, at least one millisecond.
pub(super) fn step_ms(query: &MetricQuery) -> u64 {
    query.grid.step_ns().div_ceil(MILLISECOND_NS).max(1)
}

/// The last millisecond of the first bucket: a range contains its end and not its start, unlike a bucket.
pub(super) fn first_evaluation_ms(query: &MetricQuery) -> i128 {
    let origin_ms = i128::from(query.grid.origin_ns()).div_euclid(i128::from(MILLISECOND_NS));
    origin_ms + i128::from(step_ms(query)) - 1
}

/// Milliseconds as seconds with three digits of the fraction.
fn seconds(milliseconds: i128) -> String {
    let sign = if milliseconds < 0 { "-" } else { "" };
    let absolute = milliseconds.unsigned_abs();
    format!("{sign}{}.{:03}", absolute / 1_000, absolute % 1_000)
}

/// A name as paths contain it if it has other characters than letters, digits and underscores: `U__`, with underscores
/// doubled and other characters as their numbers.
fn escape_name(name: &str) -> String {
    let mut escaped = "U__".to_owned();
    for character in name.chars() {
        match character {
            '_' => escaped.push_str("__"),
            _ if character.is_ascii_alphanumeric() => escaped.push(character),
            _ => escaped.push_str(&format!("_{:x}_", u32::from(character))),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::super::super::aggregation::TimeAggregation;
    use super::super::super::model::MetricKind;
    use super::super::super::selection::LabelSelection;
    use super::super::super::time_grid::TimeGrid;
    use super::*;

    const S: i64 = 1_000_000_000;

    #[test]
    fn ranges_are_evaluated_at_the_ends_of_buckets() {
        let query = MetricQuery {
            metric: "up".to_owned(),
            unit: None,
            kind: MetricKind::Gauge,
            selection: LabelSelection::default(),
            grid: TimeGrid::new(TimeWindow::new(90 * S, 390 * S), 6),
            aggregation: TimeAggregation::Last,
            label_aggregation: None,
            by: Vec::new(),
            series_max: 20,
        };
        // The buckets begin at 60 s and end at 420 s.
        let expected = "/api/v1/query_range?query=last_over_time%28up%5B1m%5D%29&start=119.999&end=419.999&step=60.000";
        assert_eq!(PrometheusRequest::range(&query, &PrometheusOptions::default()).path_and_query(), expected);
    }

    #[test]
    fn catalog_requests() {
        let window = TimeWindow::new(-1_500_000_000, 2 * S);
        let series = PrometheusRequest::series(vec!["up{a=\"é&\"}".to_owned()], window, 10);
        let expected = "/api/v1/series?match%5B%5D=up%7Ba%3D%22%C3%A9%26%22%7D&start=-1.500&end=2.000&limit=10";
        assert_eq!(series.path_and_query(), expected);
        let path = |label: &str| PrometheusRequest::label_values(label, Vec::new(), window, 10).path;
        assert_eq!(path("__name__"), "/api/v1/label/__name__/values");
        assert_eq!(path("my.label_é/"), "/api/v1/label/U__my_2e_label___e9__2f_/values");
        assert_eq!(PrometheusRequest::metadata(Some("up"), 5).path_and_query(), "/api/v1/metadata?limit=5&metric=up");
    }
}
