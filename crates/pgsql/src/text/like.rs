//! `LIKE`, for patterns that are not known yet, and what `ESCAPE` makes of a pattern.

use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{Expr, Like};

use super::function::TextFunction;
use super::regexp_functions::optional;
use super::row_values::{RowArguments, TextOutput};
use super::text_type::TextType;

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
pub(super) fn is_like(text: &str, pattern: &str) -> Result<bool> {
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
