//! Functions that transform a text, and parts of texts and bytes: by place, by length, by separator.

use std::borrow::Cow;

use datafusion::common::{Result, exec_datafusion_err, exec_err};
use unicode_normalization::UnicodeNormalization;

use super::regexp_functions::{optional, similar_substring, substring as matched_substring};
use super::row_function::{Overload, RowArguments, TextFunction, TextOutput, TextType};
use crate::pg_regex::{lower, simple_lower, simple_upper, upper};

/// Characters that a result may have.
const CHARACTERS_MAX: usize = 64 << 20;

pub(super) fn functions() -> Vec<TextFunction> {
    use TextType::{BigInt, ByteLiteral, Bytes, Int, Int32, Text};
    let one = TextFunction::single;
    let split = |name| {
        let overloads = optional(&[Text, Text, Text], 2, TextType::TextList, to_array);
        TextFunction::new(name, overloads.into_iter().map(Overload::called_on_null_input).collect())
    };
    let trim = |name, text_run, byte_run| {
        let mut overloads = optional(&[Text, Text], 1, Text, text_run);
        overloads.push(Overload::new(&[Bytes, ByteLiteral], Bytes, byte_run));
        TextFunction::new(name, overloads)
    };
    vec![
        trim(
            "btrim",
            |row, output| trim_text(row, output, true, true),
            |row, output| trim_bytes(row, output, true, true),
        )
        .with_alias("trim"),
        trim(
            "ltrim",
            |row, output| trim_text(row, output, true, false),
            |row, output| trim_bytes(row, output, true, false),
        ),
        trim(
            "rtrim",
            |row, output| trim_text(row, output, false, true),
            |row, output| trim_bytes(row, output, false, true),
        ),
        TextFunction::new("lpad", optional(&[Text, Int, Text], 2, Text, |row, output| pad(row, output, true))),
        TextFunction::new("rpad", optional(&[Text, Int, Text], 2, Text, |row, output| pad(row, output, false))),
        one("repeat", &[Text, Int], Text, repeat),
        one("replace", &[Text, Text, Text], Text, replace),
        one("reverse", &[Text], Text, |row, output| output.text(&row.text(0)?.chars().rev().collect::<String>())),
        one("translate", &[Text, Text, Text], Text, translate),
        one("chr", &[Int], Text, chr),
        one("ascii", &[Text], Int, |row, output| {
            output.integer(row.text(0)?.chars().next().map_or(0, |first| i64::from(u32::from(first))))
        }),
        TextFunction::new(
            "to_hex",
            vec![
                Overload::new(&[Int32], Text, |row, output| output.text(&format!("{:x}", row.bigint(0)? as i32))),
                Overload::new(&[BigInt], Text, |row, output| output.text(&format!("{:x}", row.bigint(0)?))),
            ],
        ),
        length_function("length", |row, output| output.integer(row.text(0)?.chars().count() as i64), 1),
        length_function("octet_length", |row, output| output.integer(row.text(0)?.len() as i64), 1),
        length_function("bit_length", |row, output| output.integer(row.text(0)?.len() as i64 * 8), 8),
        one("char_length", &[Text], Int, |row, output| output.integer(row.text(0)?.chars().count() as i64))
            .with_alias("character_length"),
        one("unistr", &[Text], Text, unistr),
        TextFunction::new("normalize", optional(&[Text, Text], 1, Text, |row, output| output.text(&normalized(row)?))),
        TextFunction::new("is_normalized", optional(&[Text, Text], 1, TextType::Boolean, is_normalized)),
        split("string_to_array").with_alias("string_to_list"),
        split("string_to_table*"),
    ]
}

