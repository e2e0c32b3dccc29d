//! A request for the points of a metric, which selects series by conditions on their labels, and the checked query that
//! it becomes.

use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};
use tidegate_core::{Error, Violation, nearest_names};

use super::aggregation::{LabelAggregation, TimeAggregation};
use super::catalog::MetricSummary;
use super::model::{Labels, MetricKind, TimeWindow, format_time};
use super::time_grid::TimeGrid;

/// The maximum number of points of each series.
pub const POINTS_MAX: usize = 1_000;
/// The number of points if the request names none.
const POINTS_DEFAULT: usize = 60;
/// The maximum number of series in an answer.
pub const SERIES_ANSWERED_MAX: usize = 1_000;
/// The number of series if the request names none.
const SERIES_DEFAULT: usize = 20;
/// The maximum number of labels to group by.
const GROUPING_LABELS_MAX: usize = 16;
/// The times that can be requested lie within this distance of 1970, about 146 years, so that differences of times can
/// be represented.
const TIME_NS_MAX: i64 = i64::MAX / 2;
/// How long before the window the base of a counter is searched at least.
const LOOKBACK_NS_MIN: u64 = 300_000_000_000;

/// The parameters of a request as a caller wrote them, with times already resolved.
#[derive(Debug, Clone, Default)]
pub struct MetricRequest {
    /// The name of the metric.
    pub metric: String,
    /// Conditions on labels; [`super::LabelCondition::parse`] has their forms.
    pub labels: Map<String, Value>,
    /// The start of the window, in nanoseconds since 1970.
    pub after_ns: i64,
    /// The end of the window, which is not part of it.
    pub before_ns: i64,
    /// The number of points of each series, 1 to [`POINTS_MAX`]. `None` is 60.
    pub points: Option<i64>,
    /// The aggregation over time. `None` is `rate` for counters and their increments, and `average` for others.
    pub aggregation: Option<String>,
    /// The labels to group by. `None` groups only if `label_aggregation` is set, and then into one series.
    pub by: Option<Vec<String>>,
    /// The aggregation over series. `None` with `by` is `sum` where sums make sense, and otherwise `average`.
    pub label_aggregation: Option<String>,
    /// The number of series in the answer, 1 to [`SERIES_ANSWERED_MAX`]. `None` is 20.
    pub series: Option<i64>,
}

/// A checked request.
#[derive(Debug, Clone)]
pub struct MetricQuery {
    /// The name of the metric.
    pub metric: String,
    /// The unit of its samples.
    pub unit: Option<String>,
    /// The kind of the metric.
    pub kind: MetricKind,
    /// Which series are read.
    pub selection: LabelSelection,
    /// The buckets.
    pub grid: TimeGrid,
    /// How samples become the value of a bucket.
    pub aggregation: TimeAggregation,
    /// How series become one; `None` keeps each series.
    pub label_aggregation: Option<LabelAggregation>,
    /// The labels to group by; without any, all series become one.
    pub by: Vec<String>,
    /// The maximum number of series in the answer.
    pub series_max: usize,
}

impl MetricQuery {
    /// The times of the samples that the query needs. For counters it begins five minutes, or one step if that is
    /// longer, before the window: the last sample there is the base of the first one in the window.
    pub fn read_window(&self) -> TimeWindow {
        let window = self.grid.window();
        if !self.measures_growth() {
            return window;
        }
        let lookback_ns = i64::try_from(self.grid.step_ns().max(LOOKBACK_NS_MIN)).unwrap_or(i64::MAX);
        TimeWindow { after_ns: window.after_ns.saturating_sub(lookback_ns), before_ns: window.before_ns }
    }

    /// Whether values come from the growth between two samples. Increments are growth already.
    pub fn measures_growth(&self) -> bool {
        self.aggregation.needs_counter() && self.kind != MetricKind::Delta
    }
}

