//! `format`, `concat` and `concat_ws`.

use std::borrow::Cow;

use datafusion::common::{Result, exec_datafusion_err, exec_err};

use super::function::{Overload, TextFunction};
use super::quote::{identifier, literal};
use super::row_values::{RowArguments, TextOutput};
use super::text_type::TextType;

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
