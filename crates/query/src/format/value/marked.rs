//! Values that mean more than their Arrow type says: numbers and JSON kept as text, UUIDs kept as bytes.
//!
//! Numbers and JSON go into JSON as they are. Text that is not what its mark says becomes a string, so that an answer
//! is JSON whoever marked the field.

use arrow::array::{Array, ArrayAccessor, AsArray, FixedSizeBinaryArray};
use arrow::datatypes::{DataType, Field};
use serde_json::value::RawValue;

use super::{BoxedCell, Cell, Displayed, Plain, Quotes, write_json_string};
use crate::format::Meaning;

/// The cells of `array`, whose values are those of `field`.
pub(crate) fn field_cell<'a>(field: &Field, array: &'a dyn Array) -> BoxedCell<'a> {
    match Meaning::of(field) {
        None => super::cell(array),
        Some(Meaning::Uuid) => uuids(array),
        Some(meaning) => match array.data_type() {
            DataType::Utf8 => Box::new(Documents { texts: array.as_string::<i32>(), meaning }),
            DataType::LargeUtf8 => Box::new(Documents { texts: array.as_string::<i64>(), meaning }),
            DataType::Utf8View => Box::new(Documents { texts: array.as_string_view(), meaning }),
            _ => Box::new(Displayed(array)),
        },
    }
}

/// Text that is JSON itself.
struct Documents<A> {
    texts: A,
    meaning: Meaning,
}

impl<'a, A: ArrayAccessor<Item = &'a str>> Cell for Documents<A> {
    fn is_null(&self, row: usize) -> bool {
        self.texts.is_null(row)
    }

    fn json(&self, row: usize, out: &mut String) {
        let text = self.texts.value(row);
        if self.meaning == Meaning::Number {
            return if is_number(text) { out.push_str(text) } else { write_json_string(text, out) };
        }
        match serde_json::from_str::<&RawValue>(text) {
            Ok(document) => write_on_one_line(document.get(), out),
            Err(_) => write_json_string(text, out),
        }
    }

    fn text(&self, row: usize, out: &mut String) {
        out.push_str(self.texts.value(row));
    }

    fn is_bare(&self, row: usize) -> bool {
        self.meaning == Meaning::Number && is_number(self.texts.value(row))
    }
}

/// Writes a JSON document without line breaks, which end the rows of some formats and the messages of some transports.
fn write_on_one_line(document: &str, out: &mut String) {
    if document.bytes().any(|byte| byte < b' ') {
        // Strings have theirs escaped; between values they are spaces.
        out.extend(document.chars().map(|character| if character < ' ' { ' ' } else { character }));
    } else {
        out.push_str(document);
    }
}

/// The most digits before the point for which any number is below the greatest float, so that every reader takes it.
const WHOLE_DIGITS_MAX: usize = 308;

/// Whether `text` is a number of JSON, without an exponent, for which readers have room: some refuse a whole document
/// for one number beyond floats.
fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let are_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    whole.len() <= WHOLE_DIGITS_MAX
        && are_digits(whole)
        && are_digits(fraction)
        && (whole == "0" || !whole.starts_with('0'))
}

fn uuids(array: &dyn Array) -> BoxedCell<'_> {
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
    Box::new(Plain { array: array.as_fixed_size_binary(), quotes: Quotes::Around, write })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_of_any_depth_is_written_as_it_is() {
        let document = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        let texts = arrow::array::StringArray::from(vec![document.as_str()]);
        let mut out = String::new();
        field_cell(&Meaning::Json.mark(Field::new("c", DataType::Utf8, true)), &texts).json(0, &mut out);
        assert!(out == document);
    }

    #[test]
    fn numbers_are_those_of_json() {
        for text in ["0", "-0.50", "10", "123456789012345678901234567890.000", "0.0001"] {
            assert!(is_number(text), "{text}");
            serde_json::from_str::<serde_json::Value>(text).unwrap();
        }
        let (widest, wider) = ("9".repeat(308), "1".repeat(309));
        assert!(is_number(&widest) && !is_number(&wider));
        assert!(widest.parse::<f64>().unwrap().is_finite());
        for text in ["", "-", ".5", "5.", "01", "+1", "1e5", "NaN", "Infinity", "1 ", "--1", "1.2.3", "٣"] {
            assert!(!is_number(text), "{text}");
        }
    }
}
