//! Parses a document: first its structure, with all problems and their positions at once, then its types. Values of
//! variables are never quoted.
//!
//! The check is not that of [`tidegate_core::JsonSchema`], whose violations are for models: they quote the value as JSON,
//! and with a map or list all values of variables in it.
//!
//! Depends on no engine and opens nothing: `fuzz/` compiles this module separately, without the kinds of databases.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};
use tidegate_core::{join_alternatives, misspelled_name, nearest_names};

use super::databases;
use super::document::Document;
use super::problem::ConfigProblem;
use super::types::{Config, KnowledgeConfig};

const PROBLEMS_MAX: usize = 50;

/// The configuration in `document`. Its values may still contradict each other.
pub(crate) fn parse_config(document: &Document) -> Result<Config, Vec<ConfigProblem>> {
    let (problems, mut kind_problems) = check_structure(document, &schema());
    if !problems.is_empty() {
        return Err(problems);
    }
    let config: Config = serde_path_to_error::deserialize(document.value.clone()).map_err(|error| {
        let path = error.path().to_string().trim_end_matches('.').to_owned();
        vec![ConfigProblem::new(path, redacted_message(document, &error))]
    })?;
    kind_problems.truncate(PROBLEMS_MAX);
    Ok(Config { kind_problems, ..config })
}

/// What the file `document` beside the data says, unless a value has a wrong type; and what is wrong with its structure.
pub(crate) fn parse_knowledge(document: &Document) -> (Option<KnowledgeConfig>, Vec<ConfigProblem>) {
    let (problems, _) = check_structure(document, &schema_of::<KnowledgeConfig>());
    (serde_json::from_value(document.value.clone()).ok(), problems)
}

/// The first problems of the structure of `document`, and those of the kinds of its databases.
fn check_structure(document: &Document, schema: &Value) -> (Vec<ConfigProblem>, Vec<ConfigProblem>) {
    let mut checker = SchemaChecker { document, root: schema, problems: Vec::new(), kind_problems: Vec::new() };
    checker.value(&document.value, schema, &Kinds::default(), "");
    let SchemaChecker { mut problems, kind_problems, .. } = checker;
    problems.truncate(PROBLEMS_MAX);
    (problems, kind_problems)
}

/// A library may quote the value of a variable in its message, so that such a message is replaced.
fn redacted_message(document: &Document, error: &serde_path_to_error::Error<serde_json::Error>) -> String {
    match document.source_text(&error.path().to_string()) {
        Some(source_text) => format!("the value of {source_text} is not valid here"),
        None => error.inner().to_string(),
    }
}

pub(crate) fn schema() -> Value {
    schema_of::<Config>()
}

fn schema_of<T: JsonSchema>() -> Value {
    SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>().to_value()
}

struct SchemaChecker<'a> {
    document: &'a Document,
    root: &'a Value,
    problems: Vec<ConfigProblem>,
    /// Databases of no kind, and their keys that only other kinds have.
    kind_problems: Vec<ConfigProblem>,
}

/// The kinds that a map may have: each has a schema, whose first required key chooses it.
#[derive(Default)]
struct Kinds<'a> {
    chosen: Option<&'a str>,
    /// The keys of the other kinds, with their schemas for the value that is checked.
    others: Vec<(&'a str, &'a Value)>,
}

