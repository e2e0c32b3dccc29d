//! YAML, TOML and JSON as one kind of tree with the lines of its values.

use serde_json::{Map, Value};
use toml_edit::{Document as TomlDocument, Item, Value as TomlValue};

use super::super::document::parse_plain_scalar;
use super::super::problem::ValuePosition;
use super::super::yaml_tree::{YamlContent, YamlNode, parse_documents};

pub(super) fn read_yaml(text: &str) -> Result<Vec<YamlNode>, String> {
    let documents = parse_documents(text, 0).map_err(|problems| {
        let texts = problems.iter().map(|problem| match problem.position {
            Some(position) => format!("line {}: {}", position.line, problem.message),
            None => problem.message.clone(),
        });
        texts.collect::<Vec<_>>().join("\n")
    })?;
    Ok(documents.into_iter().map(|(_, document)| document).collect())
}

/// JSON, or YAML with one document.
pub(super) fn read_json(text: &str) -> Result<YamlNode, String> {
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        return Ok(json_node(value));
    }
    read_yaml(text)?.into_iter().next().ok_or_else(|| "the file is empty".to_owned())
}

fn node(kind: YamlContent, line: usize) -> YamlNode {
    YamlNode { position: ValuePosition { file: 0, line, column: 1 }, kind }
}

fn json_node(value: Value) -> YamlNode {
    let kind = match value {
        Value::String(text) => YamlContent::Text(text),
        Value::Array(items) => YamlContent::List(items.into_iter().map(json_node).collect()),
        Value::Object(members) => {
            let position = ValuePosition { file: 0, line: 1, column: 1 };
            YamlContent::Map(members.into_iter().map(|(name, value)| (name, position, json_node(value))).collect())
        }
        scalar => YamlContent::Plain(scalar.to_string()),
    };
    node(kind, 1)
}

pub(super) fn read_toml(text: &str) -> Result<YamlNode, String> {
    let document = TomlDocument::parse(text).map_err(|error| format!("is no TOML: {error}"))?;
    Ok(toml_node(document.as_item(), text, 1))
}

fn line_of(item: &Item, text: &str, outer: usize) -> usize {
    let start = item.span().map(|span| span.start.min(text.len()));
    start.map_or(outer, |start| text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count() + 1)
}

fn toml_node(item: &Item, text: &str, outer: usize) -> YamlNode {
    let line = line_of(item, text, outer);
    if let Some(tables) = item.as_array_of_tables() {
        let tables = tables.iter().map(|table| toml_node(&Item::Table(table.clone()), text, line));
        return node(YamlContent::List(tables.collect()), line);
    }
    if let Some(table) = item.as_table_like() {
        let members = table.iter().map(|(name, item)| {
            let value = toml_node(item, text, line);
            (name.to_owned(), value.position, value)
        });
        return node(YamlContent::Map(members.collect()), line);
    }
    match item.as_value() {
        Some(TomlValue::String(string)) => node(YamlContent::Text(string.value().clone()), line),
        Some(TomlValue::Array(items)) => {
            let items = items.iter().map(|value| toml_node(&Item::Value(value.clone()), text, line));
            node(YamlContent::List(items.collect()), line)
        }
        Some(TomlValue::Integer(value)) => node(YamlContent::Plain(value.value().to_string()), line),
        Some(TomlValue::Float(value)) => node(YamlContent::Plain(value.value().to_string()), line),
        Some(TomlValue::Boolean(value)) => node(YamlContent::Plain(value.value().to_string()), line),
        Some(TomlValue::Datetime(value)) => node(YamlContent::Text(value.value().to_string()), line),
        Some(TomlValue::InlineTable(_)) | None => node(YamlContent::Plain(String::new()), line),
    }
}

impl YamlNode {
    pub(super) fn line(&self) -> usize {
        self.position.line
    }

    /// The text of a scalar as written, with variables in the syntax of Tidegate; `None` if it is null or no scalar.
    pub(super) fn text(&self) -> Option<String> {
        match &self.kind {
            YamlContent::Plain(text) if parse_plain_scalar(text).is_null() => None,
            YamlContent::Plain(text) | YamlContent::Text(text) => Some(convert_variables(text)),
            YamlContent::List(_) | YamlContent::Map(_) => None,
        }
    }

    pub(super) fn text_of(&self, name: &str) -> Option<String> {
        self.get(name)?.text()
    }

    pub(super) fn texts_of(&self, name: &str) -> Vec<String> {
        self.get(name).map(|list| list.items().iter().filter_map(YamlNode::text).collect()).unwrap_or_default()
    }

    pub(super) fn is_true(&self, name: &str) -> bool {
        self.value_of(name) == Some(Value::Bool(true))
    }

    /// The value with its JSON type.
    pub(super) fn value(&self) -> Value {
        match &self.kind {
            YamlContent::Plain(text) => match parse_plain_scalar(text) {
                Value::String(text) => Value::from(convert_variables(&text)),
                value => value,
            },
            YamlContent::Text(text) => Value::from(convert_variables(text)),
            YamlContent::List(items) => items.iter().map(YamlNode::value).collect(),
            YamlContent::Map(members) => {
                let members = members.iter().map(|(name, _, node)| (name.clone(), node.value()));
                Value::Object(members.collect::<Map<_, _>>())
            }
        }
    }

    pub(super) fn value_of(&self, name: &str) -> Option<Value> {
        self.get(name).map(YamlNode::value).filter(|value| !value.is_null())
    }
}

/// Replaces `${NAME:default}` by `${NAME:-default}` and `${NAME:?message}` by `${NAME}`. A `${` that begins no variable
/// is escaped.
fn convert_variables(text: &str) -> String {
    let mut converted = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("${") {
        converted.push_str(before);
        let (inside, after) = behind.split_once('}').unwrap_or((behind, ""));
        let is_closed = behind.len() > inside.len();
        let (name, default) = match inside.split_once(':') {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        let is_word = |character: char| character.is_ascii_alphanumeric() || character == '_';
        let is_name = !name.is_empty()
            && name.chars().all(is_word)
            && !name.starts_with(|character: char| character.is_ascii_digit());
        if !is_closed || !is_name {
            converted.push_str("$${");
            rest = behind;
            continue;
        }
        match default {
            Some(default) if !default.starts_with('?') => {
                let default = default.strip_prefix('-').unwrap_or(default);
                converted.push_str(&format!("${{{name}:-{default}}}"));
            }
            Some(_) | None => converted.push_str(&format!("${{{name}}}")),
        }
        rest = after;
    }
    converted.push_str(rest);
    converted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_have_the_syntax_of_tidegate() {
        let text = "${A} ${B:5432} ${C:-x} ${D:?must be set} ${e f} ${G";
        assert_eq!(convert_variables(text), "${A} ${B:-5432} ${C:-x} ${D} $${e f} $${G");
    }

    #[test]
    fn toml_and_yaml_have_lines() {
        let toml = read_toml("[[sources]]\nid = \"a\"\nport = 5432\n\n[[sources]]\nid = 'b'\nlazy = true\n").unwrap();
        let sources = toml.get("sources").unwrap().items();
        assert_eq!(sources.iter().map(YamlNode::line).collect::<Vec<_>>(), [1, 5]);
        assert_eq!(sources[0].value(), serde_json::json!({"id": "a", "port": 5432}));
        assert!(sources[1].is_true("lazy"));
        let yaml = read_yaml("kind: source\n---\nkind: tool\nname: 007\n").unwrap();
        assert_eq!((yaml.len(), yaml[1].text_of("name").as_deref()), (2, Some("007")));
    }
}