impl MetricRequest {
    /// Checks the request against the metrics that the caller can see. `now_ns` is the present time.
    ///
    /// # Errors
    /// `InvalidArguments` with all violations, with the nearest names and the choices.
    pub fn resolve(&self, metrics: &[MetricSummary], now_ns: i64) -> Result<MetricQuery, Error> {
        let mut violations = Violations::default();
        let metric = metrics.iter().find(|metric| metric.name == self.metric);
        if metric.is_none() {
            violations.add("metric", unknown_metric(&self.metric, metrics));
        }
        let label_names: Option<Vec<&str>> = metric.and_then(MetricSummary::label_names);
        let selection = LabelSelection::parse(&self.labels, label_names.as_deref());
        let selection = selection.unwrap_or_else(|more| {
            violations.0.extend(more);
            LabelSelection::default()
        });
        let kind = metric.map_or(MetricKind::Unknown, |metric| metric.kind);
        let window = self.window(metric, now_ns, &mut violations);
        let points = bounded(self.points, POINTS_DEFAULT, POINTS_MAX, "points", &mut violations);
        let series_max = bounded(self.series, SERIES_DEFAULT, SERIES_ANSWERED_MAX, "series", &mut violations);
        let aggregation = self.time_aggregation(kind, &mut violations);
        let label_aggregation = self.label_aggregation(aggregation, &mut violations);
        let by = self.grouping_labels(label_names.as_deref(), &mut violations);
        if !violations.0.is_empty() {
            return Err(Error::invalid_arguments("the request for the metric is invalid", violations.0));
        }
        let unit = metric.and_then(|metric| metric.unit.clone());
        let grid = TimeGrid::new(window, points);
        let metric = self.metric.clone();
        Ok(MetricQuery { metric, unit, kind, selection, grid, aggregation, label_aggregation, by, series_max })
    }

    fn window(&self, metric: Option<&MetricSummary>, now_ns: i64, violations: &mut Violations) -> TimeWindow {
        if let Some(mut violation) = window_violation(self.after_ns, self.before_ns, now_ns) {
            let covered = metric.and_then(|metric| metric.covers);
            violation.message.extend(covered.map(|covered| format!("; the metric has samples from {covered}")));
            violations.0.push(violation);
        }
        TimeWindow::new(self.after_ns, self.before_ns)
    }

    fn time_aggregation(&self, kind: MetricKind, violations: &mut Violations) -> TimeAggregation {
        let default = TimeAggregation::default_for(kind);
        let Some(text) = &self.aggregation else { return default };
        match TimeAggregation::parse(text) {
            Ok(aggregation) if aggregation.needs_counter() && kind == MetricKind::Gauge => {
                let message = format!(
                    "{aggregation} needs a counter, and {:?} is a gauge; choose for example average, min, max or last",
                    self.metric
                );
                violations.add("aggregation", message);
                default
            }
            Ok(aggregation) => aggregation,
            Err(message) => {
                violations.add("aggregation", message);
                default
            }
        }
    }

    fn label_aggregation(&self, time: TimeAggregation, violations: &mut Violations) -> Option<LabelAggregation> {
        let Some(text) = &self.label_aggregation else {
            return self.by.as_ref().map(|_| LabelAggregation::default_for(time));
        };
        match LabelAggregation::parse(text) {
            Ok(aggregation) => Some(aggregation),
            Err(message) => violations.add_for_default("label_aggregation", message),
        }
    }

    fn grouping_labels(&self, known: Option<&[&str]>, violations: &mut Violations) -> Vec<String> {
        let by = self.by.clone().unwrap_or_default();
        if by.len() > GROUPING_LABELS_MAX {
            let message = format!("has {} labels; the maximum is {GROUPING_LABELS_MAX}", by.len());
            return violations.add_for_default("by", message);
        }
        for (index, name) in by.iter().enumerate() {
            if let Some(message) = known.and_then(|known| unknown_label(name, known)) {
                violations.add(&format!("by.{index}"), message);
            }
        }
        by
    }
}

/// Why no metric can have samples in the window from `after_ns` to `before_ns`, if it is the wrong way round, in the future,
/// or too far away.
pub fn window_violation(after_ns: i64, before_ns: i64, now_ns: i64) -> Option<Violation> {
    let is_representable = |time_ns: i64| (-TIME_NS_MAX..=TIME_NS_MAX).contains(&time_ns);
    let (after, before) = (format_time(after_ns), format_time(before_ns));
    let (path, message) = if !is_representable(after_ns) || !is_representable(before_ns) {
        ("after", "the window must lie between the years 1824 and 2116".to_owned())
    } else if after_ns > now_ns {
        let now = format_time(now_ns);
        ("after", format!("the window begins at {after}, in the future; it is {now} now"))
    } else if after_ns >= before_ns {
        ("before", format!("the window ends at {before}, not after its start at {after}"))
    } else {
        return None;
    };
    Some(Violation { path: path.to_owned(), message })
}

