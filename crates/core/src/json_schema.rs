//! JSON Schema 2020-12 for arguments and structured answers, compiled once and with limits.
//!
//! Arguments that models often write in another form are converted, where only one value can be meant. The text of a violation
//! has the value received and what would be valid. Every valid choice is listed, and the rule stands behind the value, so that a
//! long value hides neither.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::sync::{Arc, LazyLock};

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::paths::{Location, LocationSegment};
use jsonschema::{JsonType, ValidationError};
use serde_json::{Map, Number, Value, json};
use thiserror::Error;

use crate::name_pattern::{join_alternatives, misspelled_name, shorten};

/// The maximum depth of a schema; a validator recurses as deep as its schema.
const DEPTH_MAX: usize = 64;
/// The maximum number of nodes of a schema, and of a value whose violations are all explained.
const NODES_MAX: usize = 10_000;
/// The items of all lists of a larger value that are explained. The library makes the errors of all of them at once.
const ITEMS_EXPLAINED_MAX: usize = 1_000;
/// The maximum number of reported violations; a model does not correct more at once.
const VIOLATIONS_MAX: usize = 20;

/// Why a schema was refused.
#[derive(Debug, Error)]
pub enum JsonSchemaError {
    /// Not a valid schema, or it has a reference to another document.
    #[error("not a valid JSON Schema: {0}")]
    Invalid(String),
    /// Not the schema of an object.
    #[error("the schema of arguments must be an object with \"type\": \"object\"")]
    NotAnObject,
    /// The schema exceeds a limit.
    #[error("the schema is larger than {NODES_MAX} nodes or deeper than {DEPTH_MAX}")]
    TooLarge,
}

/// A compiled schema with its JSON text.
pub struct JsonSchema {
    json: Value,
    validator: jsonschema::Validator,
}

impl JsonSchema {
    /// Compiles `json`. References are resolved within the schema only, never over a network.
    ///
    /// # Errors
    /// If it is not a valid schema or exceeds a limit.
    pub fn new(json: Value) -> Result<Self, JsonSchemaError> {
        let mut nodes = 0;
        if !is_bounded(&json, DEPTH_MAX, &mut nodes) {
            return Err(JsonSchemaError::TooLarge);
        }
        let validator = jsonschema::options()
            .offline()
            .build(&json)
            .map_err(|error| JsonSchemaError::Invalid(error.to_string()))?;
        Ok(Self { json, validator })
    }

    /// Compiles the schema of an object, as required for the arguments of tools.
    ///
    /// # Errors
    /// Also if its root is not `"type": "object"`.
    pub fn object(json: Value) -> Result<Self, JsonSchemaError> {
        if json.get("type").and_then(Value::as_str) != Some("object") {
            return Err(JsonSchemaError::NotAnObject);
        }
        Self::new(json)
    }

    /// The schema of an object without members.
    pub fn empty_object() -> Arc<Self> {
        static EMPTY: LazyLock<Arc<JsonSchema>> = LazyLock::new(|| {
            let json = json!({"type": "object", "additionalProperties": false});
            // A constant schema; a test below shows that it compiles.
            #[allow(clippy::expect_used)]
            Arc::new(JsonSchema::object(json).expect("the schema of an empty object is valid"))
        });
        EMPTY.clone()
    }

    /// The JSON text of the schema.
    pub fn json(&self) -> &Value {
        &self.json
    }

    fn validator(&self) -> &jsonschema::Validator {
        &self.validator
    }

    /// Validates `value`.
    ///
    /// # Errors
    /// All violations, up to the maximum.
    pub fn check(&self, value: &Value) -> Result<(), Vec<Violation>> {
        if self.validator.is_valid(value) {
            return Ok(());
        }
        let part = explained_part(value);
        let explained: &Value = &part;
        let writer = ViolationWriter { schema: &self.json, value: explained };
        let mut violations = Vec::new();
        if matches!(part, Cow::Owned(_)) {
            add_long_lists(&self.json, value, String::new(), &mut violations);
        }
        let others = self.validator.iter_errors(explained).flat_map(|error| writer.violations(&error));
        violations.extend(others.take(VIOLATIONS_MAX));
        violations.truncate(VIOLATIONS_MAX);
        Err(if violations.is_empty() { vec![late_violation(value, explained)] } else { violations })
    }
}

