//! The functions of regular expressions.

use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use datafusion::scalar::ScalarValue;

use super::row_function::{Overload, RowArguments, TextFunction, TextOutput, TextType};
use crate::pg_regex::{Captures, PgRegex, RegexOptions, similar_pattern};

/// Bytes of a pattern that is handed to DataFusion's own operator.
const PLAIN_PATTERN_BYTES_MAX: usize = 200;

/// Returns overloads with `required` to all of `params`.
pub(super) fn optional(
    params: &[TextType],
    required: usize,
    returns: TextType,
    run: fn(&RowArguments<'_>, &mut TextOutput) -> Result<()>,
) -> Vec<Overload> {
    (required..=params.len()).map(|count| Overload::new(&params[..count], returns, run)).collect()
}

/// Returns the function of `text ~ pattern`.
pub(super) fn regex_match() -> TextFunction {
    let run = |row: &RowArguments<'_>, output: &mut TextOutput| matches_with(row, output, RegexOptions::default());
    TextFunction::single("regex_match*", &[TextType::Text, TextType::Text], TextType::Boolean, run)
        .with_simplify(|args, info| plain_operator(args, info, RegexOptions::default()))
}

/// Returns the function of `text ~* pattern`.
pub(super) fn regex_imatch() -> TextFunction {
    let run = |row: &RowArguments<'_>, output: &mut TextOutput| matches_with(row, output, RegexOptions::caseless());
    TextFunction::single("regex_imatch*", &[TextType::Text, TextType::Text], TextType::Boolean, run)
        .with_simplify(|args, info| plain_operator(args, info, RegexOptions::caseless()))
}

fn matches_with(row: &RowArguments<'_>, output: &mut TextOutput, options: RegexOptions) -> Result<()> {
    output.boolean(row.regex(row.text(1)?, options)?.is_match(row.text(0)?)?)
}

/// Uses DataFusion's own operator for a short pattern with the same meaning, so that files can be pruned.
fn plain_operator(args: &[Expr], info: &SimplifyContext, options: RegexOptions) -> Result<Option<Expr>> {
    let [text, Expr::Literal(value, _)] = args else { return Ok(None) };
    let Some(pattern) = value.try_as_str().flatten() else { return Ok(None) };
    // An invalid pattern fails at execution.
    let Ok(regex) = PgRegex::new(pattern, options) else { return Ok(None) };
    let Some(equivalent) = regex.equivalent().filter(|equivalent| equivalent.len() <= PLAIN_PATTERN_BYTES_MAX) else {
        return Ok(None);
    };
    let value = ScalarValue::from(equivalent).cast_to(&info.get_data_type(text)?)?;
    let pattern = Expr::Literal(value, None);
    let operator = BinaryExpr::new(Box::new(text.clone()), Operator::RegexMatch, Box::new(pattern));
    Ok(Some(Expr::BinaryExpr(operator)))
}

pub(super) fn functions() -> Vec<TextFunction> {
    use TextType::{Boolean, Int, Text, TextList, TextLists};
    let of = |name, params: &[TextType], required, returns, run| {
        TextFunction::new(name, optional(params, required, returns, run))
    };
    let mut replace = optional(&[Text, Text, Text, Text], 3, Text, replace);
    replace.extend(optional(&[Text, Text, Text, Int, Int, Text], 4, Text, replace_from));
    vec![
        regex_match(),
        regex_imatch(),
        of("regexp_like", &[Text, Text, Text], 2, Boolean, like),
        of("regexp_match", &[Text, Text, Text], 2, TextList, first_match),
        of("regexp_matches*", &[Text, Text, Text], 2, TextLists, all_matches),
        TextFunction::new("regexp_replace", replace),
        of("regexp_split_to_array", &[Text, Text, Text], 2, TextList, split),
        of("regexp_split_to_table*", &[Text, Text, Text], 2, TextList, split),
        of("regexp_count", &[Text, Text, Int, Text], 2, Int, count),
        of("regexp_instr", &[Text, Text, Int, Int, Int, Text, Int], 2, Int, position),
        of("regexp_substr", &[Text, Text, Int, Int, Text, Int], 2, Text, part),
        of("similar_to_escape", &[Text, Text], 1, Text, |row, output| {
            let escape = if row.len() > 1 { Some(row.text(1)?) } else { None };
            output.text(&similar_pattern(row.text(0)?, escape)?)
        }),
    ]
}

/// Returns the options of the argument, if it is there; without `g`.
fn options(row: &RowArguments<'_>, argument: usize, function: &str) -> Result<RegexOptions> {
    let options = RegexOptions::parse(if row.len() > argument { row.text(argument)? } else { "" })?;
    if options.is_global {
        return exec_err!("{function}() does not support the \"global\" option");
    }
    Ok(options)
}

/// Returns an integer of at least `least`, `default` where it is not there.
fn parameter(row: &RowArguments<'_>, argument: usize, name: &str, least: i32, default: i32) -> Result<usize> {
    let value = if row.len() > argument { row.integer(argument)? } else { default };
    if value < least {
        return exec_err!("invalid value for parameter \"{name}\": {value}");
    }
    Ok(value.unsigned_abs() as usize)
}

/// Returns the offset of the character number `start`; `None` after the end.
fn offset(text: &str, start: usize) -> Option<usize> {
    let ends = std::iter::once(text.len());
    text.char_indices().map(|(offset, _)| offset).chain(ends).nth(start - 1)
}

fn texts<'a>(text: &'a str, captures: &'a Captures) -> impl Iterator<Item = Option<&'a str>> {
    let skipped = usize::from(captures.len() > 1);
    captures.iter().skip(skipped).map(move |place| place.map(|(start, end)| &text[start..end]))
}

fn like(row: &RowArguments<'_>, output: &mut TextOutput) -> Result<()> {
    matches_with(row, output, options(row, 2, "regexp_like")?)
}

fn first_match(row: &RowArguments<'_>, output: &mut TextOutput) -> Result<()> {
    let options = options(row, 2, "regexp_match")?;
    let text = row.text(0)?;
    match row.regex(row.text(1)?, options)?.find_from(text, 0, true)? {
        Some(captures) => output.list(texts(text, &captures)),
        None => output.null(),
    }
}

fn all_matches(row: &RowArguments<'_>, output: &mut TextOutput) -> Result<()> {
    let options = RegexOptions::parse(if row.len() > 2 { row.text(2)? } else { "" })?;
    let text = row.text(0)?;
    row.regex(row.text(1)?, options)?.each(text, 0, true, |captures| {
        output.inner_list(texts(text, captures))?;
        Ok(options.is_global)
    })?;
    output.end_lists()
}

fn replace(row: &RowArguments<'_>, output: &mut TextOutput) -> Result<()> {
    let options = RegexOptions::parse(if row.len() > 3 { row.text(3)? } else { "" })?;
    replaced(row, output, options, 1, usize::from(!options.is_global))
}

fn replace_from(row: &RowArguments<'_>, output: &mut TextOutput) -> Result<()> {
    let start = parameter(row, 3, "start", 1, 1)?;
    let options = RegexOptions::parse(if row.len() > 5 { row.text(5)? } else { "" })?;
    let number = parameter(row, 4, "n", 0, i32::from(!options.is_global))?;
    replaced(row, output, options, start, number)
}

/// Replaces the match of the `number`, or all if it is 0.
fn replaced(
    row: &RowArguments<'_>,
    output: &mut TextOutput,
    options: RegexOptions,
    start: usize,
    number: usize,
) -> Result<()> {
    let (text, replacement) = (row.text(0)?, row.text(2)?);
    let regex = row.regex(row.text(1)?, options)?;
    let Some(start) = offset(text, start) else { return output.text(text) };
    let with_groups = replacement.contains('\\');
    let (mut result, mut copied, mut seen) = (String::new(), 0, 0);
    regex.each(text, start, with_groups, |captures| {
        seen += 1;
        if number > 0 && seen != number {
            return Ok(true);
        }
        let Some((begin, end)) = captures[0] else { return Ok(true) };
        result.push_str(&text[copied..begin]);
        expand(&mut result, replacement, text, captures);
        copied = end;
        Ok(number == 0)
    })?;
    result.push_str(&text[copied..]);
    output.text(&result)
}

/// Appends `replacement`, with `\1` and `\&` expanded.
fn expand(result: &mut String, replacement: &str, text: &str, captures: &Captures) {
    let mut rest = replacement;
    while let Some((before, after)) = rest.split_once('\\') {
        result.push_str(before);
        let mut characters = after.chars();
        let group = match characters.next() {
            Some('&') => Some(0),
            Some(digit @ '1'..='9') => digit.to_digit(10).map(|digit| digit as usize),
            Some('\\') => {
                result.push('\\');
                rest = characters.as_str();
                continue;
            }
            _ => None,
        };
        let Some(group) = group else {
            result.push('\\');
            rest = after;
            continue;
        };
        if let Some((start, end)) = captures.get(group).copied().flatten() {
            result.push_str(&text[start..end]);
        }
        rest = characters.as_str();
    }
    result.push_str(rest);
}

fn split(row: &RowArguments<'_>, output: &mut TextOutput) -> Result<()> {
    let options = options(row, 2, "regexp_split_to_array")?;
    let text = row.text(0)?;
    let (mut parts, mut start, mut previous_end) = (Vec::new(), 0, 0);
    row.regex(row.text(1)?, options)?.each(text, 0, false, |captures| {
        if let Some((begin, end)) = captures[0] {
            // Empty matches at the borders, and directly after another match, do not split the text.
            if begin < text.len() && end > previous_end {
                parts.push(Some(&text[start..begin]));
                start = end;
            }
            previous_end = end;
        }
        Ok(true)
    })?;
    parts.push(Some(&text[start..]));
    output.list(parts)
}

fn count(row: &RowArguments<'_>, output: &mut TextOutput) -> Result<()> {
    let start = parameter(row, 2, "start", 1, 1)?;
    let options = options(row, 3, "regexp_count")?;
    let text = row.text(0)?;
    let regex = row.regex(row.text(1)?, options)?;
    let mut matches = 0;
    if let Some(start) = offset(text, start) {
        regex.each(text, start, false, |_| {
            matches += 1;
            Ok(true)
        })?;
    }
    output.integer(matches)
}

/// Returns the range of the group `group` in the match `number`.
fn place(regex: &PgRegex, text: &str, start: usize, number: usize, group: usize) -> Result<Option<(usize, usize)>> {
    let (mut found, mut seen) = (None, 0);
    if group > regex.groups() {
        return Ok(None);
    }
    if let Some(start) = offset(text, start) {
        regex.each(text, start, group > 0, |captures| {
            seen += 1;
            if seen == number {
                found = captures[group];
            }
            Ok(seen < number)
        })?;
    }
    Ok(found)
}

fn position(row: &RowArguments<'_>, output: &mut TextOutput) -> Result<()> {
    let start = parameter(row, 2, "start", 1, 1)?;
    let number = parameter(row, 3, "n", 1, 1)?;
    let end_option = parameter(row, 4, "endoption", 0, 0)?;
    if end_option > 1 {
        return exec_err!("invalid value for parameter \"endoption\": {end_option}");
    }
    let options = options(row, 5, "regexp_instr")?;
    let group = parameter(row, 6, "subexpr", 0, 0)?;
    let text = row.text(0)?;
    let place = place(&*row.regex(row.text(1)?, options)?, text, start, number, group)?;
    let Some((begin, end)) = place else { return output.integer(0) };
    let until = if end_option == 1 { end } else { begin };
    output.integer(text[..until].chars().count() as i64 + 1)
}

fn part(row: &RowArguments<'_>, output: &mut TextOutput) -> Result<()> {
    let start = parameter(row, 2, "start", 1, 1)?;
    let number = parameter(row, 3, "n", 1, 1)?;
    let options = options(row, 4, "regexp_substr")?;
    let group = parameter(row, 5, "subexpr", 0, 0)?;
    let text = row.text(0)?;
    let place = place(&*row.regex(row.text(1)?, options)?, text, start, number, group)?;
    output.optional_text(place.map(|(begin, end)| &text[begin..end]))
}

/// Computes `substring(text from pattern)`: the match of the first group, or the whole match.
pub(super) fn substring(row: &RowArguments<'_>, output: &mut TextOutput) -> Result<()> {
    first_group(row, output, row.text(1)?)
}

/// Computes `substring(text similar pattern escape escape)`.
pub(super) fn similar_substring(row: &RowArguments<'_>, output: &mut TextOutput) -> Result<()> {
    first_group(row, output, &similar_pattern(row.text(1)?, Some(row.text(2)?))?)
}

fn first_group(row: &RowArguments<'_>, output: &mut TextOutput, pattern: &str) -> Result<()> {
    let text = row.text(0)?;
    let found = row.regex(pattern, RegexOptions::default())?.find_from(text, 0, true)?;
    output.optional_text(found.as_ref().and_then(|captures| texts(text, captures).next().flatten()))
}
