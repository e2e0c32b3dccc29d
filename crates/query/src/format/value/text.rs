//! Text and bytes: text that may need escapes, for JSON strings and for lines that people read; numbers and JSON stored
//! as text, bytes as base64, and UUIDs.
//!
//! Numbers and JSON are written into JSON unchanged. Text that does not match its extension type becomes a string, so
//! that the answer is always valid JSON.

use arrow::array::{
    Array, ArrayAccessor, AsArray, BinaryArray, BinaryViewArray, FixedSizeBinaryArray, LargeBinaryArray,
};
use arrow::datatypes::DataType;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;

use super::{BoxedCells, ColumnCells, DisplayCells, FnCells, Quotes};
use crate::format::columns::ExtensionType;

pub(super) fn text_cells(array: &dyn Array) -> BoxedCells<'_> {
    match array.data_type() {
        DataType::Utf8 => Box::new(StringCells(array.as_string::<i32>())),
        DataType::LargeUtf8 => Box::new(StringCells(array.as_string::<i64>())),
        DataType::Utf8View => Box::new(StringCells(array.as_string_view())),
        DataType::Binary => base64_cells(array.as_binary::<i32>(), BinaryArray::value),
        DataType::LargeBinary => base64_cells(array.as_binary::<i64>(), LargeBinaryArray::value),
        DataType::BinaryView => base64_cells(array.as_binary_view(), BinaryViewArray::value),
        DataType::FixedSizeBinary(_) => base64_cells(array.as_fixed_size_binary(), FixedSizeBinaryArray::value),
        _ => Box::new(DisplayCells(array)),
    }
}

fn base64_cells<'a, A: Array>(array: &'a A, value: impl Fn(&A, usize) -> &[u8] + Send + Sync + 'a) -> BoxedCells<'a> {
    let write = move |array: &A, row, out: &mut String| STANDARD.encode_string(value(array, row), out);
    Box::new(FnCells { array, quotes: Quotes::Around, write })
}

struct StringCells<A>(A);

impl<'a, A: ArrayAccessor<Item = &'a str>> ColumnCells for StringCells<A> {
    fn is_null(&self, row: usize) -> bool {
        self.0.is_null(row)
    }

    fn append_json(&self, row: usize, out: &mut String) {
        write_json_string(self.0.value(row), out);
    }

    fn append_text(&self, row: usize, out: &mut String) {
        out.push_str(self.0.value(row));
    }
}

pub(super) fn typed_text_cells(array: &dyn Array, extension_type: ExtensionType) -> BoxedCells<'_> {
    match array.data_type() {
        DataType::Utf8 => Box::new(TextJsonCells { texts: array.as_string::<i32>(), extension_type }),
        DataType::LargeUtf8 => Box::new(TextJsonCells { texts: array.as_string::<i64>(), extension_type }),
        DataType::Utf8View => Box::new(TextJsonCells { texts: array.as_string_view(), extension_type }),
        _ => Box::new(DisplayCells(array)),
    }
}

/// Text that is JSON itself.
struct TextJsonCells<A> {
    texts: A,
    extension_type: ExtensionType,
}

impl<'a, A: ArrayAccessor<Item = &'a str>> ColumnCells for TextJsonCells<A> {
    fn is_null(&self, row: usize) -> bool {
        self.texts.is_null(row)
    }

    fn append_json(&self, row: usize, out: &mut String) {
        let text = self.texts.value(row);
        if self.extension_type == ExtensionType::Number {
            return if is_json_number(text) { out.push_str(text) } else { write_json_string(text, out) };
        }
        match serde_json::from_str::<&RawValue>(text) {
            Ok(document) => write_without_line_breaks(document.get(), out),
            Err(_) => write_json_string(text, out),
        }
    }

    fn append_text(&self, row: usize, out: &mut String) {
        out.push_str(self.texts.value(row));
    }

    fn is_plain_json(&self, row: usize) -> bool {
        self.extension_type == ExtensionType::Number && is_json_number(self.texts.value(row))
    }
}

/// Writes a JSON document without line breaks, which end the rows of some formats and the messages of some transports.
fn write_without_line_breaks(document: &str, out: &mut String) {
    if document.bytes().any(|byte| byte < b' ') {
        // In strings, control characters are escaped; between values they are whitespace.
        out.extend(document.chars().map(|character| if character < ' ' { ' ' } else { character }));
    } else {
        out.push_str(document);
    }
}

