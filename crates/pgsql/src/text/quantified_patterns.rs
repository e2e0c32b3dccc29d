//! `text op ANY (array)` and `text op ALL (array)`, for operators of patterns.

use datafusion::common::{Result, exec_err};

use super::case::lower;
use super::function::{Overload, TextFunction};
use super::like::is_like;
use super::regex::RegexOptions;
use super::row_values::{RowArguments, TextOutput};
use super::text_type::TextType;

pub(super) fn functions() -> Vec<TextFunction> {
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
