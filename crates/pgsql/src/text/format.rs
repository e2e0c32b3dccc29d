//! `format`, `concat` and `concat_ws`, and the quotes of identifiers and literals of statements.

use std::borrow::Cow;

use datafusion::common::{Result, exec_datafusion_err, exec_err};

use super::regexp_functions::optional;
use super::row_function::{Overload, RowArguments, TextFunction, TextOutput, TextType};

/// Characters that a field may be wide.
const WIDTH_MAX: i64 = 16 << 20;

pub(super) fn functions() -> Vec<TextFunction> {
    let of = |name, params: &[TextType], run| {
        TextFunction::new(
            name,
            vec![Overload::new(params, TextType::Text, run).with_variadic(TextType::Any).called_on_null_input()],
        )
    };
    vec![
        of("format", &[TextType::Text], format),
        of("concat", &[TextType::Any], concat),
        of("concat_ws", &[TextType::Text], concat_ws),
        TextFunction::new(
            "format*",
            vec![
                Overload::new(&[TextType::Text, TextType::TextList], TextType::Text, format_elements)
                    .called_on_null_input(),
            ],
        ),
    ]
}

fn concat(row: &RowArguments<'_>, output: &mut TextOutput) -> Result<()> {
    let mut result = String::new();
    for argument in 0..row.len() {
        result.push_str(row.output(argument)?.as_deref().unwrap_or_default());
    }
    output.text(&result)
}

fn concat_ws(row: &RowArguments<'_>, output: &mut TextOutput) -> Result<()> {
    let Some(separator) = row.optional_text(0)? else { return output.null() };
    let mut parts = Vec::new();
    for argument in 1..row.len() {
        parts.extend(row.output(argument)?);
    }
    output.text(&parts.join(separator))
}

/// The part between `%` and the conversion.
#[derive(Default)]
struct Specifier {
    argument: Option<usize>,
    is_left: bool,
    width: i64,
    /// The argument that has the width; 0 for the next one.
    width_argument: Option<usize>,
}

fn format(row: &RowArguments<'_>, output: &mut TextOutput) -> Result<()> {
    let Some(pattern) = row.optional_text(0)? else { return output.null() };
    let values = (1..row.len()).map(|argument| row.output(argument)).collect::<Result<Vec<_>>>()?;
    write_format(pattern, &values, output)
}

/// Computes `format(pattern, VARIADIC array)`.
fn format_elements(row: &RowArguments<'_>, output: &mut TextOutput) -> Result<()> {
    let Some(pattern) = row.optional_text(0)? else { return output.null() };
    if row.is_null(1) {
        return write_format(pattern, &[], output);
    }
    let values: Vec<_> = row.elements(1)?.map(|element| element.map(Cow::Borrowed)).collect();
    write_format(pattern, &values, output)
}

fn write_format(pattern: &str, values: &[Option<Cow<'_, str>>], output: &mut TextOutput) -> Result<()> {
    let mut result = String::new();
    let mut rest = pattern;
    let mut next = 1;
    while let Some((before, after)) = rest.split_once('%') {
        result.push_str(before);
        if let Some(after) = after.strip_prefix('%') {
            result.push('%');
            rest = after;
            continue;
        }
        let (mut specifier, after) = Specifier::parse(after)?;
        let Some(conversion) = after.chars().next() else { return exec_err!("unterminated format() type specifier") };
        if !matches!(conversion, 's' | 'I' | 'L') {
            return exec_err!("unrecognized format() type specifier \"{conversion}\"");
        }
        if let Some(position) = specifier.width_argument {
            let width = argument(values, &mut next, Some(position).filter(|position| *position > 0))?;
            let invalid = || exec_datafusion_err!("the width of a format() field must be an integer");
            specifier.width = width.map_or(Ok(0), |width| width.trim().parse().map_err(|_| invalid()))?;
        }
        let value = argument(values, &mut next, specifier.argument)?;
        let text = match (conversion, value) {
            ('s', value) => Cow::Borrowed(value.unwrap_or_default()),
            ('I', None) => return exec_err!("null values cannot be formatted as an SQL identifier"),
            ('I', Some(value)) => identifier(value),
            (_, None) => Cow::Borrowed("NULL"),
            (_, Some(value)) => Cow::Owned(literal(value)),
        };
        specifier.append(&mut result, &text)?;
        rest = &after[conversion.len_utf8()..];
    }
    result.push_str(rest);
    output.text(&result)
}

/// Returns the value of the argument at `position`, or of the next one. They count from 1.
fn argument<'a>(
    values: &'a [Option<Cow<'_, str>>],
    next: &mut usize,
    position: Option<usize>,
) -> Result<Option<&'a str>> {
    let position = position.unwrap_or(*next);
    let Some(value) = values.get(position - 1) else { return exec_err!("too few arguments for format()") };
    *next = position + 1;
    Ok(value.as_deref())
}

fn number(text: &str) -> Result<(Option<usize>, &str)> {
    let rest = text.trim_start_matches(|digit: char| digit.is_ascii_digit());
    let digits = &text[..text.len() - rest.len()];
    if digits.is_empty() {
        return Ok((None, rest));
    }
    let number = digits.parse::<i32>().map_err(|_| exec_datafusion_err!("number is out of range"))?;
    Ok((Some(number as usize), rest))
}

impl Specifier {
    fn parse(text: &str) -> Result<(Self, &str)> {
        let mut specifier = Self::default();
        let mut rest = text;
        let zero = || exec_err!("format specifies argument 0, but arguments are numbered from 1");
        if let (Some(number), after) = number(rest)? {
            let Some(after) = after.strip_prefix('$') else {
                specifier.width = number as i64;
                return Ok((specifier, after));
            };
            if number == 0 {
                return zero();
            }
            specifier.argument = Some(number);
            rest = after;
        }
        while let Some(after) = rest.strip_prefix('-') {
            specifier.is_left = true;
            rest = after;
        }
        let Some(after) = rest.strip_prefix('*') else {
            let (width, rest) = number(rest)?;
            specifier.width = width.unwrap_or(0) as i64;
            return Ok((specifier, rest));
        };
        let (position, after) = number(after)?;
        specifier.width_argument = Some(position.unwrap_or(0));
        match position {
            None => Ok((specifier, after)),
            Some(0) => zero(),
            Some(_) => match after.strip_prefix('$') {
                Some(after) => Ok((specifier, after)),
                None => exec_err!("width argument position must be ended by \"$\""),
            },
        }
    }

    fn append(&self, result: &mut String, text: &str) -> Result<()> {
        let is_left = self.is_left || self.width < 0;
        let width = self.width.saturating_abs();
        if width > WIDTH_MAX {
            return exec_err!("requested length too large");
        }
        let missing = (width as usize).saturating_sub(text.chars().count());
        let padding = " ".repeat(missing);
        let (before, after) = if is_left { ("", padding.as_str()) } else { (padding.as_str(), "") };
        result.extend([before, text, after]);
        Ok(())
    }
}

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

pub(super) fn quote_functions() -> Vec<TextFunction> {
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
fn identifier(name: &str) -> Cow<'_, str> {
    let is_plain = name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
        && name.chars().all(|next| next.is_ascii_lowercase() || next.is_ascii_digit() || next == '_')
        && !KEYWORDS.split(' ').any(|keyword| keyword == name);
    if is_plain { Cow::Borrowed(name) } else { Cow::Owned(format!("\"{}\"", name.replace('"', "\"\""))) }
}

/// Quotes a text as a literal.
fn literal(text: &str) -> String {
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
