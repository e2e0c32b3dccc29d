//! Keys whose order as bytes is the order of `jsonb`.

use super::value::JsonValue;

/// Writes the key of a document. A scalar is like an array of itself, and comes before arrays of one element.
pub(super) fn write_document(document: &JsonValue, key: &mut Vec<u8>) {
    match document {
        scalar if scalar.is_scalar() => {
            key.push(4);
            write_length(1, key);
            key.push(0);
            write(scalar, key);
        }
        JsonValue::Array(items) => {
            key.push(4);
            write_length(items.len(), key);
            key.push(1);
            items.iter().for_each(|item| write(item, key));
        }
        other => write(other, key),
    }
}

fn write(value: &JsonValue, key: &mut Vec<u8>) {
    match value {
        JsonValue::Null => key.push(0),
        JsonValue::Text(text) => {
            key.push(1);
            write_text(text, key);
        }
        JsonValue::Number(number) => {
            key.push(2);
            write_number(number, key);
        }
        JsonValue::Bool(value) => key.extend([3, u8::from(*value)]),
        JsonValue::Array(items) => {
            key.push(4);
            write_length(items.len(), key);
            items.iter().for_each(|item| write(item, key));
        }
        JsonValue::Object(pairs) => {
            key.push(5);
            write_length(pairs.len(), key);
            for (name, value) in pairs {
                write_text(name, key);
                write(value, key);
            }
        }
    }
}

fn write_length(length: usize, key: &mut Vec<u8>) {
    key.extend((length as u64).to_be_bytes());
}

/// Ends with a zero, which no text of `jsonb` has.
fn write_text(text: &str, key: &mut Vec<u8>) {
    key.extend(text.as_bytes());
    key.push(0);
}

/// Writes the sign, the number of digits before the point, and the digits. Negative numbers are inverted.
fn write_number(number: &str, key: &mut Vec<u8>) {
    let (is_negative, unsigned) = match number.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, number),
    };
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
    if whole.is_empty() && fraction.is_empty() {
        key.push(1);
        return;
    }
    let mut magnitude = (whole.len() as u64).to_be_bytes().to_vec();
    magnitude.extend(whole.as_bytes());
    magnitude.extend(fraction.as_bytes());
    magnitude.push(0);
    if is_negative {
        key.push(0);
        key.extend(magnitude.iter().map(|byte| !byte));
    } else {
        key.push(2);
        key.extend(magnitude);
    }
}
