//! Parses a document: first its structure, with all problems and their positions at once, then its types. Values of
//! variables are never quoted.
//!
//! The check is not that of [`tidegate_core::JsonSchema`], whose violations are for models: they quote the value as JSON,
//! and with a map or list all values of variables in it.
//!
//! Depends on no engine and opens nothing: `fuzz/` compiles this module separately.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};
use tidegate_core::{misspelled_name, nearest_names};

use super::document::Document;
use super::problem::ConfigProblem;
use super::types::Config;

const PROBLEMS_MAX: usize = 50;

/// The configuration in `document`. Its values may still contradict each other.
pub(crate) fn parse_config(document: &Document) -> Result<Config, Vec<ConfigProblem>> {
    let problems = check_schema(document, &schema());
    if !problems.is_empty() {
        return Err(problems);
    }
    serde_path_to_error::deserialize(document.value.clone()).map_err(|error| {
        let path = error.path().to_string().trim_end_matches('.').to_owned();
        vec![ConfigProblem::new(path, redacted_message(document, &error))]
    })
}

/// A library may quote the value of a variable in its message, so that such a message is replaced.
fn redacted_message(document: &Document, error: &serde_path_to_error::Error<serde_json::Error>) -> String {
    match document.source_text(&error.path().to_string()) {
        Some(source_text) => format!("the value of {source_text} is not valid here"),
        None => error.inner().to_string(),
    }
}

pub(crate) fn schema() -> Value {
    SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<Config>().to_value()
}

fn check_schema(document: &Document, schema: &Value) -> Vec<ConfigProblem> {
    let mut checker = SchemaChecker { document, root: schema, problems: Vec::new() };
    checker.value(&document.value, schema, "");
    checker.problems.truncate(PROBLEMS_MAX);
    checker.problems
}

struct SchemaChecker<'a> {
    document: &'a Document,
    root: &'a Value,
    problems: Vec<ConfigProblem>,
}

impl<'a> SchemaChecker<'a> {
    fn value(&mut self, value: &Value, schema: &'a Value, path: &str) {
        let schema = self.resolve_reference(schema);
        if let Some(choices) = schema.get("anyOf").and_then(Value::as_array) {
            let fitting =
                choices.iter().map(|choice| self.resolve_reference(choice)).find(|choice| has_type(value, choice));
            match fitting {
                Some(choice) => self.value(value, choice, path),
                None => {
                    // `null` is not suggested: an optional key is omitted instead.
                    let expected = choices.iter().map(|choice| expected_types(self.resolve_reference(choice)));
                    let expected: Vec<String> = expected.filter(|expected| !expected.is_empty()).collect();
                    self.wrong_type(value, &expected.join(" or "), path);
                }
            }
            return;
        }
        if !has_type(value, schema) {
            return self.wrong_type(value, &expected_types(schema), path);
        }
        if let Some(allowed) = schema.get("enum").and_then(Value::as_array).filter(|allowed| !allowed.contains(value)) {
            let choices: Vec<String> = allowed.iter().filter(|choice| !choice.is_null()).map(display_value).collect();
            let message = format!("{} is none of {}", self.quote_source(value, path), choices.join(", "));
            self.problems.push(ConfigProblem::new(path, message));
        }
        match value {
            Value::Object(members) => self.members(members, schema, path),
            Value::Array(items) => {
                if let Some(of_items) = schema.get("items") {
                    for (index, item) in items.iter().enumerate() {
                        self.value(item, of_items, &format!("{path}[{index}]"));
                    }
                }
            }
            _ => {}
        }
    }