fn length_function(
    name: &'static str,
    of_text: fn(&RowArguments<'_>, &mut TextOutput) -> Result<()>,
    per_byte: i64,
) -> TextFunction {
    let of_bytes: fn(&RowArguments<'_>, &mut TextOutput) -> Result<()> = match per_byte {
        1 => |row, output| output.integer(row.bytes(0)?.len() as i64),
        _ => |row, output| output.integer(row.bytes(0)?.len() as i64 * 8),
    };
    let texts = Overload::new(&[TextType::Text], TextType::Int, of_text);
    TextFunction::new(name, vec![texts, Overload::new(&[TextType::Bytes], TextType::Int, of_bytes)])
}

fn trim_text(row: &RowArguments<'_>, output: &mut TextOutput, at_start: bool, at_end: bool) -> Result<()> {
    let mut text = row.text(0)?;
    let set = if row.len() > 1 { row.text(1)? } else { " " };
    let is_cut = |character: char| set.contains(character);
    if at_start {
        text = text.trim_start_matches(is_cut);
    }
    if at_end {
        text = text.trim_end_matches(is_cut);
    }
    output.text(text)
}

fn trim_bytes(row: &RowArguments<'_>, output: &mut TextOutput, at_start: bool, at_end: bool) -> Result<()> {
    let (bytes, set) = (row.bytes(0)?, row.bytes(1)?);
    let mut rest = &bytes[..];
    while at_start && rest.first().is_some_and(|byte| set.contains(byte)) {
        rest = &rest[1..];
    }
    while at_end && rest.last().is_some_and(|byte| set.contains(byte)) {
        rest = &rest[..rest.len() - 1];
    }
    output.bytes(rest)
}

fn pad(row: &RowArguments<'_>, output: &mut TextOutput, at_start: bool) -> Result<()> {
    let text = row.text(0)?;
    let expected = row.integer(1)?.max(0) as usize;
    let fill = if row.len() > 2 { row.text(2)? } else { " " };
    let length = text.chars().count();
    if length >= expected || fill.is_empty() {
        return output.text(&text.chars().take(expected).collect::<String>());
    }
    check_length(expected)?;
    let padding: String = fill.chars().cycle().take(expected - length).collect();
    output.text(&if at_start { padding + text } else { text.to_owned() + &padding })
}

fn check_length(characters: usize) -> Result<()> {
    if characters > CHARACTERS_MAX { exec_err!("requested length too large") } else { Ok(()) }
}

fn repeat(row: &RowArguments<'_>, output: &mut TextOutput) -> Result<()> {
    let (text, times) = (row.text(0)?, row.integer(1)?.max(0) as usize);
    check_length(text.len().saturating_mul(times))?;
    output.text(&text.repeat(times))
}

fn replace(row: &RowArguments<'_>, output: &mut TextOutput) -> Result<()> {
    let (text, from) = (row.text(0)?, row.text(1)?);
    if from.is_empty() {
        return output.text(text);
    }
    output.text(&text.replace(from, row.text(2)?))
}

fn translate(row: &RowArguments<'_>, output: &mut TextOutput) -> Result<()> {
    let mut mapped = std::collections::HashMap::new();
    let mut to = row.text(2)?.chars();
    for from in row.text(1)?.chars() {
        let to = to.next();
        mapped.entry(from).or_insert(to);
    }
    let translated = |character: char| mapped.get(&character).copied().unwrap_or(Some(character));
    output.text(&row.text(0)?.chars().filter_map(translated).collect::<String>())
}

fn chr(row: &RowArguments<'_>, output: &mut TextOutput) -> Result<()> {
    let number = row.bigint(0)?;
    match number {
        ..0 => return exec_err!("character number must be positive"),
        0 => return exec_err!("null character not permitted"),
        0x11_0000.. => return exec_err!("requested character too large for encoding: {number}"),
        _ => {}
    }
    let character = u32::try_from(number).ok().and_then(char::from_u32);
    let character =
        character.ok_or_else(|| exec_datafusion_err!("requested character not valid for encoding: {number}"))?;
    output.text(character.encode_utf8(&mut [0; 4]))
}

fn unistr(row: &RowArguments<'_>, output: &mut TextOutput) -> Result<()> {
    output.text(&unescaped(row.text(0)?, '\\', true)?)
}

/// Replaces escapes of Unicode with their characters.
fn unescaped(text: &str, escape: char, with_letters: bool) -> Result<Cow<'_, str>> {
    if !text.contains(escape) {
        return Ok(Cow::Borrowed(text));
    }
    let invalid = || exec_datafusion_err!("invalid Unicode escape: it must be \\XXXX or \\+XXXXXX");
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    let mut units = Vec::new();
    while let Some(first) = rest.chars().next() {
        let after = &rest[first.len_utf8()..];
        let (digits, count) = match after.chars().next() {
            _ if first != escape => (None, 0),
            Some(next) if next == escape => (None, 0),
            Some('+') => (Some(&after[1..]), 6),
            Some('u') if with_letters => (Some(&after[1..]), 4),
            Some('U') if with_letters => (Some(&after[1..]), 8),
            _ => (Some(after), 4),
        };
        let Some(digits) = digits else {
            if !units.is_empty() {
                return exec_err!("invalid Unicode surrogate pair");
            }
            result.push(first);
            rest = if first == escape { &after[escape.len_utf8()..] } else { after };
            continue;
        };
        let code = digits.get(..count).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let code = u32::from_str_radix(code.ok_or_else(invalid)?, 16).map_err(|_| invalid())?;
        rest = &digits[count..];
        match (u16::try_from(code), units.is_empty()) {
            (Ok(unit @ 0xD800..=0xDBFF), true) => units.push(unit),
            (Ok(unit @ 0xDC00..=0xDFFF), false) => {
                units.push(unit);
                result.push_str(&String::from_utf16(&units).map_err(|_| invalid())?);
                units.clear();
            }
            (_, false) => return exec_err!("invalid Unicode surrogate pair"),
            _ => result.push(char::from_u32(code).filter(|character| *character != '\0').ok_or_else(invalid)?),
        }
    }
    if units.is_empty() { Ok(Cow::Owned(result)) } else { exec_err!("invalid Unicode surrogate pair") }
}