impl fmt::Debug for JsonSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.json.fmt(f)
    }
}

/// The types that a schema admits, if it names them itself or in each of its alternatives; else none.
pub fn schema_types(schema: &Value) -> Vec<&str> {
    match (&schema["type"], &schema["anyOf"]) {
        (Value::String(name), _) => vec![name.as_str()],
        (Value::Array(names), _) => names.iter().filter_map(Value::as_str).collect(),
        (_, Value::Array(alternatives)) => {
            let types: Vec<Vec<&str>> = alternatives.iter().map(schema_types).collect();
            // One without a type may admit any.
            if types.iter().any(Vec::is_empty) { Vec::new() } else { types.concat() }
        }
        _ => Vec::new(),
    }
}

/// The description of a schema, which may be that of its first alternative; empty without one.
pub fn schema_description(schema: &Value) -> &str {
    schema["description"].as_str().or_else(|| schema["anyOf"][0]["description"].as_str()).unwrap_or_default()
}

/// What of `value` is explained: all of it, or a copy with fewer items in its lists.
fn explained_part(value: &Value) -> Cow<'_, Value> {
    if is_bounded(value, DEPTH_MAX, &mut 0) {
        return Cow::Borrowed(value);
    }
    let mut items_left = ITEMS_EXPLAINED_MAX;
    Cow::Owned(with_short_lists(value, &mut items_left))
}

fn with_short_lists(value: &Value, items_left: &mut usize) -> Value {
    match value {
        Value::Array(items) => {
            let mut kept = Vec::new();
            for item in items {
                // Each list keeps an item, because a schema may refuse empty ones.
                if *items_left == 0 && !kept.is_empty() {
                    break;
                }
                *items_left = items_left.saturating_sub(1);
                kept.push(with_short_lists(item, items_left));
            }
            Value::Array(kept)
        }
        Value::Object(members) => {
            let mut kept = Map::new();
            for (name, member) in members {
                kept.insert(name.clone(), with_short_lists(member, items_left));
            }
            Value::Object(kept)
        }
        other => other.clone(),
    }
}

/// Adds a violation for each list of `value` with too many items. Its explained part may be short enough.
fn add_long_lists(schema: &Value, value: &Value, path: String, violations: &mut Vec<Violation>) {
    match value {
        Value::Array(items) => {
            let max = schema["maxItems"].as_u64().filter(|max| items.len() as u64 > *max);
            violations.extend(max.map(|max| Violation {
                path,
                message: format!("has {} items; at most {max} are accepted", items.len()),
            }));
        }
        Value::Object(members) => {
            for (name, member) in members {
                add_long_lists(&schema["properties"][name], member, member_path(&path, name), violations);
            }
        }
        _ => {}
    }
}

/// The violation of an item that is in `value` and not in its explained part.
fn late_violation(value: &Value, explained: &Value) -> Violation {
    let is_cut = |(name, member): &(&String, &Value)| explained.get(name.as_str()) != Some(*member);
    let cut = value.as_object().into_iter().flatten().filter(is_cut);
    let path = cut.map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(" or ");
    let message = format!(
        "has an item that does not fit, behind the first {ITEMS_EXPLAINED_MAX} items; send fewer at once to learn which"
    );
    Violation { path, message }
}

fn is_bounded(json: &Value, depth_left: usize, nodes: &mut usize) -> bool {
    *nodes += 1;
    if *nodes > NODES_MAX || depth_left == 0 {
        return false;
    }
    match json {
        Value::Object(members) => members.values().all(|member| is_bounded(member, depth_left - 1, nodes)),
        Value::Array(items) => items.iter().all(|item| is_bounded(item, depth_left - 1, nodes)),
        _ => true,
    }
}

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
struct ViolationWriter<'a> {
    schema: &'a Value,
    value: &'a Value,
}

