//! `docs/reference/configuration.md`, from the JSON Schema of the configuration.
//!
//! The meaning of a key is the doc comment of its field. The comment states the default (`Default: 60s.`).

use serde_json::Value;

use super::super::cli::run;
use super::{check_page, code, plain, table};

const INTRODUCTION: &str = "\
# Configuration keys

These are all keys of `tidegate.yaml`. [Configuration file](configuration-file.md) describes where the file is found, its variables, and how
changes take effect. An unknown key is an error.

In a path, `[]` stands for each item of a list and `NAME` for a name of your choice. A size is a number of bytes (`4096`) or has a unit
(`40KB`, `1MiB`). A duration has a unit (`500ms`, `60s`, `5m`, `1h`). `See above` means that the text above the table states the default.

";

/// A part of the page: the members of one object.
struct Section {
    path: String,
    introduction: String,
    rows: Vec<Vec<String>>,
}

struct Page {
    schema: Value,
    sections: Vec<Section>,
}

impl Page {
    /// The schema behind references.
    fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str() {
            Some(reference) => self.schema.pointer(reference.trim_start_matches('#')).unwrap(),
            None => schema,
        }
    }

    /// The name of a type in the words of the page.
    fn type_name(&self, schema: &Value) -> String {
        if let Some(reference) = schema["$ref"].as_str() {
            match reference.rsplit('/').next().unwrap() {
                "Size" => return "size".to_owned(),
                "Time" | "Leeway" => return "duration".to_owned(),
                "SizeBound" => return "size, or `unlimited`".to_owned(),
                "RowBound" => return "number, or `unlimited`".to_owned(),
                "Secret" => return "text, secret".to_owned(),
                _ => return self.type_name(self.resolve(schema)),
            }
        }
        if let Some(value) = schema.get("const") {
            return code(value.as_str().unwrap());
        }
        if let Some(values) = schema["enum"].as_array() {
            return values.iter().filter_map(Value::as_str).map(code).collect::<Vec<_>>().join(", ");
        }
        if let Some(choices) = schema["anyOf"].as_array().or_else(|| schema["oneOf"].as_array()) {
            let mut names: Vec<String> = Vec::new();
            for name in choices.iter().map(|choice| self.type_name(choice)).filter(|name| !name.is_empty()) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            return names.join(" or ");
        }
        let names: Vec<&str> = match &schema["type"] {
            Value::String(name) => vec![name],
            Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
            _ => return "any value".to_owned(),
        };
        let name = |name: &str| match name {
            "string" => "text".to_owned(),
            "integer" | "number" => "number".to_owned(),
            "array" => format!("list: {}", self.type_name(&schema["items"])),
            "object" if schema["additionalProperties"].is_object() => {
                format!("map: {}", self.type_name(&schema["additionalProperties"]))
            }
            "object" => "object".to_owned(),
            other => other.to_owned(),
        };
        names.iter().filter(|name| **name != "null").map(|it| name(it)).collect::<Vec<_>>().join(" or ")
    }

    /// The objects within a value of `schema`, each with its path.
    fn objects<'a>(&'a self, schema: &'a Value, path: &str) -> Vec<(String, &'a Value)> {
        let schema = self.resolve(schema);
        if schema["properties"].is_object() {
            return vec![(path.to_owned(), schema)];
        }
        let mut found = Vec::new();
        for choice in ["anyOf", "oneOf"].into_iter().filter_map(|kind| schema[kind].as_array()).flatten() {
            found.extend(self.objects(choice, path));
        }
        if schema["items"].is_object() {
            found.extend(self.objects(&schema["items"], &format!("{path}[]")));
        }
        if schema["additionalProperties"].is_object() {
            found.extend(self.objects(&schema["additionalProperties"], &format!("{path}.NAME")));
        }
        found
    }

    /// Adds the section of an object, and then those of the objects within it.
    fn add(&mut self, path: &str, introduction: &str, object: &Value) {
        let described = Description::parse(object["description"].as_str().unwrap_or_default());
        let required: Vec<&str> =
            object["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let index = self.sections.len();
        let introduction = if introduction.is_empty() { described.whole.clone() } else { introduction.to_owned() };
        self.sections.push(Section { path: path.to_owned(), introduction, rows: Vec::new() });
        let mut inner = Vec::new();
        for (name, property) in object["properties"].as_object().into_iter().flatten() {
            let key = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            let description = Description::parse(property["description"].as_str().unwrap_or_default());
            let objects: Vec<_> =
                self.objects(property, &key).into_iter().map(|(path, found)| (path, found.clone())).collect();
            let is_object = objects.iter().any(|(path, _)| *path == key);
            let default = match &description.default {
                _ if required.contains(&name.as_str()) => "required".to_owned(),
                Some(default) => plain(default),
                None if described.whole.contains("Default of each:") => "see above".to_owned(),
                None if is_object => "see its keys".to_owned(),
                None => panic!("the doc comment of {key} does not state its default (Default: none.)"),
            };
            let row = vec![code(&key), self.type_name(property), default, plain(&description.meaning)];
            self.sections[index].rows.push(row);
            inner.extend(objects.into_iter().map(|(path, found)| (path, description.whole.clone(), found)));
        }
        for (path, whole, object) in inner {
            // The first sentence of the type repeats that of the key.
            let own = object["description"].as_str().unwrap_or_default();
            let further = own.split_once(". ").map_or("", |(_, further)| further);
            let introduction = if whole == own { whole } else { format!("{whole} {further}") };
            self.add(&path, &introduction, &object);
        }
    }
}

