//! Sets one server's entry in a JSON file by changing its text only where the entry stands.
//!
//! Writing the parsed file anew would lose comments, the layout and the spelling of numbers;
//! clients keep far more than their servers in these files.

use std::ops::Range;

use serde_json::{Map, Value, json};

use super::catalog::ClientFileFormat;
use super::edit::{EditError, FileEdit, check_only_entry_differs};
use super::json_text::{JsonText, Member, Object};

/// What one level is indented by where the file does not show it.
const DEFAULT_INDENT: &str = "  ";

pub(super) fn set_entry(
    text: &str,
    format: ClientFileFormat,
    section: &str,
    name: &str,
    entry: &Map<String, Value>,
) -> Result<FileEdit, EditError> {
    let file = JsonText::parse(text, format)?;
    let not_a_table = |subject: &str| EditError::NotATable { what: subject.to_owned() };
    let root = file.root().ok_or_else(|| not_a_table("what stands"))?;
    let layout = Layout::of(&file, &root);
    let entry_value = || Value::Object(entry.clone());
    let edit = match file.find(&root, section) {
        None => FileEdit::Added(layout.insert(&root, section, &json!({ name: entry }))),
        Some(member) => {
            let servers = file.object_at(member.value.start).ok_or_else(|| not_a_table(section))?;
            match file.find(&servers, name) {
                None => FileEdit::Added(layout.insert(&servers, name, &entry_value())),
                Some(_) if file.value[section][name] == entry_value() => FileEdit::Unchanged,
                Some(old) if file.has_comment_in(&old.value) => {
                    return Err(EditError::Comments { name: name.to_owned() });
                }
                Some(old) => FileEdit::Replaced(layout.replace(&servers, old, &entry_value())),
            }
        }
    };
    if let FileEdit::Added(after) | FileEdit::Replaced(after) = &edit {
        let after = JsonText::parse(after, format).map_err(|_| EditError::WouldChangeMore { name: name.to_owned() })?;
        check_only_entry_differs(file.value, &after.value, section, name, entry)?;
    }
    Ok(edit)
}

/// How the file is laid out, so that the entry looks like what is around it.
struct Layout<'f, 't> {
    file: &'f JsonText<'t>,
    indent: &'t str,
    newline: &'static str,
    /// Everything stands on one line.
    one_line: bool,
}

impl<'f, 't> Layout<'f, 't> {
    fn of(file: &'f JsonText<'t>, root: &Object) -> Self {
        let text = file.original;
        let first = root.members.first().and_then(|member| indent_before(text, member.key.start));
        Self {
            file,
            indent: first.filter(|indent| !indent.is_empty()).unwrap_or(DEFAULT_INDENT),
            newline: if text.contains("\r\n") { "\r\n" } else { "\n" },
            one_line: !root.members.is_empty() && !text[root.span.clone()].contains('\n'),
        }
    }

    fn insert(&self, object: &Object, key: &str, value: &Value) -> String {
        match object.members.last() {
            Some(last) => self.insert_behind(object, last, key, value),
            None => self.insert_into_empty(object, key, value),
        }
    }

    fn insert_behind(&self, object: &Object, last: &Member, key: &str, value: &Value) -> String {
        let text = self.file.original;
        let after = object.trailing_comma.map_or(last.value.end, |comma| comma + 1);
        let at = self.file.behind_comments(after);
        let (comma_before, comma_after) = if object.trailing_comma.is_some() { ("", ",") } else { (",", "") };
        let (gap, member) = if self.is_on_one_line(object) {
            (" ".to_owned(), member(key, &value.to_string()))
        } else {
            let indent = self.member_indent(object);
            let pretty = self.pretty(value, &indent);
            (format!("{}{indent}", self.newline), member(key, &pretty))
        };
        let end = last.value.end;
        [&text[..end], comma_before, &text[end..at], &gap, &member, comma_after, &text[at..]].concat()
    }

    fn insert_into_empty(&self, object: &Object, key: &str, value: &Value) -> String {
        let text = self.file.original;
        let inside = object.span.start + 1..object.span.end - 1;
        let comments_end = self.file.last_comment_in(&inside);
        if self.one_line && comments_end.is_none() {
            let member = member(key, &value.to_string());
            return [&text[..inside.start], &member, &text[inside.end..]].concat();
        }
        let outer = line_indent(text, object.span.start);
        let indent = format!("{outer}{}", self.indent);
        let member = member(key, &self.pretty(value, &indent));
        let at = comments_end.unwrap_or(inside.start);
        [&text[..at], self.newline, &indent, &member, self.newline, outer, &text[inside.end..]].concat()
    }

    fn replace(&self, servers: &Object, old: &Member, value: &Value) -> String {
        let text = self.file.original;
        let Range { start, end } = old.value.clone();
        let written = if self.is_on_one_line(servers) {
            value.to_string()
        } else {
            self.pretty(value, line_indent(text, old.key.start))
        };
        [&text[..start], &written, &text[end..]].concat()
    }

    fn is_on_one_line(&self, object: &Object) -> bool {
        !self.file.original[object.span.clone()].contains('\n')
    }

    fn member_indent(&self, object: &Object) -> String {
        let text = self.file.original;
        let sibling = object.members.first().and_then(|member| indent_before(text, member.key.start));
        sibling.map_or_else(|| format!("{}{}", line_indent(text, object.span.start), self.indent), str::to_owned)
    }

    /// `value` over several lines, all but the first behind `indent`. No string holds a line break,
    /// so that the spaces before a line are its depth.
    fn pretty(&self, value: &Value, indent: &str) -> String {
        let mut written = String::new();
        for (number, line) in format!("{value:#}").lines().enumerate() {
            let content = line.trim_start_matches(' ');
            if number > 0 {
                written.push_str(self.newline);
                written.push_str(indent);
            }
            written.push_str(&self.indent.repeat((line.len() - content.len()) / DEFAULT_INDENT.len()));
            written.push_str(content);
        }
        written
    }
}

fn member(key: &str, value: &str) -> String {
    format!("{}: {value}", Value::from(key))
}

/// What stands before `at` on its line, if that is only space.
fn indent_before(text: &str, at: usize) -> Option<&str> {
    let before = &text[line_start(text, at)..at];
    before.chars().all(|c| c == ' ' || c == '\t').then_some(before)
}

/// The space at the beginning of the line that holds `at`.
fn line_indent(text: &str, at: usize) -> &str {
    let line = &text[line_start(text, at)..at];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}
