//! Converts arguments that models often write in another form, where only one value can be meant.

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use serde_json::{Number, Value};

use crate::json_schema::{JsonSchema, Violation, explained_part, schema_types};

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
