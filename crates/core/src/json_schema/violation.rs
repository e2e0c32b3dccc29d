//! The texts of violations: the value received and what would be valid. Every valid choice is listed, and the rule
//! stands behind the value, so that a long value hides neither.

use std::fmt::Write as _;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::paths::{Location, LocationSegment};
use jsonschema::{JsonType, ValidationError};
use serde_json::Value;

use crate::message_text::{join_alternatives, shorten};
use crate::name_pattern::misspelled_name;

/// The maximum length of the caller's value in a violation, in characters.
const VALUE_CHARACTERS_MAX: usize = 100;
/// The maximum length of one violation in characters, as a schema may have very many choices.
const VIOLATION_CHARACTERS_MAX: usize = 2_000;

/// One problem in the arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The location, as a path of names and indexes (`order_by[0].direction`); empty for the arguments as a whole.
    pub path: String,
    /// The problem: the value received and what would be valid.
    pub message: String,
}

/// Describes the errors of one check.
pub(super) struct ViolationWriter<'a> {
    pub(super) schema: &'a Value,
    pub(super) value: &'a Value,
}

impl ViolationWriter<'_> {
    pub(super) fn violations(&self, error: &ValidationError<'_>) -> Vec<Violation> {
        let path = readable_path(error.instance_path());
        match error.kind() {
            ValidationErrorKind::AdditionalProperties { unexpected }
            | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
                self.unknown_members(error, &path, unexpected.iter().map(String::as_str))
            }
            // For a schema without members, the library reports only that nothing is allowed.
            ValidationErrorKind::FalseSchema if error.schema_path().as_str().ends_with("/additionalProperties") => {
                let object = self.value.pointer(error.instance_path().as_str()).and_then(Value::as_object);
                self.unknown_members(error, &path, object.into_iter().flatten().map(|(name, _)| name.as_str()))
            }
            ValidationErrorKind::Required { property } => {
                let path = member_path(&path, property.as_str().unwrap_or_default());
                vec![Violation { path, message: "is required".to_owned() }]
            }
            ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
                self.no_alternative(error, path, context)
            }
            _ => vec![Violation { path, message: shorten(message(error), VIOLATION_CHARACTERS_MAX) }],
        }
    }

    fn unknown_members<'b>(
        &self,
        error: &ValidationError<'_>,
        path: &str,
        unexpected: impl Iterator<Item = &'b str>,
    ) -> Vec<Violation> {
        let of_object = error.schema_path().as_str().rsplit_once('/').and_then(|(path, _)| self.schema.pointer(path));
        let known = of_object.and_then(|schema| schema.get("properties")).and_then(Value::as_object);
        let names: Vec<&str> = known.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        let violation = |name: &str| Violation {
            path: shorten(member_path(path, name), VALUE_CHARACTERS_MAX),
            message: shorten(unknown_name(name, &names), VIOLATION_CHARACTERS_MAX),
        };
        unexpected.map(violation).collect()
    }

    /// The violations of the only alternative for values of this type; else what each alternative requires.
    fn no_alternative(
        &self,
        error: &ValidationError<'_>,
        path: String,
        context: &[Vec<ValidationError<'static>>],
    ) -> Vec<Violation> {
        let expected_type = |errors: &[ValidationError<'_>]| {
            let of_value = errors.iter().find(|inner| inner.instance_path() == error.instance_path())?;
            match of_value.kind() {
                ValidationErrorKind::Type { kind } => Some(type_names(kind)),
                _ => None,
            }
        };
        let of_type: Vec<_> = context.iter().filter(|errors| expected_type(errors.as_slice()).is_none()).collect();
        let message = match of_type.as_slice() {
            [only] => return only.iter().flat_map(|inner| self.violations(inner)).collect(),
            [] => {
                let types = context.iter().filter_map(|errors| expected_type(errors.as_slice())).collect();
                format!("{} is not of type {}", quote(error.instance()), join_alternatives(types))
            }
            several => {
                let first = several.iter().filter_map(|errors| errors.first());
                let text = |violation: Violation| match violation.path == path {
                    true => violation.message,
                    false => format!("{}: {}", violation.path, violation.message),
                };
                let reasons = first.flat_map(|inner| self.violations(inner)).map(text);
                format!("fits no alternative: {}", reasons.collect::<Vec<_>>().join("; "))
            }
        };
        vec![Violation { path, message: shorten(message, VIOLATION_CHARACTERS_MAX) }]
    }
}

/// The message for `name`, which is none of the `known` keys: the one that it misspells, extends or begins, else all.
pub fn unknown_name(name: &str, known: &[&str]) -> String {
    let shares_word = |key: &&str| {
        let (shorter, longer) = if key.len() < name.len() { (*key, name) } else { (name, *key) };
        shorter.len() > 2 && longer.contains(shorter)
    };
    let near = misspelled_name(name, known.iter().copied());
    match near.or_else(|| known.iter().copied().find(shares_word)) {
        Some(near) => format!("is unknown; did you mean {near:?}?"),
        None if known.is_empty() => "is unknown; no names are expected here".to_owned(),
        None => format!("is unknown; expected one of {}", known.join(", ")),
    }
}

fn message(error: &ValidationError<'_>) -> String {
    let value = quote(error.instance());
    match error.kind() {
        ValidationErrorKind::Enum { options } => {
            let options = options.as_array().into_iter().flatten().map(ToString::to_string).collect();
            format!("{value} is not one of {}", join_alternatives(options))
        }
        ValidationErrorKind::Constant { expected_value } => format!("{value} is not {expected_value}"),
        ValidationErrorKind::Type { kind } => format!("{value} is not of type {}", type_names(kind)),
        ValidationErrorKind::FalseSchema => "is not allowed".to_owned(),
        ValidationErrorKind::PropertyNames { error } => message(error),
        ValidationErrorKind::OneOfMultipleValid { .. } => format!("{value} fits several of the alternatives"),
        ValidationErrorKind::Contains => format!("{value} has no item of the required form"),
        ValidationErrorKind::Not { .. } => format!("{value} is not allowed"),
        ValidationErrorKind::AdditionalItems { limit } => format!("{value} has more than {limit} items"),
        ValidationErrorKind::UnevaluatedItems { .. } => format!("{value} has too many items"),
        _ => error.masked_with(value.as_str()).to_string(),
    }
}

fn type_names(kind: &TypeKind) -> String {
    let quoted = |kind: JsonType| format!("\"{kind}\"");
    match kind {
        TypeKind::Single(kind) => quoted(*kind),
        TypeKind::Multiple(kinds) => join_alternatives(kinds.iter().map(quoted).collect()),
    }
}

/// `value` as JSON, shortened.
fn quote(value: &Value) -> String {
    shorten(value.to_string(), VALUE_CHARACTERS_MAX)
}

fn member_path(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// `order_by[0].direction` instead of `/order_by/0/direction`.
fn readable_path(location: &Location) -> String {
    let mut path = String::new();
    for segment in location {
        match segment {
            LocationSegment::Property(name) => path = member_path(&path, &name),
            LocationSegment::Index(index) => {
                // Writing to a String cannot fail.
                let _ = write!(path, "[{index}]");
            }
        }
    }
    path
}
