//! Quotes and parses identifiers and literals of statements.

use std::borrow::Cow;

use datafusion::common::{Result, exec_err};

use super::function::{Overload, TextFunction};
use super::regexp_functions::optional;
use super::row_values::{RowArguments, TextOutput};
use super::text_type::TextType;

/// Words that are not identifiers without quotes.
const KEYWORDS: &str = "\
    all analyse analyze and any array as asc asymmetric authorization between bigint binary bit boolean \
    both case cast char character check coalesce collate collation column concurrently constraint \
    create cross current_catalog current_date current_role current_schema current_time \
    current_timestamp current_user dec decimal default deferrable desc distinct do else end except \
    exists extract false fetch float for foreign freeze from full grant greatest group grouping having \
    ilike in initially inner inout int integer intersect interval into is isnull join lateral leading \
    least left like limit localtime localtimestamp national natural nchar none normalize not notnull \
    null nullif numeric offset on only or order out outer overlaps overlay placing position precision \
    primary real references returning right row select session_user setof similar smallint some \
    substring symmetric table tablesample then time timestamp to trailing treat trim true union unique \
    user using values varchar variadic verbose when where window with xmlattributes xmlconcat \
    xmlelement xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable";

pub(super) fn functions() -> Vec<TextFunction> {
    let of = |name, kind, run| TextFunction::single(name, &[kind], TextType::Text, run);
    let nullable = |row: &RowArguments<'_>, output: &mut TextOutput| match row.optional_text(0)? {
        Some(text) => output.text(&literal(text)),
        None => output.text("NULL"),
    };
    let nullable = Overload::new(&[TextType::AsText], TextType::Text, nullable).called_on_null_input();
    vec![
        of("quote_ident", TextType::Text, |row, output| output.text(&identifier(row.text(0)?))),
        of("quote_literal", TextType::AsText, |row, output| output.text(&literal(row.text(0)?))),
        TextFunction::new("quote_nullable", vec![nullable]),
        TextFunction::new("parse_ident", optional(&[TextType::Text, TextType::Boolean], 1, TextType::TextList, parts)),
    ]
}

/// Quotes a name for a statement if necessary.
pub(super) fn identifier(name: &str) -> Cow<'_, str> {
    let is_plain = name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
        && name.chars().all(|next| next.is_ascii_lowercase() || next.is_ascii_digit() || next == '_')
        && !KEYWORDS.split(' ').any(|keyword| keyword == name);
    if is_plain { Cow::Borrowed(name) } else { Cow::Owned(format!("\"{}\"", name.replace('"', "\"\""))) }
}

/// Quotes a text as a literal.
pub(super) fn literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if quoted.contains('\\') { format!("E'{}'", quoted.replace('\\', "\\\\")) } else { format!("'{quoted}'") }
}

/// Computes `parse_ident`: the parts of a qualified name.
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