/// Collects the problems of a request, and gives a default in place of each invalid part.
#[derive(Debug, Default)]
struct Violations(Vec<Violation>);

impl Violations {
    fn add(&mut self, path: &str, message: impl Into<String>) {
        self.0.push(Violation { path: path.to_owned(), message: message.into() });
    }

    fn add_for_default<T: Default>(&mut self, path: &str, message: impl Into<String>) -> T {
        self.add(path, message);
        T::default()
    }
}

fn bounded(number: Option<i64>, default: usize, max: usize, path: &str, violations: &mut Violations) -> usize {
    let Some(number) = number else { return default };
    let accepted = usize::try_from(number).ok().filter(|number| (1..=max).contains(number));
    accepted.unwrap_or_else(|| {
        violations.add(path, format!("is {number}; expected 1 to {max}"));
        default
    })
}

fn unknown_metric(name: &str, metrics: &[MetricSummary]) -> String {
    let nearest = nearest_names(name, metrics.iter().map(|metric| metric.name.as_str()));
    match (nearest.as_slice(), metrics.len()) {
        (_, 0) => format!("there is no metric {name:?}; the source has no metrics"),
        ([], count) => format!("there is no metric {name:?}; list_metrics lists the {count} metrics"),
        (nearest, _) => format!("there is no metric {name:?}; the nearest names are {}", nearest.join(", ")),
    }
}

/// The maximum number of conditions of a request.
const CONDITIONS_MAX: usize = 64;
/// The maximum number of values of one condition.
const VALUES_MAX: usize = 1_000;
/// The maximum length of a pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 4_096;
/// The maximum size of a compiled pattern, in bytes.
const COMPILED_BYTES_MAX: usize = 1 << 20;
/// The forms of a condition, for messages.
const FORMS: &str = "a value, a list of values, null (the label is missing), {\"not\": a value, a list or null}, \
                     {\"matches\": a regular expression} or {\"not_matches\": a regular expression}";

/// A regular expression that must match a whole value. `.` matches line feeds too, as in Prometheus.
#[derive(Debug, Clone)]
pub struct LabelPattern {
    text: String,
    regex: Regex,
}

impl LabelPattern {
    /// Compiles `text`.
    ///
    /// # Errors
    /// The reason and the position of the first character that cannot be compiled.
    pub fn new(text: &str) -> Result<Self, String> {
        if text.len() > PATTERN_BYTES_MAX {
            return Err(format!("the pattern has {} bytes; the maximum is {PATTERN_BYTES_MAX}", text.len()));
        }
        if let Err(error) = regex_syntax::parse(text) {
            return Err(syntax_error(text, &error));
        }
        let regex = RegexBuilder::new(&format!("^(?s:{text})$")).size_limit(COMPILED_BYTES_MAX).build();
        match regex {
            Ok(regex) => Ok(Self { text: text.to_owned(), regex }),
            Err(regex::Error::CompiledTooBig(bytes)) => {
                Err(format!("the pattern {text:?} needs more than {bytes} bytes; use fewer repetitions"))
            }
            Err(_) => Err(format!("the pattern {text:?} cannot be used for a whole value")),
        }
    }

    /// The expression as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the whole `value` matches.
    pub fn matches(&self, value: &str) -> bool {
        self.regex.is_match(value)
    }
}

fn syntax_error(text: &str, error: &regex_syntax::Error) -> String {
    let (reason, span) = match error {
        regex_syntax::Error::Parse(error) => (error.kind().to_string(), Some(*error.span())),
        regex_syntax::Error::Translate(error) => (error.kind().to_string(), Some(*error.span())),
        _ => ("it is not a regular expression".to_owned(), None),
    };
    let Some(span) = span else { return format!("the pattern {text:?} cannot be compiled: {reason}") };
    let position = text.get(..span.start.offset).unwrap_or_default().chars().count() + 1;
    format!("the pattern {text:?} cannot be compiled at character {position}: {reason}")
}