fn initcap(text: &str) -> String {
    let mut is_inside = false;
    let cased = |character: char| {
        let cased = if is_inside { simple_lower(character) } else { simple_upper(character) };
        is_inside = crate::pg_regex::is_alphanumeric(cased);
        cased
    };
    text.chars().map(cased).collect()
}

/// Returns the functions `lower`, `upper` and `initcap`.
pub(super) fn case_functions() -> Vec<TextFunction> {
    let of = |name, run| TextFunction::single(name, &[TextType::Text], TextType::Text, run);
    vec![
        of("lower", |row: &RowArguments<'_>, output: &mut TextOutput| change_case(row, output, lower)),
        of("upper", |row: &RowArguments<'_>, output: &mut TextOutput| change_case(row, output, upper)),
        of("initcap", |row: &RowArguments<'_>, output: &mut TextOutput| change_case(row, output, initcap)),
    ]
}

fn change_case(row: &RowArguments<'_>, output: &mut TextOutput, cased: fn(&str) -> String) -> Result<()> {
    output.text(&cased(row.text(0)?))
}

fn normalized(row: &RowArguments<'_>) -> Result<String> {
    let text = row.text(0)?;
    let form = if row.len() > 1 { row.text(1)? } else { "NFC" };
    Ok(match form.to_ascii_uppercase().as_str() {
        "NFC" => text.nfc().collect(),
        "NFD" => text.nfd().collect(),
        "NFKC" => text.nfkc().collect(),
        "NFKD" => text.nfkd().collect(),
        _ => return exec_err!("invalid normalization form: {form}; write NFC, NFD, NFKC or NFKD"),
    })
}

fn is_normalized(row: &RowArguments<'_>, output: &mut TextOutput) -> Result<()> {
    output.boolean(normalized(row)? == row.text(0)?)
}

fn to_array(row: &RowArguments<'_>, output: &mut TextOutput) -> Result<()> {
    let Some(text) = row.optional_text(0)? else { return output.null() };
    let null = if row.len() > 2 { row.optional_text(2)? } else { None };
    let element = |part| Some(part).filter(|part| Some(*part) != null);
    if text.is_empty() {
        return output.list([]);
    }
    match row.optional_text(1)? {
        None => output.list(text.char_indices().map(|(at, character)| element(&text[at..at + character.len_utf8()]))),
        Some("") => output.list([element(text)]),
        Some(separator) => output.list(text.split(separator).map(element)),
    }
}

pub(super) fn substring_functions() -> Vec<TextFunction> {
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