impl ViolationWriter<'_> {
    fn violations(&self, error: &ValidationError<'_>) -> Vec<Violation> {
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

impl JsonSchema {
    /// Like [`JsonSchema::check`], after top-level members with the text `null` are removed whose schema does not only admit
    /// text. If `arguments` violate the schema, what only one value can be meant by is converted first:
    /// - members and items, as deep as the schema has `properties` and `items`: `"2"` where a number is expected, `"true"`
    ///   where a boolean is, the JSON text of a list or an object where one is, and a single item where a list is;
    /// - members at any level that are `null` where the schema refuses null, or an empty text or `null` as text where it
    ///   lists other texts: they count as absent.
    ///
    /// # Errors
    /// All violations that remain.
    pub fn coerce_and_check(&self, arguments: &mut Value) -> Result<(), Vec<Violation>> {
        self.remove_null_texts(arguments);
        if self.validator().is_valid(&*arguments) {
            return Ok(());
        }
        coerce_parts(arguments, self.json());
        self.remove_refused_blanks(arguments);
        self.check(arguments)
    }

    /// Text is a valid value of some parameters that are no texts, such as a condition, which would be null for each row.
    fn remove_null_texts(&self, arguments: &mut Value) {
        let (Some(members), Some(properties)) = (arguments.as_object_mut(), self.json()["properties"].as_object())
        else {
            return;
        };
        members.retain(|name, value| {
            let property = properties.get(name).filter(|_| value.as_str() == Some("null"));
            property.is_none_or(|schema| schema_types(schema).iter().all(|kind| matches!(*kind, "string" | "null")))
        });
    }

    /// The schema decides, not the form of the value: null stays where it is a value, as in the rows of a table.
    fn remove_refused_blanks(&self, arguments: &mut Value) {
        loop {
            let refused = self.refused_blanks(arguments);
            // From the last one, because the members behind a removed one move.
            let removed = refused.iter().rev().filter(|pointer| remove_blank_member(arguments, pointer)).count();
            // Without the member, another alternative of the schema may refuse the next one.
            if removed == 0 {
                return;
            }
        }
    }

    fn refused_blanks(&self, arguments: &Value) -> Vec<String> {
        let mut refused = Vec::new();
        let part = explained_part(arguments);
        let explained: &Value = &part;
        self.validator().iter_errors(explained).for_each(|error| collect_blanks(&error, &mut refused));
        refused
    }
}

/// Adds the paths of the blank values that `error`, or an alternative in it, refuses.
fn collect_blanks(error: &ValidationError<'_>, paths: &mut Vec<String>) {
    match error.kind() {
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }
            if !error.instance().is_null() =>
        {
            context.iter().flatten().for_each(|inner| collect_blanks(inner, paths));
        }
        ValidationErrorKind::Enum { .. } if matches!(error.instance().as_str(), Some("" | "null")) => {
            paths.push(error.instance_path().as_str().to_owned());
        }
        _ if error.instance().is_null() => paths.push(error.instance_path().as_str().to_owned()),
        _ => {}
    }
}

/// Removes the member at `pointer`, unless that is an item of a list.
fn remove_blank_member(arguments: &mut Value, pointer: &str) -> bool {
    let Some((parent, name)) = pointer.rsplit_once('/') else { return false };
    let Some(Value::Object(members)) = arguments.pointer_mut(parent) else { return false };
    members.shift_remove(&name.replace("~1", "/").replace("~0", "~")).is_some()
}