/// What the value of one label must be. A missing label has the empty value.
#[derive(Debug, Clone)]
pub enum LabelCondition {
    /// Exactly this value.
    Equals(String),
    /// One of these values.
    OneOf(Vec<String>),
    /// None of these values. A missing label fulfils it, unless the empty value is listed.
    NoneOf(Vec<String>),
    /// The whole value matches.
    Matches(LabelPattern),
    /// The whole value does not match. A missing label fulfils it, unless the pattern matches the empty text.
    NotMatches(LabelPattern),
    /// The series does not have the label.
    Missing,
    /// The series has the label.
    Present,
}

impl LabelCondition {
    /// Reads a condition in the form that requests use.
    ///
    /// # Errors
    /// What is wrong, and the valid forms.
    pub fn parse(json: &Value) -> Result<Self, String> {
        let Value::Object(members) = json else {
            return match json {
                Value::Null => Ok(Self::Missing),
                Value::Array(_) => values(json).map(Self::OneOf),
                _ => value(json).map(Self::Equals),
            };
        };
        let mut members = members.iter();
        let (Some((operator, operand)), None) = (members.next(), members.next()) else {
            return Err(format!("needs exactly one operator; expected {FORMS}"));
        };
        let pattern = || LabelPattern::new(operand.as_str().ok_or("needs a pattern as text")?);
        match (operator.as_str(), operand) {
            ("not", Value::Null) => Ok(Self::Present),
            ("not", Value::Array(_)) => values(operand).map(Self::NoneOf),
            ("not", _) => Ok(Self::NoneOf(vec![value(operand)?])),
            ("matches", _) => pattern().map(Self::Matches),
            ("not_matches", _) => pattern().map(Self::NotMatches),
            _ => Err(format!("has the unknown operator {operator:?}; expected {FORMS}")),
        }
    }

    /// Whether a label with this value fulfils the condition; `None` is a missing label.
    pub fn accepts(&self, value: Option<&str>) -> bool {
        let text = value.unwrap_or_default();
        match self {
            Self::Equals(expected) => text == expected,
            Self::OneOf(expected) => expected.iter().any(|expected| text == expected),
            Self::NoneOf(excluded) => !excluded.iter().any(|excluded| text == excluded),
            Self::Matches(pattern) => pattern.matches(text),
            Self::NotMatches(pattern) => !pattern.matches(text),
            Self::Missing => text.is_empty(),
            Self::Present => !text.is_empty(),
        }
    }
}

/// A value as text; numbers and booleans are accepted, because models write them.
fn value(json: &Value) -> Result<String, String> {
    match json {
        Value::String(text) => Ok(text.clone()),
        Value::Number(_) | Value::Bool(_) => Ok(json.to_string()),
        _ => Err(format!("has the value {json}; expected {FORMS}")),
    }
}

fn values(json: &Value) -> Result<Vec<String>, String> {
    let list = json.as_array().map(Vec::as_slice).unwrap_or_default();
    if list.is_empty() || list.len() > VALUES_MAX {
        return Err(format!("has a list of {} values; expected 1 to {VALUES_MAX}", list.len()));
    }
    // In a list, null is the empty value, which is that of a missing label.
    list.iter().map(|item| if item.is_null() { Ok(String::new()) } else { value(item) }).collect()
}

/// Conditions on labels, all of which a series must fulfil.
#[derive(Debug, Clone, Default)]
pub struct LabelSelection(Vec<(String, LabelCondition)>);

impl LabelSelection {
    /// A selection of `conditions`, each with the name of its label.
    pub fn new(conditions: impl IntoIterator<Item = (String, LabelCondition)>) -> Self {
        Self(conditions.into_iter().collect())
    }

    /// Reads the conditions of a request. If `known_names` are given, other names are violations.
    ///
    /// # Errors
    /// All violations, with their paths below `labels`.
    pub fn parse(conditions: &Map<String, Value>, known_names: Option<&[&str]>) -> Result<Self, Vec<Violation>> {
        let mut parsed = Vec::new();
        let mut violations = Vec::new();
        if conditions.len() > CONDITIONS_MAX {
            let message = format!("has {} conditions; the maximum is {CONDITIONS_MAX}", conditions.len());
            return Err(vec![Violation { path: "labels".to_owned(), message }]);
        }
        for (name, json) in conditions {
            let path = || format!("labels.{name}");
            if let Some(message) = known_names.and_then(|known| unknown_label(name, known)) {
                violations.push(Violation { path: path(), message });
            }
            match LabelCondition::parse(json) {
                Ok(condition) => parsed.push((name.clone(), condition)),
                Err(message) => violations.push(Violation { path: path(), message }),
            }
        }
        if violations.is_empty() { Ok(Self(parsed)) } else { Err(violations) }
    }

