//! Writes values as YAML that a person would write.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::super::document::parse_plain_scalar;

/// Words that other readers of YAML understand as booleans.
const BOOLEAN_WORDS: [&str; 6] = ["yes", "no", "on", "off", "y", "n"];

pub(super) fn write_members(out: &mut String, members: &Map<String, Value>, indent: usize) {
    for (name, value) in members {
        write_member(out, name, value, indent);
    }
}

fn write_member(out: &mut String, name: &str, value: &Value, indent: usize) {
    let margin = " ".repeat(indent);
    let _ = write!(out, "{margin}{}:", scalar(&Value::from(name)));
    match value {
        Value::Object(members) if !members.is_empty() => {
            out.push('\n');
            write_members(out, members, indent + 2);
        }
        Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            out.push('\n');
            items.iter().for_each(|item| write_item(out, item, indent + 2));
        }
        Value::String(text) if is_block(text) => {
            let ending = if text.ends_with('\n') { "" } else { "-" };
            let _ = writeln!(out, " |{ending}");
            for line in text.lines() {
                let line = if line.is_empty() { String::new() } else { format!("{margin}  {line}") };
                let _ = writeln!(out, "{line}");
            }
        }
        value => {
            let _ = writeln!(out, " {}", flow(value));
        }
    }
}

fn write_item(out: &mut String, item: &Value, indent: usize) {
    let margin = " ".repeat(indent);
    match item {
        Value::Object(members) if !members.is_empty() => {
            let mut written = String::new();
            write_members(&mut written, members, indent + 2);
            let _ = write!(out, "{margin}- {}", written.trim_start());
        }
        item => {
            let _ = writeln!(out, "{margin}- {}", flow(item));
        }
    }
}

fn flow(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Object(members) => {
            let members =
                members.iter().map(|(name, value)| format!("{}: {}", scalar(&name.as_str().into()), flow(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        value => scalar(value),
    }
}

/// Whether `text` can be written as a block of lines.
fn is_block(text: &str) -> bool {
    let is_plain = |character: char| character == '\n' || character == '\t' || !character.is_control();
    text.trim_end_matches('\n').contains('\n')
        && !text.starts_with([' ', '\t', '\n'])
        && !text.ends_with("\n\n")
        && !text.lines().any(|line| line.ends_with([' ', '\t']))
        && text.chars().all(is_plain)
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) if is_plain_safe(text) => text.clone(),
        // A JSON text is also a YAML text in double quotes.
        value => value.to_string(),
    }
}

fn is_plain_safe(text: &str) -> bool {
    let is_safe = |character: char| character.is_alphanumeric() || " _./-,()".contains(character);
    text.starts_with(|character: char| character.is_alphabetic() || character == '/' || character == '_')
        && text.chars().all(is_safe)
        && !text.ends_with(' ')
        // Separators in flow lists.
        && !text.contains(',')
        && parse_plain_scalar(text).is_string()
        && !BOOLEAN_WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::super::tree::read_yaml;
    use super::*;

    #[test]
    fn written_values_are_read_back() {
        let value = serde_json::json!({
            "plain": "some words", "null": "null", "yes": "yes", "number": "1", "real": 1.5, "colon": "a: b #c",
            "lines": "SELECT 1\n  FROM t\n\nWHERE \"a\" = ':x'", "ended": "a\nb\n", "odd": "  a\nb", "empty": "",
            "list": ["a", "b, c", 3, true, null], "nothing": [], "none": {}, "unicode": "für\u{1}\t",
            "entries": [{"name": "x", "input": {"a": {"type": "list"}}, "sql": "a\nb"}, {"name": "y"}, ["z"]],
            "{{x}}": "{{x}}", "variable": "${A:-b}",
        });
        let mut out = String::new();
        write_members(&mut out, value.as_object().unwrap(), 0);
        assert_eq!(read_yaml(&out).unwrap()[0].value(), value, "{out}");
    }
}