/// The maximum digits before the point for which every number is below the largest float, so that all readers accept
/// it.
const WHOLE_DIGITS_MAX: usize = 308;

/// Whether `text` is a JSON number without an exponent that readers accept: some reject a whole document for one number
/// beyond floats.
fn is_json_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let are_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    whole.len() <= WHOLE_DIGITS_MAX
        && are_digits(whole)
        && are_digits(fraction)
        && (whole == "0" || !whole.starts_with('0'))
}

pub(super) fn uuid_cells(array: &dyn Array) -> BoxedCells<'_> {
    let write = |array: &FixedSizeBinaryArray, row, out: &mut String| {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        for (index, byte) in array.value(row).iter().enumerate() {
            if matches!(index, 4 | 6 | 8 | 10) {
                out.push('-');
            }
            out.push(char::from(DIGITS[usize::from(byte >> 4)]));
            out.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
    };
    Box::new(FnCells { array: array.as_fixed_size_binary(), quotes: Quotes::Around, write })
}

pub(crate) fn write_json_string(text: &str, out: &mut String) {
    out.push('"');
    write_escaped(text, out);
    out.push('"');
}

/// Writes `text` with the escapes of a JSON string, without its quotes.
pub(crate) fn write_escaped(text: &str, out: &mut String) {
    let mut written = 0;
    for (index, byte) in text.bytes().enumerate() {
        let escape = ESCAPES[usize::from(byte)];
        if escape == 0 {
            continue;
        }
        // Only ASCII bytes have escapes, so the index is a boundary of characters.
        out.push_str(&text[written..index]);
        written = index + 1;
        out.push('\\');
        out.push(char::from(escape));
        if escape == b'u' {
            const HEXADECIMAL: &[u8; 16] = b"0123456789abcdef";
            out.push_str("00");
            out.push(char::from(HEXADECIMAL[usize::from(byte >> 4)]));
            out.push(char::from(HEXADECIMAL[usize::from(byte & 15)]));
        }
    }
    out.push_str(&text[written..]);
}

/// Writes `text` with its control characters escaped, because they would break the line.
pub(crate) fn write_on_one_line(text: &str, out: &mut String) {
    for character in text.chars() {
        if character.is_control() {
            out.extend(character.escape_default());
        } else {
            out.push(character);
        }
    }
}

/// The character after the backslash for each byte; 0 for bytes without an escape.
const ESCAPES: [u8; 256] = {
    let mut escapes = [0; 256];
    let mut byte = 0;
    while byte < 0x20 {
        escapes[byte] = b'u';
        byte += 1;
    }
    escapes[0x08] = b'b';
    escapes[0x09] = b't';
    escapes[0x0a] = b'n';
    escapes[0x0c] = b'f';
    escapes[0x0d] = b'r';
    escapes[b'"' as usize] = b'"';
    escapes[b'\\' as usize] = b'\\';
    escapes
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn writes_deeply_nested_json_unchanged() {
        let document = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        let texts = arrow::array::StringArray::from(vec![document.as_str()]);
        let mut out = String::new();
        typed_text_cells(&texts, ExtensionType::Json).append_json(0, &mut out);
        assert!(out == document);
    }

    #[test]
    fn accepts_exactly_json_numbers() {
        for text in ["0", "-0.50", "10", "123456789012345678901234567890.000", "0.0001"] {
            assert!(is_json_number(text), "{text}");
            serde_json::from_str::<serde_json::Value>(text).unwrap();
        }
        let (widest, wider) = ("9".repeat(308), "1".repeat(309));
        assert!(is_json_number(&widest) && !is_json_number(&wider));
        assert!(widest.parse::<f64>().unwrap().is_finite());
        for text in ["", "-", ".5", "5.", "01", "+1", "1e5", "NaN", "Infinity", "1 ", "--1", "1.2.3", "٣"] {
            assert!(!is_json_number(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn escapes_are_those_of_json(text in any::<String>()) {
            let mut out = String::new();
            write_json_string(&text, &mut out);
            prop_assert_eq!(serde_json::from_str::<String>(&out).unwrap(), text);
        }
    }
}
