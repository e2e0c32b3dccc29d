//! A metric source that speaks the HTTP API of Prometheus: queries as PromQL, the paths and parameters of requests, and
//! how answers are read. Sending is the task of the caller.
//!
//! [HTTP API](https://prometheus.io/docs/prometheus/latest/querying/api/),
//! [Querying basics](https://prometheus.io/docs/prometheus/latest/querying/basics/)
//!
//! Differences to [`super::MetricEvaluator`], because the server computes the values:
//!
//! - The first and the last bucket are not cut at the ends of the window.
//! - `rate` and `increase` are extrapolated by the server, and need two samples within the range.
//! - Regular expressions have the syntax of RE2.
//! - A value is never held over buckets without samples.

use std::collections::BTreeMap;
use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::{Error as _, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use tidegate_core::{Error, ErrorKind, shorten};

use super::aggregation::{LabelAggregation, TimeAggregation};
use super::answer::{MetricAnswer, SampleCounts, SeriesCollector};
use super::exposition::MetricFamilies;
use super::model::{Labels, MetricKind, TimeWindow};
use super::request::{MetricQuery, POINTS_MAX};
use super::selection::{LabelCondition, LabelSelection};
use super::time_grid::format_duration;

/// The selector of the series of a metric, such as `up{job="api"}`. Without a metric, the selection needs a condition
/// that excludes the empty value, or the server refuses it.
pub fn render_selector(metric: Option<&str>, selection: &LabelSelection) -> String {
    let mut conditions: Vec<String> =
        selection.conditions().iter().map(|(name, condition)| render_condition(name, condition)).collect();
    let name = metric.filter(|metric| is_plain_name(metric, true));
    if let Some(metric) = metric.filter(|_| name.is_none()) {
        conditions.insert(0, format!("__name__={}", quote(metric)));
    }
    match (name, conditions.is_empty()) {
        (Some(name), true) => name.to_owned(),
        (name, _) => format!("{}{{{}}}", name.unwrap_or_default(), conditions.join(",")),
    }
}

fn render_condition(name: &str, condition: &LabelCondition) -> String {
    let (operator, value) = match condition {
        LabelCondition::Equals(value) => ("=", quote(value)),
        LabelCondition::OneOf(values) => ("=~", quote(&alternatives(values))),
        LabelCondition::NoneOf(values) if values.len() == 1 => ("!=", quote(&values.concat())),
        LabelCondition::NoneOf(values) => ("!~", quote(&alternatives(values))),
        LabelCondition::Matches(pattern) => ("=~", quote(pattern.as_str())),
        LabelCondition::NotMatches(pattern) => ("!~", quote(pattern.as_str())),
        LabelCondition::Missing => ("=", quote("")),
        LabelCondition::Present => ("!=", quote("")),
    };
    format!("{}{operator}{value}", label_name(name))
}

/// A regular expression that matches exactly these values.
fn alternatives(values: &[String]) -> String {
    values.iter().map(|value| escape_pattern(value)).collect::<Vec<_>>().join("|")
}

/// Only the characters that have a meaning in RE2 are escaped: it refuses a backslash before some others.
fn escape_pattern(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for character in value.chars() {
        if r"\.+*?()|[]{}^$".contains(character) {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

/// A text in double quotes.
fn quote(text: &str) -> String {
    let escaped = text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n").replace('\r', r"\r");
    format!("\"{escaped}\"")
}

/// A name as it is, or in quotes, which servers before version 3 do not accept.
fn label_name(name: &str) -> String {
    if is_plain_name(name, false) { name.to_owned() } else { quote(name) }
}

/// Whether a name needs no quotes. Those of metrics may contain colons.
fn is_plain_name(name: &str, is_metric: bool) -> bool {
    let is_part =
        |character: char| character.is_ascii_alphanumeric() || character == '_' || (is_metric && character == ':');
    !name.is_empty() && name.chars().all(is_part) && !name.starts_with(|first: char| first.is_ascii_digit())
}

/// The query for the range API: the value of each bucket, evaluated at its last millisecond.
pub fn render_query(query: &MetricQuery, options: &PrometheusOptions) -> String {
    let selector = render_selector(Some(&query.metric), &query.selection);
    let step_ns = step_ms(query) * MILLISECOND_NS;
    let range = |range_ns: u64| format!("{selector}[{}]", format_duration(range_ns));
    let over_time = |function: &str| format!("{function}_over_time({})", range(step_ns));
    let rate_ns = step_ns.max(options.rate_range_ns_min.next_multiple_of(MILLISECOND_NS));
    let series = match query.aggregation {
        TimeAggregation::Average => over_time("avg"),
        TimeAggregation::Min => over_time("min"),
        TimeAggregation::Max => over_time("max"),
        TimeAggregation::Sum => over_time("sum"),
        TimeAggregation::Last => over_time("last"),
        TimeAggregation::Count => over_time("count"),
        TimeAggregation::Rate => format!("rate({})", range(rate_ns)),
        TimeAggregation::Increase if rate_ns == step_ns => format!("increase({})", range(step_ns)),
        // The increase over a longer range than the step would count the same growth several times.
        TimeAggregation::Increase => format!("rate({}) * {}", range(rate_ns), step_ns as f64 / 1e9),
        TimeAggregation::Median => format!("quantile_over_time(0.5, {})", range(step_ns)),
        TimeAggregation::Percentile(percentage) => {
            format!("quantile_over_time({}, {})", fraction(percentage), range(step_ns))
        }
    };
    let Some(aggregation) = query.label_aggregation else { return series };
    let labels: Vec<String> = query.by.iter().map(|name| label_name(name)).collect();
    let by = format!("by ({})", labels.join(", "));
    match aggregation {
        LabelAggregation::Sum => format!("sum {by} ({series})"),
        LabelAggregation::Average => format!("avg {by} ({series})"),
        LabelAggregation::Min => format!("min {by} ({series})"),
        LabelAggregation::Max => format!("max {by} ({series})"),
        LabelAggregation::Percentile(percentage) => format!("quantile {by} ({}, {series})", fraction(percentage)),
    }
}

/// A percentage as a fraction, without the digits that division adds.
fn fraction(percentage: f64) -> f64 {
    (percentage * 1e10).round() / 1e12
}

/// Nanoseconds of a millisecond, the smallest unit of the API.
const MILLISECOND_NS: u64 = 1_000_000;
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
fn step_ms(query: &MetricQuery) -> u64 {
    query.grid.step_ns().div_ceil(MILLISECOND_NS).max(1)
}

/// The last millisecond of the first bucket: a range contains its end and not its start, unlike a bucket.
fn first_evaluation_ms(query: &MetricQuery) -> i128 {
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

/// The maximum size of an answer that is parsed, in bytes.
pub const BODY_BYTES_MAX: usize = 32 << 20;
/// The maximum number of series, names or values of an answer.
const ITEMS_MAX: usize = 100_000;
/// The number of warnings that are kept.
const WARNINGS_MAX: usize = 20;
/// The length to which texts of the server are cut, in characters.
const MESSAGE_CHARACTERS_MAX: usize = 500;
/// The label with the name of the metric.
const NAME_LABEL: &str = "__name__";

/// The data of a successful answer.
#[derive(Debug, Clone, PartialEq)]
pub struct PrometheusAnswer<T> {
    /// The data.
    pub data: T,
    /// Warnings of the server, for example that the answer is incomplete.
    pub warnings: Vec<String>,
}

/// The name and the labels of a series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrometheusSeries {
    /// The name of the metric; empty if a function removed it.
    pub metric: String,
    /// The other labels.
    pub labels: Labels,
}

/// A series with its values.
#[derive(Debug, Clone, PartialEq)]
pub struct RangeSeries {
    /// The series.
    pub series: PrometheusSeries,
    /// Times in milliseconds since 1970, and values.
    pub values: Vec<(i64, f64)>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<T> {
    status: String,
    data: Option<T>,
    error_type: Option<String>,
    error: Option<String>,
    warnings: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RangeData {
    result_type: String,
    result: BoundedList<RawSeries>,
}

#[derive(Deserialize)]
struct RawSeries {
    metric: BTreeMap<String, String>,
    #[serde(default)]
    values: Vec<RawValue>,
}

struct RawValue(i64, f64);

/// A list that is refused when it becomes too long, and not when it is in memory.
struct BoundedList<T>(Vec<T>);

#[derive(Deserialize)]
struct RawMetadata {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    help: String,
    #[serde(default)]
    unit: String,
}

/// Parses the answer of `query_range`.
///
/// # Errors
/// The error that the server reports, or that the answer has another form or is too large.
pub fn parse_range(body: &[u8]) -> Result<PrometheusAnswer<Vec<RangeSeries>>, Error> {
    let answer: PrometheusAnswer<RangeData> = parse(body)?;
    if answer.data.result_type != "matrix" {
        let result_type = shorten_message(answer.data.result_type);
        let message = format!("the Prometheus server returned a {result_type:?}, not a matrix");
        return Err(Error::new(ErrorKind::Unavailable, message));
    }
    let series = answer.data.result.0.into_iter().map(|raw| RangeSeries {
        series: split_name(raw.metric),
        values: raw.values.into_iter().map(|RawValue(time_ms, value)| (time_ms, value)).collect(),
    });
    Ok(PrometheusAnswer { data: series.collect(), warnings: answer.warnings })
}

/// Parses the answer of `series`.
///
/// # Errors
/// As [`parse_range`].
pub fn parse_series(body: &[u8]) -> Result<PrometheusAnswer<Vec<PrometheusSeries>>, Error> {
    let answer: PrometheusAnswer<BoundedList<BTreeMap<String, String>>> = parse(body)?;
    let series = answer.data.0.into_iter().map(split_name).collect();
    Ok(PrometheusAnswer { data: series, warnings: answer.warnings })
}

/// Parses the answers of `labels` and `label/…/values`.
///
/// # Errors
/// As [`parse_range`].
pub fn parse_label_values(body: &[u8]) -> Result<PrometheusAnswer<Vec<String>>, Error> {
    let answer: PrometheusAnswer<BoundedList<String>> = parse(body)?;
    Ok(PrometheusAnswer { data: answer.data.0, warnings: answer.warnings })
}

/// Parses the answer of `metadata`. If targets disagree about a metric, the first one counts.
///
/// # Errors
/// As [`parse_range`].
pub fn parse_metadata(body: &[u8]) -> Result<PrometheusAnswer<MetricFamilies>, Error> {
    let answer: PrometheusAnswer<BTreeMap<String, Vec<RawMetadata>>> = parse(body)?;
    let mut families = MetricFamilies::default();
    for (name, declarations) in answer.data {
        let Some(declared) = declarations.into_iter().next() else { continue };
        let family = families.family_mut(&name);
        family.kind = MetricKind::from_name(&declared.kind).unwrap_or_default();
        family.help = Some(declared.help).filter(|help| !help.is_empty());
        family.unit = Some(declared.unit).filter(|unit| !unit.is_empty()).or(family.unit.take());
    }
    Ok(PrometheusAnswer { data: families, warnings: answer.warnings })
}

/// The points of a query from the answer to its [`PrometheusRequest::range`].
pub fn to_metric_answer(query: &MetricQuery, answer: PrometheusAnswer<Vec<RangeSeries>>) -> MetricAnswer {
    let (first_ms, step_ms) = (first_evaluation_ms(query), i128::from(step_ms(query)));
    // The server has aggregated over labels.
    let mut collector = SeriesCollector::new(None, query.series_max);
    let mut counts = SampleCounts::default();
    for RangeSeries { series, values } in answer.data {
        counts.series += 1;
        let mut points = vec![None; query.grid.len()];
        for (time_ms, value) in values {
            let index = (i128::from(time_ms) - first_ms + step_ms / 2).div_euclid(step_ms);
            let point = usize::try_from(index).ok().and_then(|index| points.get_mut(index));
            if let Some(point) = point.filter(|_| !value.is_nan()) {
                *point = Some(value);
            }
        }
        if points.iter().any(Option::is_some) {
            collector.add(series.labels, points);
        }
    }
    let (series, left_out, _) = collector.finish();
    MetricAnswer {
        metric: query.metric.clone(),
        unit: query.unit.clone(),
        aggregation: query.aggregation,
        label_aggregation: query.label_aggregation,
        grid: query.grid,
        series,
        left_out,
        counts,
        is_approximate: false,
        notes: answer.warnings.into_iter().map(|warning| format!("the Prometheus server warns: {warning}")).collect(),
    }
}

fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<PrometheusAnswer<T>, Error> {
    if body.len() > BODY_BYTES_MAX {
        let message = format!("the answer of the Prometheus server has more than {} MiB", BODY_BYTES_MAX >> 20);
        return Err(Error::new(ErrorKind::TooLarge, message).with_hint("Request fewer points or fewer series."));
    }
    let envelope: Envelope<T> = match serde_json::from_slice(body) {
        Ok(envelope) => envelope,
        // An error may have data of another form.
        Err(error) => match serde_json::from_slice::<Envelope<IgnoredAny>>(body) {
            Ok(Envelope { status, error_type, error, .. }) if status == "error" => {
                return Err(server_error(error_type, error));
            }
            _ => return Err(form_error(&error)),
        },
    };
    match (envelope.status.as_str(), envelope.data) {
        ("success", Some(data)) => {
            let warnings = envelope.warnings.unwrap_or_default().into_iter().take(WARNINGS_MAX);
            Ok(PrometheusAnswer { data, warnings: warnings.map(shorten_message).collect() })
        }
        ("success", None) => Err(Error::new(ErrorKind::Unavailable, "the answer of the Prometheus server has no data")),
        _ => Err(server_error(envelope.error_type, envelope.error)),
    }
}

fn server_error(error_type: Option<String>, message: Option<String>) -> Error {
    let error_type = error_type.unwrap_or_else(|| "an error".to_owned());
    let kind = match error_type.as_str() {
        "timeout" => ErrorKind::TimedOut,
        "unavailable" | "internal" => ErrorKind::Unavailable,
        "not_found" => ErrorKind::NotFound,
        _ => ErrorKind::Failed,
    };
    let message = message.unwrap_or_else(|| "no message".to_owned());
    let (error_type, message) = (shorten_message(error_type), shorten_message(message));
    Error::new(kind, format!("the Prometheus server reports {error_type}: {message}"))
}

fn form_error(error: &serde_json::Error) -> Error {
    let message = "the answer is not one of the Prometheus HTTP API; check the URL of the source";
    Error::new(ErrorKind::Unavailable, format!("{message} ({})", shorten_message(error.to_string())))
}

fn shorten_message(text: String) -> String {
    shorten(text, MESSAGE_CHARACTERS_MAX)
}

fn split_name(mut labels: BTreeMap<String, String>) -> PrometheusSeries {
    let metric = labels.remove(NAME_LABEL).unwrap_or_default();
    PrometheusSeries { metric, labels: Labels::new(labels) }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for BoundedList<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ListVisitor<T>(std::marker::PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
            type Value = BoundedList<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a list of at most {ITEMS_MAX} items")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
                let mut list = Vec::new();
                while let Some(item) = items.next_element()? {
                    if list.len() >= ITEMS_MAX {
                        return Err(A::Error::custom(format!("more than {ITEMS_MAX} items")));
                    }
                    list.push(item);
                }
                Ok(BoundedList(list))
            }
        }

        deserializer.deserialize_seq(ListVisitor(std::marker::PhantomData))
    }
}

impl<'de> Deserialize<'de> for RawValue {
    /// `[1435781430.781, "1.5"]`
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (seconds, value) = <(f64, std::borrow::Cow<'de, str>)>::deserialize(deserializer)?;
        let value: f64 = value.parse().map_err(|_| D::Error::custom(format!("{value:?} is not a number")))?;
        Ok(Self((seconds * 1e3).round() as i64, value))
    }
}

/// The number of points that a server may return for a series is that of the request.
const _: () = assert!(POINTS_MAX < ITEMS_MAX);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::aggregation::TimeAggregation;
    use super::super::model::{MetricKind, TimeWindow};
    use super::super::selection::LabelSelection;
    use super::super::time_grid::TimeGrid;
    use super::*;

    fn query(conditions: &serde_json::Value, aggregation: &str, points: usize) -> MetricQuery {
        MetricQuery {
            metric: "http_requests_total".to_owned(),
            unit: None,
            kind: MetricKind::Counter,
            selection: LabelSelection::parse(conditions.as_object().unwrap(), None).unwrap(),
            grid: TimeGrid::new(TimeWindow::new(0, 3_600_000_000_000), points),
            aggregation: TimeAggregation::parse(aggregation).unwrap(),
            label_aggregation: None,
            by: Vec::new(),
            series_max: 20,
        }
    }

    #[test]
    fn every_condition() {
        let render = |conditions: serde_json::Value| {
            render_selector(Some("m"), &LabelSelection::parse(conditions.as_object().unwrap(), None).unwrap())
        };
        assert_eq!(render(json!({})), "m");
        assert_eq!(
            render(json!({"a": "x\"\\\n", "b": ["1.5", "a|b", "c-d"]})),
            r#"m{a="x\"\\\n",b=~"1\\.5|a\\|b|c-d"}"#
        );
        assert_eq!(render(json!({"a": {"not": "x"}, "b": {"not": ["x", "y"]}})), r#"m{a!="x",b!~"x|y"}"#);
        assert_eq!(render(json!({"a": null, "b": {"not": null}})), r#"m{a="",b!=""}"#);
        assert_eq!(
            render(json!({"a": {"matches": "x\\d"}, "b.c": {"not_matches": "y"}})),
            r#"m{a=~"x\\d","b.c"!~"y"}"#
        );
        assert_eq!(render_selector(Some("my.metric"), &LabelSelection::default()), r#"{__name__="my.metric"}"#);
    }

    #[test]
    fn every_aggregation() {
        let options = PrometheusOptions { rate_range_ns_min: 0 };
        let render = |aggregation: &str| render_query(&query(&json!({"job": "a"}), aggregation, 60), &options);
        let selector = r#"http_requests_total{job="a"}"#;
        assert_eq!(render("rate"), format!("rate({selector}[1m])"));
        assert_eq!(render("increase"), format!("increase({selector}[1m])"));
        assert_eq!(render("average"), format!("avg_over_time({selector}[1m])"));
        assert_eq!(render("p99.9"), format!("quantile_over_time(0.999, {selector}[1m])"));
        assert_eq!(render("median"), format!("quantile_over_time(0.5, {selector}[1m])"));
        let slow = PrometheusOptions { rate_range_ns_min: 240_000_000_000 };
        let increase = render_query(&query(&json!({}), "increase", 60), &slow);
        assert_eq!(increase, "rate(http_requests_total[4m]) * 60");
        let grouped = MetricQuery {
            label_aggregation: Some(LabelAggregation::Percentile(90.0)),
            by: vec!["job".to_owned(), "my.label".to_owned()],
            ..query(&json!({}), "rate", 60)
        };
        let expected = r#"quantile by (job, "my.label") (0.9, rate(http_requests_total[1m]))"#;
        assert_eq!(render_query(&grouped, &options), expected);
        let total = MetricQuery { label_aggregation: Some(LabelAggregation::Sum), ..query(&json!({}), "max", 1) };
        assert_eq!(render_query(&total, &options), "sum by () (max_over_time(http_requests_total[1h]))");
    }

    proptest! {
        /// A value in quotes has one reading: no value ends its quotes early, and a list of values matches only them.
        #[test]
        fn values_cannot_leave_their_quotes(value in any::<String>(), other in any::<String>()) {
            let quoted = quote(&value);
            let inner = &quoted[1..quoted.len() - 1];
            let mut is_escaped = false;
            for character in inner.chars() {
                prop_assert!(is_escaped || (character != '"' && character != '\n'));
                is_escaped = character == '\\' && !is_escaped;
            }
            prop_assert!(!is_escaped);
            let pattern = regex::Regex::new(&format!("^(?s:{})$", alternatives(std::slice::from_ref(&value)))).unwrap();
            prop_assert!(pattern.is_match(&value));
            prop_assert_eq!(pattern.is_match(&other), other == value);
        }
    }

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

    fn gauge_query() -> MetricQuery {
        MetricQuery {
            metric: "up".to_owned(),
            unit: None,
            kind: MetricKind::Gauge,
            selection: LabelSelection::default(),
            grid: TimeGrid::new(TimeWindow::new(0, 180_000_000_000), 3),
            aggregation: TimeAggregation::Last,
            label_aggregation: None,
            by: Vec::new(),
            series_max: 1,
        }
    }

    #[test]
    fn a_matrix_becomes_points() {
        let body = br#"{"status":"success","warnings":["partial"],"data":{"resultType":"matrix","result":[
            {"metric":{"__name__":"up","job":"a"},"values":[[59.999,"1"],[179.999,"+Inf"]]},
            {"metric":{"job":"b"},"values":[[119.999,"2.5"],[179.999,"NaN"]]},
            {"metric":{"job":"c"},"values":[[59.999,"NaN"]]}]}}"#;
        let answer = to_metric_answer(&gauge_query(), parse_range(body).unwrap());
        assert_eq!(answer.series[0].values, [Some(1.0), None, Some(f64::INFINITY)]);
        assert_eq!(answer.left_out.unwrap().largest, [Labels::new([("job", "b")])]);
        assert_eq!(answer.notes, ["the Prometheus server warns: partial"]);
    }

    #[test]
    fn catalog_answers() {
        let series = parse_series(br#"{"status":"success","data":[{"__name__":"up","job":"a"}]}"#).unwrap().data;
        assert_eq!(series, [PrometheusSeries { metric: "up".to_owned(), labels: Labels::new([("job", "a")]) }]);
        assert_eq!(parse_label_values(br#"{"status":"success","data":["a","b"]}"#).unwrap().data, ["a", "b"]);
        let metadata = br#"{"status":"success","data":{"x_seconds":[{"type":"histogram","help":"H","unit":""}]}}"#;
        let families = parse_metadata(metadata).unwrap().data;
        assert_eq!(families.kind_of("x_seconds_bucket"), MetricKind::Counter);
        assert_eq!(families.family_of("x_seconds").unwrap().unit.as_deref(), Some("seconds"));
    }

    #[test]
    fn errors_are_those_of_the_server() {
        let message = |body: &str| {
            let error = parse_range(body.as_bytes()).unwrap_err();
            (error.kind(), error.message().to_owned())
        };
        let bad = r#"{"status":"error","errorType":"bad_data","error":"parse error at char 3"}"#;
        assert_eq!(
            message(bad),
            (ErrorKind::Failed, "the Prometheus server reports bad_data: parse error at char 3".to_owned())
        );
        let timeout = r#"{"status":"error","data":"x","errorType":"timeout","error":"too slow"}"#;
        assert_eq!(message(timeout).0, ErrorKind::TimedOut);
        assert!(message("<html>").1.contains("check the URL of the source"));
        assert!(message(r#"{"status":"success"}"#).1.contains("has no data"));
        assert!(
            message(r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#).1.contains("not a matrix")
        );
        let value =
            r#"{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1,"x"]]}]}}"#;
        assert!(message(value).1.contains("\"x\" is not a number"));
        let many = format!(r#"{{"status":"success","data":[{}"a"]}}"#, "\"a\",".repeat(100_000));
        assert!(parse_label_values(many.as_bytes()).unwrap_err().message().contains("more than 100000 items"));
    }

    proptest! {
        #[test]
        fn arbitrary_bodies_never_panic(body in r#"([{}\[\],:]|"(status|success|data|result|matrix|values|metric|x)"|[0-9]{1,20}|1e999|null){0,40}"#) {
            let _ = parse_range(body.as_bytes()).map(|answer| to_metric_answer(&gauge_query(), answer));
            let _ = (parse_series(body.as_bytes()), parse_label_values(body.as_bytes()), parse_metadata(body.as_bytes()));
        }
    }
}
