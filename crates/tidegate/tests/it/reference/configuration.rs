//! `docs/reference/configuration.md`, from the JSON Schema of the configuration.
//!
//! The meaning of a key is the doc comment of its field. The comment states the default (`Default: 60s.`).

use serde_json::{Value, json};

use super::super::cli::run;
use super::{check_page, code, plain, table};

const INTRODUCTION: &str = "\
# Configuration keys

These are all keys of `tidegate.yaml`. [Configuration file](configuration-file.md) describes where the file is found, its variables, and how
changes take effect. An unknown key is an error.

In a path, `[]` stands for each item of a list and `NAME` for a name of your choice. A size is a number of bytes (`4096`) or has a unit
(`40KB`, `1MiB`). A duration has a unit (`500ms`, `60s`, `5m`, `1h`). Paths are relative to the main file. Write a secret as `${VARIABLE}` or
`${file:PATH}`. An empty default means none, or what the text above the table states; of an object, the defaults of its keys.

Each `object` links to its keys; its row has their purpose. Under a heading with several paths are the keys that all of these objects have.

";

/// A part of the page: the keys of an object, which may stand in several places.
struct Section {
    object: Value,
    places: Vec<Place>,
}

/// A key that has the object, and its meaning.
struct Place {
    path: String,
    meaning: String,
    /// The keys of the kinds, if the objects of other kinds differ.
    kinds: Vec<String>,
}

impl Place {
    fn heading(&self) -> String {
        let path = if self.path.is_empty() { "The file".to_owned() } else { code(&self.path) };
        let kinds = self.kinds.iter().map(|kind| code(kind)).collect::<Vec<_>>().join(" or ");
        if kinds.is_empty() { path } else { format!("{path} with {kinds}") }
    }
}

impl Section {
    fn heading(&self) -> String {
        self.places.iter().map(Place::heading).collect::<Vec<_>>().join(", ")
    }

    /// Whether it has what the key of the object says beyond its first sentence.
    fn continues_its_key(&self) -> bool {
        matches!(self.places.as_slice(), [place] if place.kinds.is_empty())
    }

    /// The object as a type.
    fn type_link(&self) -> String {
        let kinds = self.places.iter().flat_map(|place| &place.kinds).cloned().collect::<Vec<_>>().join(" or ");
        if kinds.is_empty() { self.link("object") } else { self.link(&format!("object with {kinds}")) }
    }

    /// A link to the section, as GitHub and mdbook derive it from the heading.
    fn link(&self, text: &str) -> String {
        let heading = self.heading().to_lowercase();
        let anchor = heading.chars().filter(|sign| sign.is_alphanumeric() || " -_".contains(*sign));
        format!("[{text}](#{})", anchor.collect::<String>().replace(' ', "-"))
    }

    /// What the row that links to the section does not have.
    fn introduction(&self) -> String {
        let own = Description::parse(self.object["description"].as_str().unwrap_or_default()).whole;
        match self.places.as_slice() {
            // The row has the first sentence of the key, which that of the type repeats.
            [place] if !place.path.is_empty() && self.continues_its_key() => {
                let further = [&place.meaning, &own].into_iter().filter_map(|text| text.split_once(". "));
                further.map(|(_, further)| further).collect::<Vec<_>>().join(" ")
            }
            _ => own,
        }
    }

    /// A key as the table has it: with its path if there is only one.
    fn key(&self, name: &str) -> String {
        match self.places.as_slice() {
            [place] if !place.path.is_empty() => code(&format!("{}.{name}", place.path)),
            _ => code(name),
        }
    }
}

struct Page {
    schema: Value,
    sections: Vec<Section>,
}

