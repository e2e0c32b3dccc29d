//! Which series a request selects, by conditions on their labels.

use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};
use tidegate_core::{Violation, nearest_names};

use super::model::Labels;

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
pub(super) fn unknown_label(name: &str, known: &[&str]) -> Option<String> {
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