/// A doc comment and its parts.
struct Description {
    whole: String,
    meaning: String,
    default: Option<String>,
}

impl Description {
    fn parse(comment: &str) -> Self {
        let whole = comment.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut meaning = whole.trim_end_matches(" Required.").to_owned();
        let default = Self::take_default(&mut meaning);
        Self { whole, meaning, default }
    }

    /// Takes the sentence with the default out of `text`, and returns the default.
    fn take_default(text: &mut String) -> Option<String> {
        let label = "Default: ";
        let start = text.find(label)?;
        let sentence = &text[start + label.len()..];
        let is_end = |at: &usize| {
            let after = &sentence[at + 1..];
            after.is_empty() || after.strip_prefix(' ').is_some_and(|next| next.starts_with(char::is_uppercase))
        };
        let end = sentence.match_indices('.').map(|(at, _)| at).find(is_end)?;
        let value = sentence[..end].to_owned();
        let after = sentence[end + 1..].to_owned();
        *text = format!("{} {}", text[..start].trim_end(), after.trim_start()).trim().to_owned();
        Some(value)
    }
}

#[test]
fn configuration_page_is_current() {
    let schema: Value = serde_json::from_str(&run(&["config", "schema"]).stdout).unwrap();
    let mut page = Page { schema: schema.clone(), sections: Vec::new() };
    page.add("", "", &schema);
    let mut text = INTRODUCTION.to_owned();
    for section in &page.sections {
        let heading = if section.path.is_empty() { "The file".to_owned() } else { code(&section.path) };
        text.push_str(&format!("## {heading}\n\n{}\n\n", plain(&section.introduction)));
        text.push_str(&table(&["key", "type", "default", "meaning"], &section.rows));
    }
    check_page("configuration.md", &text);
}

#[test]
fn descriptions_have_parts() {
    let parts = |comment: &str| {
        let Description { meaning, default, .. } = Description::parse(comment);
        (meaning, default)
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(
        parts("How long.\nDefault: never. From files\nit is reused."),
        ("How long. From files it is reused.".to_owned(), some("never"))
    );
    assert_eq!(parts("A quote. Default: \"."), ("A quote.".to_owned(), some("\"")));
    assert_eq!(parts("A name. Required."), ("A name.".to_owned(), None));
}