    /// Whether a series with these labels fulfils all conditions.
    pub fn accepts(&self, labels: &Labels) -> bool {
        self.0.iter().all(|(name, condition)| condition.accepts(labels.get(name)))
    }

    /// The conditions, in the order of the request.
    pub fn conditions(&self) -> &[(String, LabelCondition)] {
        &self.0
    }
}

/// The number of names that a message lists.
const LISTED_NAMES_MAX: usize = 20;

/// The message for a label that the metric does not have.
fn unknown_label(name: &str, known: &[&str]) -> Option<String> {
    if known.contains(&name) {
        return None;
    }
    if known.is_empty() {
        return Some(format!("there is no label {name:?}; the metric has no labels"));
    }
    let nearest = nearest_names(name, known.iter().copied());
    let more = known.len().saturating_sub(LISTED_NAMES_MAX);
    let listed = known.iter().take(LISTED_NAMES_MAX).copied().collect::<Vec<_>>().join(", ");
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Some(match nearest.first() {
        Some(nearest) => format!("there is no label {name:?}; did you mean {nearest:?}? The labels are {listed}{more}"),
        None => format!("there is no label {name:?}; the labels are {listed}{more}"),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn accepts(condition: &Value, value: Option<&str>) -> bool {
        LabelCondition::parse(condition).unwrap().accepts(value)
    }

    #[test]
    fn every_form_of_a_condition() {
        for (condition, accepted, rejected) in [
            (json!("a"), vec![Some("a")], vec![Some("b"), None]),
            (json!(200), vec![Some("200")], vec![Some("2000")]),
            (json!(["a", null]), vec![Some("a"), None], vec![Some("b")]),
            (json!(null), vec![None], vec![Some("a")]),
            (json!({"not": "a"}), vec![Some("b"), None], vec![Some("a")]),
            (json!({"not": ["a", "b"]}), vec![Some("c"), None], vec![Some("a"), Some("b")]),
            (json!({"not": null}), vec![Some("a")], vec![None]),
            (json!({"matches": "a|bc"}), vec![Some("a"), Some("bc")], vec![Some("ab"), Some("abc"), None]),
            (json!({"matches": ".*"}), vec![Some("a\nb"), None], vec![]),
            (json!({"not_matches": "a.*"}), vec![Some("b"), None], vec![Some("ab")]),
        ] {
            accepted.into_iter().for_each(|value| assert!(accepts(&condition, value), "{condition} {value:?}"));
            rejected.into_iter().for_each(|value| assert!(!accepts(&condition, value), "{condition} {value:?}"));
        }
    }

    #[test]
    fn all_violations_at_once_with_position_and_nearest_name() {
        let conditions = json!({"metod": "GET", "path": {"matches": "é(a"}, "code": {"over": 3}, "job": []});
        let violations =
            LabelSelection::parse(conditions.as_object().unwrap(), Some(&["code", "job", "method", "path"]));
        let lines: Vec<_> = violations
            .unwrap_err()
            .into_iter()
            .map(|violation| format!("{}: {}", violation.path, violation.message))
            .collect();
        assert_eq!(lines.len(), 4);
        assert!(
            lines[0].starts_with("labels.metod: there is no label \"metod\"; did you mean \"method\"?"),
            "{lines:?}"
        );
        assert!(lines[1].contains("cannot be compiled at character 2: unclosed group"), "{lines:?}");
        assert!(lines[2].contains("unknown operator \"over\""), "{lines:?}");
        assert!(lines[3].contains("a list of 0 values"), "{lines:?}");
    }

    #[test]
    fn patterns_are_bounded() {
        assert!(LabelPattern::new(&"a".repeat(5_000)).unwrap_err().contains("maximum"));
        assert!(LabelPattern::new("((a{100}){100}){100}").unwrap_err().contains("fewer repetitions"));
    }
}