impl<'a> SchemaChecker<'a> {
    fn value(&mut self, value: &Value, schema: &'a Value, kinds: &Kinds<'a>, path: &str) {
        let schema = self.resolve_reference(schema);
        if let Some(choices) = schema.get("anyOf").and_then(Value::as_array) {
            let choices: Vec<&'a Value> = choices.iter().map(|choice| self.resolve_reference(choice)).collect();
            let fitting: Vec<&'a Value> = choices.iter().copied().filter(|choice| has_type(value, choice)).collect();
            match (fitting.first().copied(), value) {
                (Some(_), Value::Object(members)) if fitting.len() > 1 => self.map_of_kind(members, &fitting, path),
                (Some(choice), _) => self.value(value, choice, kinds, path),
                (None, _) => {
                    // `null` is not suggested: an optional key is omitted instead.
                    let mut expected: Vec<String> = choices.iter().map(|choice| expected_types(choice)).collect();
                    expected.retain(|expected| !expected.is_empty());
                    expected.dedup();
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
            Value::Object(members) => self.members(members, Some(schema), kinds, path),
            Value::Array(items) => {
                if let Some(of_items) = schema.get("items") {
                    for (index, item) in items.iter().enumerate() {
                        self.value(item, of_items, &Kinds::default(), &format!("{path}[{index}]"));
                    }
                }
            }
            _ => {}
        }
    }

    /// A map of one of several kinds.
    fn map_of_kind(&mut self, members: &Map<String, Value>, schemas: &[&'a Value], path: &str) {
        let kinds = schemas.iter().filter_map(|&schema| Some((required_keys(schema).next()?, schema)));
        let mut others: Vec<(&'a str, &'a Value)> = kinds.collect();
        if let Some(index) = others.iter().position(|(key, _)| members.contains_key(*key)) {
            let (chosen, schema) = others.remove(index);
            return self.members(members, Some(schema), &Kinds { chosen: Some(chosen), others }, path);
        }
        let keys: Vec<&str> = others.iter().map(|(key, _)| *key).collect();
        let message = format!("needs exactly one of {}", keys.join(", "));
        self.kind_problems.push(ConfigProblem::new(path, message));
        self.members(members, None, &Kinds { chosen: None, others }, path);
    }

    fn members(&mut self, members: &Map<String, Value>, schema: Option<&'a Value>, kinds: &Kinds<'a>, path: &str) {
        for (name, value) in members {
            let path = join_path(path, name);
            let in_kind = |&(key, schema): &(&'a str, &'a Value)| Some((key, self.member(schema, name)?));
            let mut others: Vec<(&'a str, &'a Value)> = kinds.others.iter().filter_map(in_kind).collect();
            if let Some(schema) = schema.and_then(|schema| self.member(schema, name)) {
                self.value(value, schema, &Kinds { chosen: kinds.chosen, others }, &path);
            } else if schema.is_some_and(|schema| schema.get("additionalProperties") != Some(&Value::Bool(false))) {
                // A map with any keys.
            } else if others.is_empty() {
                let message = self.unknown_key(members, schema, kinds, (name, &path));
                self.problems.push(ConfigProblem::new(path, message));
            } else {
                if let Some(chosen) = kinds.chosen {
                    let message = misplaced_key(chosen, name, others.iter().map(|(key, _)| *key));
                    self.kind_problems.push(ConfigProblem::new(path.as_str(), message));
                }
                let (_, schema) = others.remove(0);
                self.value(value, schema, &Kinds { chosen: None, others }, &path);
            }
        }
        // A map of no kind has the keys that all kinds require, which are not the first.
        let of_kinds =
            kinds.others.first().filter(|_| schema.is_none()).map(|&(_, schema)| required_keys(schema).skip(1));
        for name in schema.into_iter().flat_map(required_keys).chain(of_kinds.into_iter().flatten()) {
            if !members.contains_key(name) {
                self.problems.push(ConfigProblem::new(path, format!("{name} is missing")));
            }
        }
    }

    /// What is wrong with the key `name` at `path`, which no kind has, and what is meant.
    fn unknown_key(
        &self,
        members: &Map<String, Value>,
        schema: Option<&'a Value>,
        kinds: &Kinds<'a>,
        (name, path): (&str, &str),
    ) -> String {
        let schemas = || schema.into_iter().chain(kinds.others.iter().map(|(_, schema)| *schema));
        let is_misspelled = misspelled_name(name, schemas().flat_map(key_names)).is_some();
        let above = self.key_above(members, schema, (name, path)).filter(|_| !is_misspelled);
        // A key of the same kind is meant rather than one of another.
        let near = || schemas().find_map(|schema| nearest_names(name, key_names(schema)).into_iter().next());
        let advice = match (above, near()) {
            (Some(above), _) => format!("it is a key of {above} above it: indent it more"),
            (None, Some(near)) => format!("did you mean {near}?"),
            (None, None) => {
                let of_kinds = kinds.others.iter().filter(|_| schema.is_none()).map(|(key, _)| *key);
                let keys: Vec<&str> = schema.into_iter().flat_map(key_names).chain(of_kinds).collect();
                format!("the keys are {}", keys.join(", "))
            }
        };
        format!("unknown key; {advice}")
    }

    /// The schema of the member `name` of a map.
    fn member(&self, schema: &'a Value, name: &str) -> Option<&'a Value> {
        let own = schema.get("properties").and_then(|properties| properties.get(name));
        let of_all = || schema.get("additionalProperties").filter(|schema| schema.is_object());
        own.or_else(of_all).map(|schema| self.resolve_reference(schema))
    }

    /// The nearest of `members` on a line above the unknown key `name` at `path` that has a key of this name itself.
    fn key_above<'b>(
        &self,
        members: &'b Map<String, Value>,
        schema: Option<&'a Value>,
        (name, path): (&str, &str),
    ) -> Option<&'b str> {
        let position = self.document.position(path)?;
        let enclosing = path.strip_suffix(name)?.trim_end_matches('.');
        let above = members.keys().filter_map(|other| {
            self.member(schema?, other).filter(|schema| self.has_key(schema, name))?;
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
        schema.get("properties").is_some_and(|properties| properties.get(name).is_some())
            || choices.chain(schema.get("items")).any(|schema| self.has_key(schema, name))
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

/// What is wrong with the key `name` of a database of the kind `chosen`. Databases of the kinds `owners` have it.
fn misplaced_key<'a>(chosen: &str, name: &str, owners: impl Iterator<Item = &'a str>) -> String {
    if let Some(advice) = databases::advice(chosen, name) {
        return advice.to_owned();
    }
    let (own, others): (Vec<String>, Vec<String>) = owners.map(str::to_owned).partition(|key| key == name);
    let owner = match (own.is_empty(), others.is_empty()) {
        (true, _) => format!("with {}", join_alternatives(others)),
        (false, true) => "of its own".to_owned(),
        (false, false) => format!("of its own, or one with {}", join_alternatives(others)),
    };
    format!("is for a database {owner}; this one has {chosen}")
}

fn key_names(schema: &Value) -> impl Iterator<Item = &str> {
    schema.get("properties").and_then(Value::as_object).into_iter().flat_map(|keys| keys.keys().map(String::as_str))
}

fn required_keys(schema: &Value) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
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
