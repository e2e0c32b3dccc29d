//! Queries as PromQL.
//!
//! [Querying basics](https://prometheus.io/docs/prometheus/latest/querying/basics/)

use super::super::aggregation::{LabelAggregation, TimeAggregation};
use super::super::request::MetricQuery;
use super::super::selection::{LabelCondition, LabelSelection};
use super::super::time_grid::format_duration;
use super::request::{MILLISECOND_NS, PrometheusOptions, step_ms};

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
pub(super) fn is_plain_name(name: &str, is_metric: bool) -> bool {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::super::model::{MetricKind, TimeWindow};
    use super::super::super::time_grid::TimeGrid;
    use super::*;

    pub(super) fn query(conditions: &serde_json::Value, aggregation: &str, points: usize) -> MetricQuery {
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
}