    fn members(&mut self, members: &Map<String, Value>, schema: &'a Value, path: &str) {
        let properties = schema.get("properties").and_then(Value::as_object);
        let additional = schema.get("additionalProperties");
        for (name, value) in members {
            let path = join_path(path, name);
            match (properties.and_then(|properties| properties.get(name)), additional) {
                (Some(schema), _) => self.value(value, schema, &path),
                (None, Some(schema @ Value::Object(_))) => self.value(value, schema, &path),
                (None, Some(Value::Bool(false))) => {
                    let names = || properties.into_iter().flat_map(|properties| properties.keys().map(String::as_str));
                    let near = nearest_names(name, names());
                    let is_misspelled = misspelled_name(name, names()).is_some();
                    let above = self.key_above(members, properties, (name, &path)).filter(|_| !is_misspelled);
                    let advice = match (above, near.first()) {
                        (Some(above), _) => format!("it is a key of {above} above it: indent it more"),
                        (None, Some(near)) => format!("did you mean {near}?"),
                        (None, None) => format!("the keys are {}", names().collect::<Vec<_>>().join(", ")),
                    };
                    self.problems.push(ConfigProblem::new(path, format!("unknown key; {advice}")));
                }
                (None, _) => {}
            }
        }
        let required = schema.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            if !members.contains_key(name) {
                self.problems.push(ConfigProblem::new(path, format!("{name} is missing")));
            }
        }
    }

    /// The nearest of `members` on a line above the unknown key `name` at `path` that has a key of this name itself.
    fn key_above<'b>(
        &self,
        members: &'b Map<String, Value>,
        properties: Option<&'a Map<String, Value>>,
        (name, path): (&str, &str),
    ) -> Option<&'b str> {
        let position = self.document.position(path)?;
        let enclosing = path.strip_suffix(name)?.trim_end_matches('.');
        let above = members.keys().filter_map(|other| {
            properties?.get(other).filter(|schema| self.has_key(schema, name))?;
            let other_position = self.document.position(&join_path(enclosing, other))?;
            let is_above = other_position.file == position.file && other_position.line < position.line;
            Some((other_position, other.as_str())).filter(|_| is_above)
        });
        above.max_by_key(|(position, _)| *position).map(|(_, other)| other)
    }

    /// Whether a map of `schema`, or one in a list of it, has the key `name`.
    fn has_key(&self, schema: &'a Value, name: &str) -> bool {
        let schema = self.resolve_reference(schema);
        let choices = schema.get("anyOf").and_then(Value::as_array).into_iter().flatten();
        let has = |schema: &Value| schema.get("properties").is_some_and(|properties| properties.get(name).is_some());
        std::iter::once(schema)
            .chain(choices.map(|choice| self.resolve_reference(choice)))
            .any(|schema| has(schema) || schema.get("items").is_some_and(|items| has(self.resolve_reference(items))))
    }

    fn wrong_type(&mut self, value: &Value, expected: &str, path: &str) {
        let message = format!("{} where {expected} is expected", self.quote_source(value, path));
        self.problems.push(ConfigProblem::new(path, message));
    }

    /// The value at `path` as written, without the values of variables.
    fn quote_source(&self, value: &Value, path: &str) -> String {
        match (self.document.source_text(path), value) {
            (Some(source_text), _) => format!("the text {source_text}"),
            (None, Value::Object(_)) => "a map".to_owned(),
            (None, Value::Array(_)) => "a list".to_owned(),
            (None, Value::Null) => "nothing".to_owned(),
            (None, value) => display_value(value),
        }
    }

    fn resolve_reference(&self, schema: &'a Value) -> &'a Value {
        let target = schema.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix('#'));
        target.and_then(|pointer| self.root.pointer(pointer)).unwrap_or(schema)
    }
}

fn join_path(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn display_value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn has_type(value: &Value, schema: &Value) -> bool {
    let types = types(schema);
    types.is_empty()
        || types.iter().any(|expected| match *expected {
            "null" => value.is_null(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "string" => value.is_string(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            _ => true,
        })
}

fn expected_types(schema: &Value) -> String {
    let words = types(schema).into_iter().filter(|expected| *expected != "null").map(|expected| match expected {
        "boolean" => "true or false",
        "integer" => "a whole number",
        "number" => "a number",
        "string" => "a text",
        "array" => "a list",
        "object" => "a map",
        other => other,
    });
    words.collect::<Vec<_>>().join(" or ")
}