impl Page {
    fn new(schema: Value) -> Self {
        let mut page = Self { schema: schema.clone(), sections: Vec::new() };
        page.add("", None, schema["description"].as_str().unwrap_or_default(), &schema);
        let paths: Vec<String> =
            page.sections.iter().flat_map(|section| &section.places).map(|place| place.path.clone()).collect();
        let is_in_one_section = |path: &String| paths.iter().filter(|other| *other == path).count() == 1;
        for place in page.sections.iter_mut().flat_map(|section| &mut section.places) {
            if is_in_one_section(&place.path) {
                place.kinds.clear();
            }
        }
        page
    }

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
            "object" if schema["properties"].is_object() => self.section(schema).type_link(),
            other => other.to_owned(),
        };
        names.iter().filter(|name| **name != "null").map(|it| name(it)).collect::<Vec<_>>().join(" or ")
    }

    /// The objects within a value of `schema`, each with its path and the key that chooses it among several.
    fn objects<'a>(&'a self, schema: &'a Value, path: &str) -> Vec<(String, Option<&'a str>, &'a Value)> {
        let schema = self.resolve(schema);
        if schema["properties"].is_object() {
            return vec![(path.to_owned(), None, schema)];
        }
        let mut found = Vec::new();
        for choice in ["anyOf", "oneOf"].into_iter().filter_map(|kind| schema[kind].as_array()).flatten() {
            found.extend(self.objects(choice, path));
        }
        if found.len() > 1 {
            found.iter_mut().for_each(|(_, kind, object)| *kind = object["required"][0].as_str());
        }
        if schema["items"].is_object() {
            found.extend(self.objects(&schema["items"], &format!("{path}[]")));
        }
        if schema["additionalProperties"].is_object() {
            found.extend(self.objects(&schema["additionalProperties"], &format!("{path}.NAME")));
        }
        found
    }

    /// Adds an object in one of its places, and then those within it.
    fn add(&mut self, path: &str, kind: Option<&str>, description: &str, object: &Value) {
        let meaning = Description::parse(description).meaning;
        let place = Place { path: path.to_owned(), meaning, kinds: kind.into_iter().map(str::to_owned).collect() };
        match self.sections.iter_mut().find(|section| section.object == *object) {
            Some(section) => match section.places.iter_mut().find(|other| other.path == path) {
                Some(other) => other.kinds.extend(place.kinds),
                None => section.places.push(place),
            },
            None => self.sections.push(Section { object: object.clone(), places: vec![place] }),
        }
        for (name, property) in object["properties"].as_object().into_iter().flatten() {
            let key = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            let inner = self.objects(property, &key).into_iter();
            let inner: Vec<_> =
                inner.map(|(path, own, found)| (path, own.or(kind).map(str::to_owned), found.clone())).collect();
            for (path, kind, found) in inner {
                self.add(&path, kind.as_deref(), property["description"].as_str().unwrap_or_default(), &found);
            }
        }
    }

    /// The section of an object.
    fn section(&self, object: &Value) -> &Section {
        self.sections.iter().find(|section| section.object == *object).unwrap()
    }

    /// The keys of a section, with the cells of their rows.
    fn rows(&self, section: &Section) -> Vec<Vec<String>> {
        let whole = Description::parse(section.object["description"].as_str().unwrap_or_default()).whole;
        let has_common_default = whole.contains("Default of each:");
        let required = section.object["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let required: Vec<&str> = required.collect();
        let mut rows = Vec::new();
        for (name, property) in section.object["properties"].as_object().into_iter().flatten() {
            let description = Description::parse(property["description"].as_str().unwrap_or_default());
            let objects = self.objects(property, name);
            let default = match &description.default {
                _ if required.contains(&name.as_str()) => "required".to_owned(),
                Some(default) if default == "none" => String::new(),
                Some(default) => plain(default),
                // The text above the table has it, or the section of the object.
                None if has_common_default || objects.iter().any(|(path, ..)| path == name) => String::new(),
                None => panic!("the doc comment of {} does not state its default (Default: none.)", section.key(name)),
            };
            // The section of a single object has the further sentences.
            let is_single = objects.iter().any(|(.., object)| self.section(object).continues_its_key());
            let meaning = match description.meaning.split_once(". ") {
                Some((first, _)) if is_single => format!("{first}."),
                _ => description.meaning,
            };
            rows.push(vec![name.clone(), without_item_type(&self.type_name(property)), default, plain(&meaning)]);
        }
        rows
    }

    /// The sections as Markdown. Three rows or more that a larger section has, too, are not repeated.
    fn render(&self) -> String {
        let sections: Vec<_> = self.sections.iter().map(|section| (section, self.rows(section))).collect();
        let mut text = String::new();
        for (section, rows) in &sections {
            text.push_str(&format!("## {}\n\n", section.heading()));
            let introduction = section.introduction();
            if !introduction.is_empty() {
                text.push_str(&format!("{}\n\n", plain(&introduction)));
            }
            let has_common = |all: &[Vec<String>]| rows.iter().filter(|row| all.contains(row)).count() > 2;
            let larger = sections.iter().filter(|(_, all)| all.len() > rows.len() && has_common(all));
            let mut own = rows.clone();
            if let Some((larger, all)) = larger.max_by_key(|(_, all)| all.len()) {
                own.retain(|row| !all.contains(row));
                let link = larger.link(&code(&larger.places[0].path));
                let keys = rows.iter().filter(|row| all.contains(row)).map(|row| code(&row[0]));
                let keys = keys.collect::<Vec<_>>().join(", ");
                text.push_str(&format!("It has these keys of {link}: {keys}.\n\n"));
            }
            for row in &mut own {
                row[0] = section.key(&row[0]);
            }
            text.push_str(&table(&["key", "type", "default", "meaning"], &own));
        }
        text
    }
}

/// `text or list: text` as `text or list`: the items of the list have the type of the single value.
fn without_item_type(type_name: &str) -> String {
    match type_name.split_once(" or list: ") {
        Some((single, items)) if single == items => format!("{single} or list"),
        _ => type_name.to_owned(),
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
        let mut meaning = whole.clone();
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
    check_page("configuration.md", &format!("{INTRODUCTION}{}", Page::new(schema).render()));
}

#[test]
fn an_object_in_several_places_has_one_section() {
    let tls = json!({"description": "TLS of one. Of all.", "type": "object", "properties": {
        "key": {"description": "The key. Default: none.", "type": "string"},
    }});
    let place = |text: &str| json!({"description": text, "anyOf": [{"$ref": "#/$defs/Tls"}, {"type": "null"}]});
    let schema = json!({"description": "All.", "$defs": {"Tls": tls}, "properties": {
        "a": place("TLS of a. Default: none. More."),
        "b": place("TLS of b."),
    }});
    let page = Page::new(schema).render();
    assert!(page.contains("| `a` | [object](#a-b) |  | TLS of a. More. |"), "{page}");
    assert!(page.contains("| `b` | [object](#a-b) |  | TLS of b. |"), "{page}");
    assert!(page.contains("## `a`, `b`\n\nTLS of one. Of all.\n"), "{page}");
    assert_eq!(page.matches("| `key` | text |  | The key. |").count(), 1, "{page}");
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
    assert_eq!(parts("A name."), ("A name.".to_owned(), None));
}
