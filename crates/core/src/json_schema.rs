//! JSON Schema 2020-12 for arguments and structured answers, compiled once and with limits.

use std::fmt::{self, Write as _};
use std::sync::{Arc, LazyLock};

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use serde_json::{Value, json};
use thiserror::Error;

/// One problem in the arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The location, as a path of names and indexes (`order_by[0].direction`); empty for the arguments as a whole.
    pub path: String,
    /// The problem: the value received and what would be valid.
    pub message: String,
}

/// The maximum depth of a schema; a validator recurses as deep as its schema.
const DEPTH_MAX: usize = 64;
/// The maximum number of nodes of a schema.
const NODES_MAX: usize = 10_000;
/// The maximum number of reported violations; a model does not correct more at once.
const VIOLATIONS_MAX: usize = 20;
/// The maximum length of one violation in characters; longer ones repeat the caller's own value.
const VIOLATION_CHARACTERS_MAX: usize = 300;

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

    /// Validates `value`.
    ///
    /// # Errors
    /// All violations, up to the maximum.
    pub fn check(&self, value: &Value) -> Result<(), Vec<Violation>> {
        let violations: Vec<Violation> = self
            .validator
            .iter_errors(value)
            .take(VIOLATIONS_MAX)
            .map(|error| Violation {
                path: readable_path(error.instance_path()),
                message: violation_message(&error, value),
            })
            .collect();
        if violations.is_empty() { Ok(()) } else { Err(violations) }
    }
}

impl fmt::Debug for JsonSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.json.fmt(f)
    }
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

/// `order_by[0].direction` instead of `/order_by/0/direction`.
fn readable_path(location: &jsonschema::paths::Location) -> String {
    let mut path = String::new();
    for segment in location {
        match segment {
            jsonschema::paths::LocationSegment::Property(name) => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(&name);
            }
            jsonschema::paths::LocationSegment::Index(index) => {
                // Writing to a String cannot fail.
                let _ = write!(path, "[{index}]");
            }
        }
    }
    path
}

/// The library's message. A schema that allows nothing gets another one, because there the library names neither rule
/// nor member.
fn violation_message(error: &ValidationError<'_>, value: &Value) -> String {
    if !matches!(error.kind(), ValidationErrorKind::FalseSchema) {
        return shorten(error.to_string());
    }
    let is_of_members = error.schema_path().as_str().ends_with("/additionalProperties");
    match value.pointer(error.instance_path().as_str()) {
        Some(Value::Object(members)) if is_of_members => {
            let names: Vec<String> = members.keys().map(|name| format!("'{name}'")).collect();
            let were = if names.len() == 1 { "was" } else { "were" };
            shorten(format!("Additional properties are not allowed ({} {were} unexpected)", names.join(", ")))
        }
        _ => "is not allowed".to_owned(),
    }
}

fn shorten(message: String) -> String {
    match message.char_indices().nth(VIOLATION_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message,
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
        : "table" is a required property
        : Additional properties are not allowed ('colour' was unexpected)
        order[0]: "up" is not one of "asc" or "desc"
        rows: "ten" is not of type "integer"
        "#);
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
