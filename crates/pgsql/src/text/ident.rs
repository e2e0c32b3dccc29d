//! `parse_ident`: the parts of a qualified name.

use datafusion::common::{Result, exec_err};

use super::function::{Overload, TextFunction};
use super::row_values::{RowArguments, TextOutput};
use super::text_type::TextType;

pub(super) fn functions() -> Vec<TextFunction> {
    let strict = Overload::new(&[TextType::Text], TextType::TextList, parts);
    let lenient = Overload::new(&[TextType::Text, TextType::Boolean], TextType::TextList, parts);
    vec![TextFunction::new("parse_ident", vec![strict, lenient])]
}

fn parts(row: &RowArguments<'_>, output: &mut TextOutput) -> Result<()> {
    let text = row.text(0)?;
    let is_strict = row.len() < 2 || row.output(1)?.is_some_and(|strict| strict.starts_with('t'));
    let mut parts: Vec<String> = Vec::new();
    let mut rest = text.trim_ascii_start();
    loop {
        let (part, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted_part(text, quoted)?,
            None => plain_part(text, rest)?,
        };
        parts.push(part);
        rest = after.trim_ascii_start();
        match rest.strip_prefix('.') {
            Some(after) => rest = after.trim_ascii_start(),
            None if rest.is_empty() || !is_strict => break,
            None => return exec_err!("string is not a valid identifier: \"{text}\""),
        }
    }
    output.list(parts.iter().map(|part| Some(part.as_str())))
}

fn quoted_part<'a>(text: &str, quoted: &'a str) -> Result<(String, &'a str)> {
    let mut part = String::new();
    let mut rest = quoted;
    while let Some((before, after)) = rest.split_once('"') {
        part.push_str(before);
        match after.strip_prefix('"') {
            Some(after) => {
                part.push('"');
                rest = after;
            }
            None if part.is_empty() => {
                return exec_err!(
                    "string is not a valid identifier: \"{text}\"; a quoted identifier must not be empty"
                );
            }
            None => return Ok((part, after)),
        }
    }
    exec_err!("string is not a valid identifier: \"{text}\"; it has unclosed double quotes")
}

fn plain_part<'a>(text: &str, rest: &'a str) -> Result<(String, &'a str)> {
    let begins = |first: char| first.is_ascii_alphabetic() || first == '_' || !first.is_ascii();
    let goes_on = |next: char| begins(next) || next.is_ascii_digit() || next == '$';
    if !rest.starts_with(begins) {
        return exec_err!("string is not a valid identifier: \"{text}\"");
    }
    let (part, after) = rest.split_at(rest.find(|next| !goes_on(next)).unwrap_or(rest.len()));
    Ok((part.to_ascii_lowercase(), after))
}
