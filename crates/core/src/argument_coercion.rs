//! Converts arguments that models often write with the wrong JSON type, where only one value can be meant.

use serde_json::{Map, Number, Value};

use crate::json_schema::{JsonSchema, Violation};

impl JsonSchema {
    /// Like [`JsonSchema::check`]. If `arguments` violate the schema, its top-level members are converted first: `"2"` where
    /// a number is expected, `"true"` where a boolean is, and a single item where a list is.
    ///
    /// # Errors
    /// All violations that remain.
    pub fn coerce_and_check(&self, arguments: &mut Value) -> Result<(), Vec<Violation>> {
        if self.check(arguments).is_ok() {
            return Ok(());
        }
        if let (Some(members), Some(properties)) = (arguments.as_object_mut(), self.json()["properties"].as_object()) {
            coerce_members(members, properties);
        }
        self.check(arguments)
    }
}

fn coerce_members(members: &mut Map<String, Value>, properties: &Map<String, Value>) {
    for (name, value) in members {
        let Some(expected) = properties.get(name).and_then(|property| property["type"].as_str()) else { continue };
        let converted = match (expected, &*value) {
            ("integer", Value::String(text)) => text.parse::<i64>().ok().map(Value::from),
            ("number", Value::String(text)) => text.parse::<Number>().ok().map(Value::Number),
            ("boolean", Value::String(text)) => text.parse::<bool>().ok().map(Value::Bool),
            // A list in quotes is not one item.
            ("array", Value::String(text)) if text.trim_start().starts_with('[') => None,
            ("array", Value::String(_) | Value::Object(_)) => Some(Value::Array(vec![value.clone()])),
            _ => None,
        };
        if let Some(converted) = converted {
            *value = converted;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn converts_only_what_has_one_meaning() {
        let schema = JsonSchema::object(json!({
            "type": "object",
            "properties": {
                "limit": {"type": "integer", "minimum": 1},
                "share": {"type": "number"},
                "all": {"type": "boolean"},
                "select": {"type": "array"},
                "name": {"type": ["string", "array"]},
            },
        }))
        .unwrap();
        let mut arguments = json!({"limit": "2", "share": "0.5", "all": "true", "select": "carrier", "name": "3"});
        schema.coerce_and_check(&mut arguments).unwrap();
        assert_eq!(arguments, json!({"limit": 2, "share": 0.5, "all": true, "select": ["carrier"], "name": "3"}));
        let wrong = json!({"limit": "2.5", "share": "half", "all": "yes", "select": 3});
        let violations = schema.coerce_and_check(&mut wrong.clone()).unwrap_err();
        assert_eq!(violations.len(), 4, "{violations:?}");
        assert!(schema.coerce_and_check(&mut json!({"select": "[\"carrier\", \"dest\"]"})).is_err());
        assert_eq!(schema.coerce_and_check(&mut json!({"limit": "0"})).unwrap_err().len(), 1);
    }
}
