//! `LIKE`, for patterns that are not known yet; what `ESCAPE` makes of a pattern; and `text op ANY (array)` and
//! `text op ALL (array)`, for operators of patterns.

use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{Expr, Like};

use super::regexp_functions::optional;
use super::row_function::{Overload, RowArguments, TextFunction, TextOutput, TextType};
use crate::pg_regex::{RegexOptions, lower};

/// Returns the function of `text LIKE pattern`.
pub(super) fn text_like() -> TextFunction {
    let run = |row: &RowArguments<'_>, output: &mut TextOutput| output.boolean(is_like(row.text(0)?, row.text(1)?)?);
    TextFunction::single("text_like*", &[TextType::Text, TextType::Text], TextType::Boolean, run).with_simplify(
        |args, _| {
            let [text, pattern] = args else { return Ok(None) };
            Ok(is_plain(pattern)
                .then(|| Expr::Like(Like::new(false, Box::new(text.clone()), Box::new(pattern.clone()), None, false))))
        },
    )
}

/// Whether DataFusion's own operator means the same with the pattern: it is known, and does not end within an escape.
pub(super) fn is_plain(pattern: &Expr) -> bool {
    let Expr::Literal(value, _) = pattern else { return false };
    let Some(Some(pattern)) = value.try_as_str() else { return false };
    pattern.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 0
}

pub(super) fn functions() -> Vec<TextFunction> {
    vec![
        text_like(),
        TextFunction::new(
            "like_escape",
            optional(&[TextType::Text, TextType::Text], 2, TextType::Text, |row, output| {
                output.text(&with_backslashes(row.text(0)?, row.text(1)?)?)
            }),
        ),
    ]
}

/// Replaces `escape` in a pattern with backslashes.
pub(super) fn with_backslashes(pattern: &str, escape: &str) -> Result<String> {
    let mut characters = escape.chars();
    let (escape, more) = (characters.next(), characters.next());
    if more.is_some() {
        return exec_err!("invalid escape string: it must be empty or one character");
    }
    let mut result = String::with_capacity(pattern.len());
    let mut is_escaped = false;
    for character in pattern.chars() {
        if Some(character) == escape && !is_escaped {
            result.push('\\');
            is_escaped = true;
            continue;
        }
        if character == '\\' && escape != Some('\\') && !is_escaped {
            result.push('\\');
        }
        result.push(character);
        is_escaped = false;
    }
    Ok(result)
}

/// Whether the text matches the pattern.
fn is_like(text: &str, pattern: &str) -> Result<bool> {
    let (mut text, mut pattern) = (text.chars(), pattern.chars());
    // Where to go on after the last `%`, with one character more of the text.
    let mut retry: Option<(std::str::Chars<'_>, std::str::Chars<'_>)> = None;
    loop {
        let mut next = pattern.clone();
        let is_match = match next.next() {
            Some('%') => {
                retry = Some((text.clone(), next.clone()));
                pattern = next;
                continue;
            }
            None if text.as_str().is_empty() => return Ok(true),
            None => false,
            _ if text.as_str().is_empty() => return Ok(false),
            Some('_') => text.next().is_some(),
            Some('\\') => match next.next() {
                None => return exec_err!("LIKE pattern must not end with escape character"),
                escaped => text.next() == escaped,
            },
            literal => text.next() == literal,
        };
        if is_match {
            pattern = next;
            continue;
        }
        let Some((from, after)) = &mut retry else { return Ok(false) };
        if from.next().is_none() {
            return Ok(false);
        }
        text = from.clone();
        pattern = after.clone();
    }
}

pub(super) fn quantified_functions() -> Vec<TextFunction> {
    let of = |name, run| {
        let overloads = [TextType::TextList, TextType::Text]
            .iter()
            .map(|list| Overload::new(&[TextType::Text, TextType::Text, *list], TextType::Boolean, run))
            .collect();
        TextFunction::new(name, overloads)
    };
    vec![
        of("matches_any*", |row, output| quantified(row, output, true)),
        of("matches_all*", |row, output| quantified(row, output, false)),
    ]
}

/// Computes `matches_any(operator, text, patterns)`. The result is NULL if a pattern is NULL and no other one decides.
fn quantified(row: &RowArguments<'_>, output: &mut TextOutput, deciding: bool) -> Result<()> {
    let operator = row.text(0)?;
    let text = row.text(1)?;
    let mut is_open = false;
    let mut is_decided = false;
    let mut look = |pattern: Option<&str>| -> Result<()> {
        match pattern {
            Some(pattern) => is_decided |= matches(row, operator, text, pattern)? == deciding,
            None => is_open = true,
        }
        Ok(())
    };
    if let Ok(mut elements) = row.elements(2) {
        elements.try_for_each(&mut look)?;
    } else {
        let elements = array_literal(row.text(2)?)?;
        elements.iter().try_for_each(|element| look(element.as_deref()))?;
    }
    match (is_decided, is_open) {
        (true, _) => output.boolean(deciding),
        (false, true) => output.null(),
        (false, false) => output.boolean(!deciding),
    }
}

fn matches(row: &RowArguments<'_>, operator: &str, text: &str, pattern: &str) -> Result<bool> {
    let (is_negated, operator) = match operator.strip_prefix('!') {
        Some(operator) => (true, operator),
        None => (false, operator),
    };
    let is_match = match operator {
        "~~" => is_like(text, pattern)?,
        "~~*" => is_like(&lower(text), &lower(pattern))?,
        "~" => row.regex(pattern, RegexOptions::default())?.is_match(text)?,
        "~*" => row.regex(pattern, RegexOptions::caseless())?.is_match(text)?,
        _ => return exec_err!("the operator {operator} does not support ANY or ALL"),
    };
    Ok(is_match != is_negated)
}

/// Returns the elements of a literal such as `{a,"b c",NULL}`.
fn array_literal(literal: &str) -> Result<Vec<Option<String>>> {
    let trimmed = literal.trim();
    let Some(inner) = trimmed.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) else {
        return exec_err!("malformed array literal: \"{literal}\"");
    };
    let mut elements = Vec::new();
    let mut characters = inner.chars().peekable();
    if inner.trim().is_empty() {
        return Ok(elements);
    }
    loop {
        let (mut element, mut is_quoted, mut in_quotes) = (String::new(), false, false);
        let mut is_last = true;
        while let Some(character) = characters.next() {
            match character {
                '"' => (is_quoted, in_quotes) = (true, !in_quotes),
                '\\' => element.extend(characters.next()),
                ',' if !in_quotes => {
                    is_last = false;
                    break;
                }
                '{' | '}' if !in_quotes => return exec_err!("malformed array literal: \"{literal}\""),
                other => element.push(other),
            }
        }
        if in_quotes {
            return exec_err!("malformed array literal: \"{literal}\"");
        }
        let is_null = !is_quoted && element.trim().eq_ignore_ascii_case("null");
        let element = if is_quoted { element } else { element.trim().to_owned() };
        elements.push((!is_null).then_some(element));
        if is_last {
            return Ok(elements);
        }
    }
}
