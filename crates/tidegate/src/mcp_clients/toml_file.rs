//! Sets the entry of a server in a TOML file, and keeps its comments.

use serde::de::IntoDeserializer as _;
use serde::{Deserialize as _, Serialize as _};
use serde_json::{Map, Value};
use toml_edit::ser::ValueSerializer;
use toml_edit::{DocumentMut, Item, Key, Table, TableLike};

use super::edit::{EditError, EditPosition, FileEdit, check_only_entry_differs};

pub(super) fn render_document(section: &str, name: &str, entry: &Map<String, Value>) -> String {
    let mut servers = implicit_table();
    servers.insert(name, Item::Table(table(entry)));
    let mut document = DocumentMut::new();
    document.insert(section, Item::Table(servers));
    document.to_string()
}

pub(super) fn set_entry(
    text: &str,
    section: &str,
    name: &str,
    entry: &Map<String, Value>,
) -> Result<FileEdit, EditError> {
    let mut file = parse(text)?;
    let before = to_json(file.as_item());
    let not_a_table = |subject: &str| EditError::NotATable { what: subject.to_owned() };
    let edit = match file.get_mut(section) {
        None => FileEdit::Added(append(text, section, name, entry)),
        Some(servers) => {
            let is_inline = servers.is_inline_table();
            let servers = servers.as_table_like_mut().ok_or_else(|| not_a_table(section))?;
            match servers.get_mut(name) {
                Some(old) if to_json(old) == Value::Object(entry.clone()) => return Ok(FileEdit::Unchanged),
                Some(old) => {
                    let old = old.as_table_like_mut().ok_or_else(|| not_a_table(name))?;
                    update(old, entry).ok_or_else(|| EditError::Comments { name: name.to_owned() })?;
                    FileEdit::Replaced(match_newlines(text, file.to_string()))
                }
                None if is_inline => {
                    servers.insert(name, toml_edit::value(table(entry).into_inline_table()));
                    FileEdit::Added(match_newlines(text, file.to_string()))
                }
                None => FileEdit::Added(append(text, section, name, entry)),
            }
        }
    };
    if let FileEdit::Added(after) | FileEdit::Replaced(after) = &edit {
        let after = parse(after).map_err(|_| EditError::WouldChangeMore { name: name.to_owned() })?;
        check_only_entry_differs(before, &to_json(after.as_item()), section, name, entry)?;
    }
    Ok(edit)
}

/// Appends the entry at the end. The editor would insert it before the last comments, which belong to the previous table.
fn append(text: &str, section: &str, name: &str, entry: &Map<String, Value>) -> String {
    let gap = if text.ends_with('\n') { "\n" } else { "\n\n" };
    let added = format!("{gap}{}", render_document(section, name, entry));
    let added = if text.contains("\r\n") { added.replace('\n', "\r\n") } else { added };
    format!("{text}{added}")
}

fn parse(text: &str) -> Result<DocumentMut, EditError> {
    text.parse().map_err(|error: toml_edit::TomlError| EditError::Syntax {
        position: EditPosition::from_offset(text, error.span().map_or(0, |span| span.start)),
        message: error.message().trim().replace('\n', ", "),
    })
}

fn implicit_table() -> Table {
    let mut table = Table::new();
    table.set_implicit(true);
    table
}

fn table(entry: &Map<String, Value>) -> Table {
    entry.iter().map(|(key, value)| (key.as_str(), to_toml(value))).collect()
}

/// Changes only what differs, so that comments stay; `None` if one would be lost.
fn update(old: &mut dyn TableLike, entry: &Map<String, Value>) -> Option<()> {
    let gone: Vec<String> = old.iter().map(|(key, _)| key.to_owned()).filter(|key| !entry.contains_key(key)).collect();
    for key in gone {
        if old.key(&key).is_some_and(has_comment_at_key) || old.get(&key).is_some_and(has_comment) {
            return None;
        }
        old.remove(&key);
    }
    for (key, expected) in entry {
        match old.get_mut(key) {
            Some(item) if to_json(item) == *expected => {}
            Some(item) => replace(item, expected)?,
            None => {
                old.insert(key, toml_edit::value(to_toml(expected)));
            }
        }
    }
    Some(())
}

fn replace(item: &mut Item, expected: &Value) -> Option<()> {
    let mut new = to_toml(expected);
    match item {
        Item::Value(old) => {
            let mut inner = old.clone();
            inner.decor_mut().clear();
            if !inner.is_str() && inner.to_string().contains('#') {
                return None;
            }
            *new.decor_mut() = old.decor().clone();
        }
        other if has_comment(other) => return None,
        _ => {}
    }
    *item = Item::Value(new);
    Some(())
}

/// Whether a comment is in or beside `item`. A `#` in a string counts as one.
fn has_comment(item: &Item) -> bool {
    match item {
        Item::None => false,
        Item::Value(value) => value.to_string().contains('#'),
        Item::Table(table) => {
            has_comment_around(table.decor())
                || table.iter().any(|(key, item)| table.key(key).is_some_and(has_comment_at_key) || has_comment(item))
        }
        Item::ArrayOfTables(tables) => tables.iter().any(|table| has_comment(&Item::Table(table.clone()))),
    }
}

fn has_comment_at_key(key: &Key) -> bool {
    has_comment_around(key.leaf_decor())
}

fn has_comment_around(decor: &toml_edit::Decor) -> bool {
    let around = [decor.prefix(), decor.suffix()];
    around.into_iter().flatten().filter_map(|space| space.as_str()).any(|space| space.contains('#'))
}

/// The editor writes line feeds; a file with CRLF only keeps it.
fn match_newlines(text: &str, edited: String) -> String {
    let crlf = text.matches("\r\n").count();
    if crlf > 0 && crlf == text.matches('\n').count() {
        edited.replace("\r\n", "\n").replace('\n', "\r\n")
    } else {
        edited
    }
}

fn to_toml(value: &Value) -> toml_edit::Value {
    // Entries contain no null, the only value that TOML lacks.
    value.serialize(ValueSerializer::new()).unwrap_or_else(|_| "".into())
}

fn to_json(item: &Item) -> Value {
    let value = item.clone().into_value().ok();
    value.and_then(|value| Value::deserialize(value.into_deserializer()).ok()).unwrap_or_default()
}
