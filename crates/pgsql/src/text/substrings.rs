//! Parts of texts and bytes: by place, by length, by separator.

use datafusion::common::{Result, exec_err};

use super::function::{Overload, TextFunction};
use super::regexp_functions::{similar_substring, substring as matched_substring};
use super::row_values::{RowArguments, TextOutput};
use super::text_type::TextType;

pub(super) fn functions() -> Vec<TextFunction> {
    use TextType::{ByteLiteral, Bytes, Int, Text};
    let one = TextFunction::single;
    let by_place = || {
        vec![
            Overload::new(&[Text, Int], Text, text_part),
            Overload::new(&[Text, Int, Int], Text, text_part),
            Overload::new(&[Bytes, Int], Bytes, byte_part),
            Overload::new(&[Bytes, Int, Int], Bytes, byte_part),
        ]
    };
    let mut substring = by_place();
    substring.push(Overload::new(&[Text, Text], Text, matched_substring));
    substring.push(Overload::new(&[Text, Text, Text], Text, similar_substring));
    vec![
        TextFunction::new("substr", by_place()),
        TextFunction::new("substring", substring),
        one("left", &[Text, Int], Text, left),
        one("right", &[Text, Int], Text, right),
        one("split_part", &[Text, Text, Int], Text, split_part),
        TextFunction::new(
            "overlay",
            vec![
                Overload::new(&[Text, Text, Int], Text, text_overlay),
                Overload::new(&[Text, Text, Int, Int], Text, text_overlay),
                Overload::new(&[Bytes, ByteLiteral, Int], Bytes, byte_overlay),
                Overload::new(&[Bytes, ByteLiteral, Int, Int], Bytes, byte_overlay),
            ],
        ),
        TextFunction::new(
            "strpos",
            vec![
                Overload::new(&[Text, Text], Int, text_position),
                Overload::new(&[Bytes, ByteLiteral], Int, byte_position),
                Overload::new(&[ByteLiteral, Bytes], Int, byte_position),
            ],
        )
        .with_alias("instr")
        .with_alias("position"),
    ]
}

/// Returns the offset and the number of characters or bytes of a substring.
fn substring_range(row: &RowArguments<'_>, start: i64, count_argument: usize) -> Result<(usize, usize)> {
    let mut end = i64::MAX;
    if row.len() > count_argument {
        let count = i64::from(row.integer(count_argument)?);
        if count < 0 {
            return exec_err!("negative substring length not allowed");
        }
        end = start + count;
    }
    let first = start.max(1);
    Ok(((first - 1) as usize, (end - first).max(0) as usize))
}

fn characters(text: &str, skipped: usize, count: usize) -> &str {
    if text.is_ascii() {
        let start = skipped.min(text.len());
        return &text[start..start.saturating_add(count).min(text.len())];
    }
    let offset = |text: &str, count| text.char_indices().nth(count).map_or(text.len(), |(offset, _)| offset);
    let rest = &text[offset(text, skipped)..];
    &rest[..offset(rest, count)]
}

fn text_part(row: &RowArguments<'_>, output: &mut TextOutput) -> Result<()> {
    let (skipped, count) = substring_range(row, i64::from(row.integer(1)?), 2)?;
    output.text(characters(row.text(0)?, skipped, count))
}

fn byte_part(row: &RowArguments<'_>, output: &mut TextOutput) -> Result<()> {
    let (skipped, count) = substring_range(row, i64::from(row.integer(1)?), 2)?;
    let bytes = row.bytes(0)?;
    let start = skipped.min(bytes.len());
    output.bytes(&bytes[start..start.saturating_add(count).min(bytes.len())])
}

fn left(row: &RowArguments<'_>, output: &mut TextOutput) -> Result<()> {
    let (text, count) = (row.text(0)?, i64::from(row.integer(1)?));
    let count = if count < 0 { (text.chars().count() as i64 + count).max(0) } else { count };
    output.text(characters(text, 0, count as usize))
}

fn right(row: &RowArguments<'_>, output: &mut TextOutput) -> Result<()> {
    let (text, count) = (row.text(0)?, i64::from(row.integer(1)?));
    let skipped = if count < 0 { -count } else { (text.chars().count() as i64 - count).max(0) };
    output.text(characters(text, skipped as usize, usize::MAX))
}

fn split_part(row: &RowArguments<'_>, output: &mut TextOutput) -> Result<()> {
    let (text, separator, number) = (row.text(0)?, row.text(1)?, row.integer(2)?);
    if number == 0 {
        return exec_err!("field position must not be zero");
    }
    let position = number.unsigned_abs() as usize - 1;
    let part = if separator.is_empty() {
        Some(text).filter(|_| position == 0)
    } else if number > 0 {
        text.split(separator).nth(position)
    } else {
        // From the left here too: that decides which of two overlapping separators counts.
        let parts: Vec<&str> = text.split(separator).collect();
        parts.len().checked_sub(position + 1).map(|index| parts[index])
    };
    output.text(part.unwrap_or_default())
}

/// Returns the length of the part before the replaced range, and the offset of the part after it.
fn overlay_range(row: &RowArguments<'_>, length: usize) -> Result<(usize, usize)> {
    let start = i64::from(row.integer(2)?);
    let count = if row.len() > 3 { i64::from(row.integer(3)?) } else { length as i64 };
    if start <= 0 {
        return exec_err!("negative substring length not allowed");
    }
    Ok(((start - 1) as usize, (start + count - 1).max(0) as usize))
}

fn text_overlay(row: &RowArguments<'_>, output: &mut TextOutput) -> Result<()> {
    let (text, new) = (row.text(0)?, row.text(1)?);
    let (before, rest) = overlay_range(row, new.chars().count())?;
    output.text(&[characters(text, 0, before), new, characters(text, rest, usize::MAX)].concat())
}

fn byte_overlay(row: &RowArguments<'_>, output: &mut TextOutput) -> Result<()> {
    let (bytes, new) = (row.bytes(0)?, row.bytes(1)?);
    let (before, rest) = overlay_range(row, new.len())?;
    output.bytes(&[&bytes[..before.min(bytes.len())], &new[..], &bytes[rest.min(bytes.len())..]].concat())
}

fn text_position(row: &RowArguments<'_>, output: &mut TextOutput) -> Result<()> {
    let text = row.text(0)?;
    let found = text.find(row.text(1)?);
    output.integer(found.map_or(0, |offset| text[..offset].chars().count() as i64 + 1))
}

fn byte_position(row: &RowArguments<'_>, output: &mut TextOutput) -> Result<()> {
    let (bytes, expected) = (row.bytes(0)?, row.bytes(1)?);
    if expected.is_empty() {
        return output.integer(1);
    }
    let found = bytes.windows(expected.len()).position(|window| *window == *expected);
    output.integer(found.map_or(0, |index| index as i64 + 1))
}
