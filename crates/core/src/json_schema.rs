//! JSON Schema 2020-12 for arguments and structured answers, compiled once and with limits.

mod violation;

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value, json};
use thiserror::Error;

use violation::ViolationWriter;
pub use violation::{Violation, unknown_name};

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

    pub(crate) fn validator(&self) -> &jsonschema::Validator {
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
        let violations: Vec<Violation> = self
            .validator
            .iter_errors(explained)
            .flat_map(|error| writer.violations(&error))
            .take(VIOLATIONS_MAX)
            .collect();
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
pub(crate) fn explained_part(value: &Value) -> Cow<'_, Value> {
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

#[cfg(test)]
mod tests {
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
}