/// Converts the members or items of `value`, as deep as the schema describes them.
fn coerce_parts(value: &mut Value, schema: &Value) {
    match value {
        _ if !schema.is_object() => {}
        Value::Object(members) => {
            for (name, member) in members {
                coerce(member, &schema["properties"][name.as_str()]);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| coerce(item, &schema["items"])),
        _ => {}
    }
}

fn coerce(value: &mut Value, schema: &Value) {
    if let Some(converted) = convert(value, &schema_types(schema)) {
        *value = converted;
    }
    coerce_parts(value, schema);
}

/// The only value of one of the `expected` types that `value` can mean, if it has none of them.
fn convert(value: &Value, expected: &[&str]) -> Option<Value> {
    let expects = |name: &str| expected.contains(&name);
    match value {
        Value::String(text) if !expects("string") => {
            let json = || json_text(text).filter(|json| expects(if json.is_array() { "array" } else { "object" }));
            let integer = || text.parse::<i64>().ok().filter(|_| expects("integer")).map(Value::from);
            let number = || text.parse::<Number>().ok().filter(|_| expects("number")).map(Value::Number);
            let boolean = || text.parse::<bool>().ok().filter(|_| expects("boolean")).map(Value::Bool);
            json().or_else(integer).or_else(number).or_else(boolean).or_else(|| {
                // A list in quotes is not one item.
                (expects("array") && !text.trim_start().starts_with('[')).then(|| Value::Array(vec![value.clone()]))
            })
        }
        Value::Object(_) if expects("array") && !expects("object") => Some(Value::Array(vec![value.clone()])),
        _ => None,
    }
}

/// The list or the object that `text` is the JSON of.
pub fn json_text(text: &str) -> Option<Value> {
    let begins_as_json = text.trim_start().starts_with(['[', '{']);
    begins_as_json.then(|| serde_json::from_str(text).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reports_all_violations_with_readable_paths() {
        let schema = JsonSchema::object(json!({
            "type": "object",
            "properties": {"rows": {"type": "integer"}, "order": {"type": "array", "items": {"enum": ["asc", "desc"]}}},
            "required": ["table"],
            "additionalProperties": false,
        }))
        .unwrap();
        let violations = schema.check(&json!({"rows": "ten", "order": ["up"], "colour": 1})).unwrap_err();
        let mut lines: Vec<String> = violations.iter().map(|v| format!("{}: {}", v.path, v.message)).collect();
        lines.sort();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        colour: is unknown; expected one of rows, order
        order[0]: "up" is not one of "asc" or "desc"
        rows: "ten" is not of type "integer"
        table: is required
        "#);
    }

    fn check(schema: Value, value: &Value) -> String {
        let violations = JsonSchema::new(schema).unwrap().check(value).unwrap_err();
        violations.iter().map(|v| format!("{}: {}", v.path, v.message)).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn lists_all_choices_and_suggests_only_similar_spellings() {
        let formats = json!({"enum": ["mcp", "json", "table", "csv", "markdown", "ndjson", "toon"]});
        insta::assert_snapshot!(check(formats, &json!("xml")),
            @r#": "xml" is not one of "mcp", "json", "table", "csv", "markdown", "ndjson" or "toon""#);
        let object = |members: Value| json!({"type": "object", "properties": members, "additionalProperties": false});
        let nested = json!({"properties": {"query": object(json!({"table": {}, "limit": {}}))}});
        insta::assert_snapshot!(check(nested, &json!({"query": {"tabel": "t", "colour": 1}})), @r#"
        query.tabel: is unknown; did you mean "table"?
        query.colour: is unknown; expected one of table, limit
        "#);
        insta::assert_snapshot!(check(object(json!({})), &json!({"a": 1, "b": 2})), @r"
        a: is unknown; no names are expected here
        b: is unknown; no names are expected here
        ");
    }

    #[test]
    fn alternatives_are_named_by_their_types() {
        let item = json!({"anyOf": [{"type": "string"}, {"type": "object", "required": ["column"]}]});
        insta::assert_snapshot!(check(item.clone(), &json!(7)), @r#": 7 is not of type "string" or "object""#);
        insta::assert_snapshot!(check(item, &json!({})), @"column: is required");
        insta::assert_snapshot!(check(json!({"type": ["array", "null"]}), &json!("a")),
            @r#": "a" is not of type "null" or "array""#);
        insta::assert_snapshot!(check(json!({"oneOf": [{"minimum": 5}, {"maximum": 1}]}), &json!(3)),
            @": fits no alternative: 3 is less than the minimum of 5; 3 is greater than the maximum of 1");
    }

    #[test]
    fn long_value_does_not_hide_the_rule() {
        let message = check(json!({"maxLength": 5}), &json!("x".repeat(10_000)));
        assert!(message.len() < 300 && message.ends_with("… is longer than 5 characters"), "{message}");
    }

    /// Each wrong item would take a kilobyte for an error that nobody reads.
    #[test]
    fn of_long_lists_the_first_violations_are_explained() {
        let value = json!({"anyOf": [{"type": "string"}, {"type": "number"}]});
        let schema = JsonSchema::object(json!({"type": "object", "properties": {
            "sql": {"type": "string"}, "parameters": {"type": "array", "items": value}, "max": {"type": ["integer", "string"]},
        }}))
        .unwrap();
        let violations = |mut arguments: Value| {
            let violations = schema.coerce_and_check(&mut arguments).unwrap_err();
            violations.iter().map(|found| format!("{}: {}", found.path, found.message)).collect::<Vec<_>>()
        };
        let wrong = violations(json!({"parameters": vec![json!({}); 30_000], "sql": 5}));
        assert_eq!(wrong.len(), VIOLATIONS_MAX);
        assert!(
            wrong.iter().any(|line| line == "parameters[0]: {} is not of type \"string\" or \"number\""),
            "{wrong:?}"
        );
        let mut late = vec![json!(1); 30_000];
        late.push(json!({}));
        assert_eq!(
            violations(json!({"sql": "x", "parameters": late})),
            [
                "parameters: has an item that does not fit, behind the first 1000 items; send fewer at once to learn which"
            ]
        );
        let bounded = JsonSchema::object(json!({"type": "object", "properties": {
            "rows": {"type": "array", "items": {"type": "object"}, "maxItems": 10_000},
        }}));
        let mut long = json!({"rows": vec![json!({}); 10_001]});
        let message = "has 10001 items; at most 10000 are accepted".to_owned();
        assert_eq!(
            bounded.unwrap().coerce_and_check(&mut long).unwrap_err(),
            [Violation { path: "rows".to_owned(), message }]
        );
        // Null counts as absent beside a long list, too.
        let mut long = json!({"parameters": vec![json!(1); 30_000], "max": null});
        schema.coerce_and_check(&mut long).unwrap();
        assert_eq!((long["parameters"].as_array().unwrap().len(), long.get("max")), (30_000, None));
    }

    #[test]
    fn empty_object_rejects_members() {
        assert!(JsonSchema::empty_object().check(&json!({})).is_ok());
        assert!(JsonSchema::empty_object().check(&json!({"a": 1})).is_err());
    }

    #[test]
    fn rejects_external_references_and_deep_schemas() {
        assert!(matches!(
            JsonSchema::new(json!({"$ref": "http://localhost/schema"})),
            Err(JsonSchemaError::Invalid(_))
        ));
        assert!(matches!(JsonSchema::object(json!({"type": "string"})), Err(JsonSchemaError::NotAnObject)));
        let deep = (0..100).fold(json!({}), |inner, _| json!({"not": inner}));
        assert!(matches!(JsonSchema::new(deep), Err(JsonSchemaError::TooLarge)));
    }

    #[test]
    fn converts_only_what_has_one_meaning() {
        let schema = JsonSchema::object(json!({
            "type": "object",
            "properties": {
                "limit": {"type": "integer", "minimum": 1},
                "share": {"type": "number"},
                "all": {"type": "boolean"},
                "select": {"type": "array"},
                "name": {"anyOf": [{"type": "string"}, {"type": "array"}]},
                "labels": {"type": "object"},
                "hosts": {"anyOf": [{"type": "array"}, {"const": "all"}]},
            },
        }))
        .unwrap();
        let mut arguments = json!({"limit": "2", "share": "0.5", "all": "true", "select": "carrier", "name": "[3]"});
        schema.coerce_and_check(&mut arguments).unwrap();
        assert_eq!(arguments, json!({"limit": 2, "share": 0.5, "all": true, "select": ["carrier"], "name": "[3]"}));
        let wrong = json!({"limit": "2.5", "share": "half", "all": "yes", "select": 3, "labels": "[1]"});
        let violations = schema.coerce_and_check(&mut wrong.clone()).unwrap_err();
        assert_eq!(violations.len(), 5, "{violations:?}");
        assert_eq!(schema.coerce_and_check(&mut json!({"limit": "0"})).unwrap_err().len(), 1);
        let mut json = json!({"select": " [\"carrier\", {\"column\": \"dest\"}]", "labels": "{\"a\": 1}"});
        schema.coerce_and_check(&mut json).unwrap();
        assert_eq!(json, json!({"select": ["carrier", {"column": "dest"}], "labels": {"a": 1}}));
        assert!(schema.coerce_and_check(&mut json!({"select": "[\"carrier\", \"dest\""})).is_err());
        // A value that the schema admits stays as it is, whatever is wrong elsewhere.
        let mut all = json!({"limit": "2", "hosts": "all"});
        schema.coerce_and_check(&mut all).unwrap();
        assert_eq!(all, json!({"limit": 2, "hosts": "all"}));
    }

    #[test]
    fn parts_of_lists_and_objects_are_converted_as_well() {
        let schema = JsonSchema::object(json!({
            "type": "object",
            "properties": {
                "joins": {"type": "array", "items": {"type": "object", "properties": {"on": {"type": "array"}}}},
                "ids": {"type": "array", "items": {"type": "integer"}},
                "range": {"type": "object", "properties": {"bars": {"type": "integer"}, "field": {"type": "string"}}},
                "columns": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "object"}]}},
            },
        }))
        .unwrap();
        let mut arguments = json!({
            "joins": ["{\"table\": \"t\", \"on\": \"[1]\"}"], "ids": ["1", 2], "range": "{\"bars\": \"3\", \"field\": \"4\"}",
            "columns": ["{\"a\": 1}"],
        });
        schema.coerce_and_check(&mut arguments).unwrap();
        // Where the schema admits a text, it stays one.
        let expected = json!({
            "joins": [{"table": "t", "on": [1]}], "ids": [1, 2], "range": {"bars": 3, "field": "4"}, "columns": ["{\"a\": 1}"],
        });
        assert_eq!(arguments, expected);
        let violations = schema.coerce_and_check(&mut json!({"joins": ["{\"table\""]})).unwrap_err();
        assert_eq!(violations[0].path, "joins[0]");
    }

    #[test]
    fn null_counts_as_absent_where_the_schema_refuses_it() {
        let schema = JsonSchema::object(json!({
            "type": "object",
            "properties": {
                "table": {"type": "string"},
                "format": {"type": "string", "enum": ["csv", "json"]},
                "after": {"anyOf": [{"type": "string"}, {"type": "number"}]},
                "note": {"type": ["string", "null"]},
                "shared": {"$ref": "#/$defs/shared"},
                "rows": {"type": "array", "items": {"type": "object"}},
                "filter": {"anyOf": [
                    {"type": "object", "properties": {"a/b": {"type": "integer"}, "c": {"type": "integer"}}},
                    {"type": "string"},
                ]},
            },
            "required": ["table"],
            "additionalProperties": false,
            "$defs": {"shared": {"type": "object", "properties": {"deep": {"type": "integer"}}}},
        }))
        .unwrap();
        let mut arguments = json!({
            "table": "t", "format": null, "after": null, "note": null, "shared": {"deep": null, "other": null},
            "rows": [{"a": null}], "filter": {"a/b": null, "c": null, "d": null},
        });
        schema.coerce_and_check(&mut arguments).unwrap();
        assert_eq!(
            arguments,
            json!({
                "table": "t", "note": null, "shared": {"other": null}, "rows": [{"a": null}], "filter": {"d": null},
            })
        );
        for blank in [json!({"format": "", "rows": null}), json!({"format": "null", "rows": "null", "filter": "null"})]
        {
            let mut arguments = blank;
            arguments["table"] = "null".into();
            schema.coerce_and_check(&mut arguments).unwrap();
            assert_eq!(arguments, json!({"table": "null"}));
        }
        let violations = |mut arguments: Value| {
            let violations = schema.coerce_and_check(&mut arguments).unwrap_err();
            violations.iter().map(|v| format!("{}: {}", v.path, v.message)).collect::<Vec<_>>().join("\n")
        };
        // A null that is required is missing; an item of a list is no member.
        assert_eq!(violations(json!({"table": null})), "table: is required");
        assert_eq!(violations(json!({"table": "t", "rows": [null]})), "rows[0]: null is not of type \"object\"");
        assert!(violations(json!({"table": "t", "colour": null})).starts_with("colour: is unknown"));
    }
}
