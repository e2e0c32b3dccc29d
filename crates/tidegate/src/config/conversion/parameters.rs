//! Parameters of a tool.

use serde_json::{Map, Value, json};

use super::super::yaml_tree::YamlNode;
use super::draft::ConfigDraft;

/// Arguments that every tool with rows has.
const RESERVED_NAMES: [&str; 7] = ["format", "extract", "mode", "delivery", "cursor", "no_cache", "save_as"];

/// The parameters of a tool, in order.
#[derive(Default)]
pub(super) struct Parameters(Vec<Parameter>);

pub(super) struct Parameter {
    pub(super) old_name: String,
    /// The name behind the colon in SQL, and between the braces in templates.
    pub(super) name: String,
    /// The declaration; `None` if the value comes from the caller's identity or from another parameter.
    pub(super) input: Option<Map<String, Value>>,
}

impl Parameters {
    /// Converts `nodes`, parameters of `tool`, and adds them.
    ///
    /// # Errors
    /// Why the tool must be left out.
    pub(super) fn add_all(&mut self, nodes: &[YamlNode], tool: &str, draft: &mut ConfigDraft) -> Result<(), String> {
        for node in nodes {
            let old_name = node.text_of("name").ok_or("a parameter has no name")?;
            let parameter =
                self.convert(node, &old_name).map_err(|reason| format!("the parameter {old_name} {reason}"))?;
            if parameter.name != old_name && parameter.input.is_some() {
                draft.note_to_check(
                    node.line(),
                    tool,
                    format!("the parameter {old_name} is now called {}", parameter.name),
                );
            }
            if parameter.name.starts_with("caller.") {
                let message = format!(
                    "{old_name} is now :{}; configure auth.tokens for the issuer of the tokens",
                    parameter.name
                );
                draft.note_to_check(node.line(), tool, message);
            }
            self.0.push(parameter);
        }
        Ok(())
    }

    fn convert(&self, node: &YamlNode, old_name: &str) -> Result<Parameter, String> {
        for (member, reason) in [
            ("embeddedBy", "is embedded by a model (embeddedBy)"),
            ("excludedValues", "has excludedValues; declare the permitted values as enum or pattern"),
        ] {
            if node.get(member).is_some() {
                return Err(reason.to_owned());
            }
        }
        let old_name = old_name.to_owned();
        if let Some(source) = node.text_of("valueFromParam") {
            let source =
                self.find(&source).ok_or_else(|| format!("takes its value from {source}, which does not exist"))?;
            return Ok(Parameter { old_name, name: source.name.clone(), input: None });
        }
        if let Some(service) =
            node.get("authServices").or(node.get("authSources")).and_then(|list| list.items().first())
        {
            let field = service.text_of("field").ok_or("has authServices without field")?;
            return Ok(Parameter { old_name, name: claim_name(&field), input: None });
        }
        let name = self.new_name(&old_name);
        Ok(Parameter { old_name, name, input: Some(convert_input(node)?) })
    }

    fn new_name(&self, old_name: &str) -> String {
        let is_allowed = |character: char| character.is_ascii_alphanumeric() || character == '_';
        let mut name: String = old_name.chars().map(|c| if is_allowed(c) { c } else { '_' }).collect();
        if !name.starts_with(|character: char| character.is_ascii_alphabetic() || character == '_') {
            name.insert(0, '_');
        }
        while RESERVED_NAMES.contains(&name.as_str()) || self.0.iter().any(|other| other.name == name) {
            name.push('_');
        }
        name
    }

    pub(super) fn find(&self, old_name: &str) -> Option<&Parameter> {
        self.0.iter().find(|parameter| parameter.old_name == old_name)
    }

    pub(super) fn find_mut(&mut self, old_name: &str) -> Option<&mut Parameter> {
        self.0.iter_mut().find(|parameter| parameter.old_name == old_name)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Parameter> {
        self.0.iter()
    }

    /// The declarations of the parameters that `is_used` includes.
    pub(super) fn inputs(&self, is_used: impl Fn(&str) -> bool) -> Map<String, Value> {
        let used = self.0.iter().filter(|parameter| is_used(&parameter.name));
        let inputs = used.filter_map(|parameter| Some((parameter.name.clone(), json!(parameter.input.as_ref()?))));
        inputs.collect()
    }
}

fn claim_name(field: &str) -> String {
    let is_word = field.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
    match field {
        "sub" => "caller.subject".to_owned(),
        field if is_word => format!("caller.claims.{field}"),
        field => format!("caller.claims.\"{}\"", field.replace('"', "")),
    }
}

fn convert_input(node: &YamlNode) -> Result<Map<String, Value>, String> {
    let mut input = Map::new();
    let type_name = node.text_of("type").unwrap_or_else(|| "string".to_owned());
    input.insert("type".to_owned(), scalar_type(&type_name).map_or_else(|| json!("list"), Value::from));
    match (type_name.as_str(), scalar_type(&type_name)) {
        (_, Some(_)) => {}
        ("array", None) => {
            let items = node.get("items").and_then(|items| items.text_of("type"));
            let items = items.unwrap_or_else(|| "string".to_owned());
            let items = scalar_type(&items).ok_or_else(|| format!("is a list of {items}"))?;
            input.insert("items".to_owned(), items.into());
        }
        (other, None) => return Err(format!("has the type {other}")),
    }
    let mut copy = |from: &str, to: &str| {
        if let Some(value) = node.value_of(from) {
            input.insert(to.to_owned(), value);
        }
    };
    copy("description", "description");
    copy("default", "default");
    for (from, to) in [("minValue", "minimum"), ("maxValue", "maximum")] {
        copy(from, to);
    }
    if input.get("default").and_then(Value::as_array).is_some_and(Vec::is_empty) {
        return Err("has an empty list as its default".to_owned());
    }
    if node.value_of("required") == Some(Value::Bool(false)) {
        input.insert("required".to_owned(), false.into());
    }
    let allowed = node.value_of("allowedValues").or_else(|| node.value_of("allowed_values"));
    if let Some(Value::Array(allowed)) = allowed {
        if type_name == "array" {
            return Err("is a list with allowedValues".to_owned());
        }
        let (key, value) = permitted_values(allowed);
        input.insert(key.to_owned(), value);
    }
    Ok(input)
}

/// Toolbox reads permitted texts as regular expressions.
fn permitted_values(allowed: Vec<Value>) -> (&'static str, Value) {
    let is_expression = |value: &Value| value.as_str().is_some_and(|text| text.contains(is_regex_character));
    if !allowed.iter().any(is_expression) {
        return ("enum", Value::Array(allowed));
    }
    let expressions: Vec<String> =
        allowed.iter().map(|value| format!("(?:{})", value.as_str().unwrap_or_default())).collect();
    ("pattern", expressions.join("|").into())
}

pub(super) fn is_regex_character(character: char) -> bool {
    r"\.+*?()|[]{}^$".contains(character)
}

fn scalar_type(name: &str) -> Option<&'static str> {
    match name {
        "string" => Some("string"),
        "integer" => Some("integer"),
        "float" => Some("number"),
        "boolean" => Some("boolean"),
        _ => None,
    }
}
