//! Texts as they stand in statements.

use std::borrow::Cow;

use super::function::{Overload, TextFunction};
use super::row_values::{RowArguments, TextOutput};
use super::text_type::TextType;

/// Words that are no identifiers without quotes.
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
    let of = |name, kind, run| TextFunction::new(name, vec![Overload::new(&[kind], TextType::Text, run)]);
    let nullable = |row: &RowArguments<'_>, output: &mut TextOutput| match row.optional_text(0)? {
        Some(text) => output.text(&literal(text)),
        None => output.text("NULL"),
    };
    let nullable = Overload::new(&[TextType::AsText], TextType::Text, nullable).lenient();
    vec![
        of("quote_ident", TextType::Text, |row, output| output.text(&identifier(row.text(0)?))),
        of("quote_literal", TextType::AsText, |row, output| output.text(&literal(row.text(0)?))),
        TextFunction::new("quote_nullable", vec![nullable]),
    ]
}

/// The name as it stands in a statement.
pub(super) fn identifier(name: &str) -> Cow<'_, str> {
    let is_plain = name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
        && name.chars().all(|next| next.is_ascii_lowercase() || next.is_ascii_digit() || next == '_')
        && !KEYWORDS.split(' ').any(|keyword| keyword == name);
    if is_plain { Cow::Borrowed(name) } else { Cow::Owned(format!("\"{}\"", name.replace('"', "\"\""))) }
}

/// The text as a literal.
pub(super) fn literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if quoted.contains('\\') { format!("E'{}'", quoted.replace('\\', "\\\\")) } else { format!("'{quoted}'") }
}
