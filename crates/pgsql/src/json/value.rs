//! A JSON document in memory, as text, and as a key whose order as bytes is the order of `jsonb`. Its numbers have as many
//! digits as they are written with.

use std::cmp::Ordering;

use datafusion::common::{Result, exec_err};

/// A value of `jsonb`.
#[derive(Debug, Clone)]
pub(super) enum JsonValue {
    Null,
    Bool(bool),
    /// Canonical, as [`canonicalize_number`] makes them.
    Number(String),
    Text(String),
    Array(Vec<JsonValue>),
    /// In the order of [`key_order`], each key once.
    Object(Vec<(String, JsonValue)>),
}

/// Compares keys in the order of `jsonb`: by length, then by bytes.
pub(super) fn key_order(a: &str, b: &str) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.as_bytes().cmp(b.as_bytes()))
}

impl JsonValue {
    /// Builds an object. The last pair of each key remains.
    pub(super) fn object(mut pairs: Vec<(String, Self)>) -> Self {
        pairs.sort_by(|a, b| key_order(&a.0, &b.0));
        pairs.reverse();
        pairs.dedup_by(|next, before| next.0 == before.0);
        // Reversed, the last of equal keys comes last among them, since the sort is stable; it must come first.
        pairs.reverse();
        Self::Object(pairs)
    }

    pub(super) fn is_scalar(&self) -> bool {
        !matches!(self, Self::Array(_) | Self::Object(_))
    }

    /// Returns the value of a key of an object.
    pub(super) fn member(&self, key: &str) -> Option<&Self> {
        let Self::Object(pairs) = self else { return None };
        let index = pairs.binary_search_by(|(name, _)| key_order(name, key)).ok()?;
        Some(&pairs[index].1)
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Text(_) => 1,
            Self::Number(_) => 2,
            Self::Bool(_) => 3,
            Self::Array(_) => 4,
            Self::Object(_) => 5,
        }
    }

    /// Returns the order of `jsonb`. Documents differ from what is within them in that a scalar is like an array of
    /// itself.
    pub(super) fn compare_documents(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Array(items), scalar) if scalar.is_scalar() => items.len().cmp(&1).then(Ordering::Greater),
            (scalar, Self::Array(items)) if scalar.is_scalar() => 1.cmp(&items.len()).then(Ordering::Less),
            _ => self.compare(other),
        }
    }

    fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::Number(a), Self::Number(b)) => compare_numbers(a, b),
            (Self::Text(a), Self::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Self::Array(a), Self::Array(b)) => {
                let items = || a.iter().zip(b).map(|(a, b)| a.compare(b)).find(|order| order.is_ne());
                a.len().cmp(&b.len()).then_with(|| items().unwrap_or(Ordering::Equal))
            }
            (Self::Object(a), Self::Object(b)) => {
                let pair = |((a_key, a), (b_key, b)): (&(String, Self), &(String, Self))| {
                    a_key.as_bytes().cmp(b_key.as_bytes()).then_with(|| a.compare(b))
                };
                let pairs = || a.iter().zip(b).map(pair).find(|order| order.is_ne());
                a.len().cmp(&b.len()).then_with(|| pairs().unwrap_or(Ordering::Equal))
            }
            _ => self.rank().cmp(&other.rank()),
        }
    }

    fn equals(&self, other: &Self) -> bool {
        self.compare(other).is_eq()
    }

    /// Computes `self @> other`.
    pub(super) fn contains_document(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Array(items), scalar) if scalar.is_scalar() => items.iter().any(|item| item.equals(scalar)),
            _ => self.contains(other),
        }
    }

    fn contains(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Object(_), Self::Object(pairs)) => {
                pairs.iter().all(|(key, value)| self.member(key).is_some_and(|own| own.contains(value)))
            }
            (Self::Array(items), Self::Array(others)) => {
                others.iter().all(|other| items.iter().any(|item| item.contains(other)))
            }
            (a, b) if a.is_scalar() && b.is_scalar() => a.equals(b),
            _ => false,
        }
    }

    /// Computes `self ? key`.
    pub(super) fn has_key(&self, key: &str) -> bool {
        match self {
            Self::Object(_) => self.member(key).is_some(),
            Self::Array(items) => items.iter().any(|item| matches!(item, Self::Text(text) if text == key)),
            Self::Text(text) => text == key,
            _ => false,
        }
    }

    /// Removes the members that are null.
    pub(super) fn strip_nulls(self) -> Self {
        match self {
            Self::Array(items) => Self::Array(items.into_iter().map(Self::strip_nulls).collect()),
            Self::Object(pairs) => {
                let pairs = pairs.into_iter().filter(|(_, value)| !matches!(value, Self::Null));
                Self::Object(pairs.map(|(key, value)| (key, value.strip_nulls())).collect())
            }
            scalar => scalar,
        }
    }
}

/// Zeros that an exponent may add. The limit is below PostgreSQL's, so that a short text does not become a long one.
const EXPONENT_MAX: i64 = 400;

/// Writes a number of JSON as PostgreSQL writes a `numeric`: with all digits and without an exponent.
pub(super) fn canonicalize_number(number: &str) -> Result<String> {
    let (is_negative, unsigned) = match number.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, number),
    };
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().unwrap_or(i64::MAX)),
        None => (unsigned, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_zero = mantissa.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    let mut out = String::with_capacity(number.len() + 1);
    if is_negative && !is_zero {
        out.push('-');
    }
    if exponent == 0 {
        out.push_str(mantissa);
        return Ok(out);
    }
    if exponent.unsigned_abs() > EXPONENT_MAX.unsigned_abs() {
        return exec_err!("the exponent of the JSON number {number} is out of range; the limit is {EXPONENT_MAX}");
    }
    let digits = format!("{whole}{fraction}");
    // The position of the point in the digits.
    let point = whole.len() as i64 + exponent;
    let scale = (fraction.len() as i64 - exponent).max(0) as usize;
    let (before, after) = if point <= 0 {
        ("0".to_owned(), format!("{}{digits}", "0".repeat(point.unsigned_abs() as usize)))
    } else if point as usize >= digits.len() {
        (format!("{digits}{}", "0".repeat(point as usize - digits.len())), String::new())
    } else {
        let (before, after) = digits.split_at(point as usize);
        (before.to_owned(), after.to_owned())
    };
    let before = before.trim_start_matches('0');
    out.push_str(if before.is_empty() { "0" } else { before });
    if scale > 0 {
        out.push('.');
        out.push_str(&after);
    }
    Ok(out)
}

/// Compares canonical numbers by value.
pub(super) fn compare_numbers(a: &str, b: &str) -> Ordering {
    let sign = |text: &str| -> i8 {
        if !text.bytes().any(|byte| matches!(byte, b'1'..=b'9')) {
            0
        } else if text.starts_with('-') {
            -1
        } else {
            1
        }
    };
    let signs = (sign(a), sign(b));
    match signs {
        (1, 1) => compare_magnitude(a, b),
        (-1, -1) => compare_magnitude(b.trim_start_matches('-'), a.trim_start_matches('-')),
        (a, b) => a.cmp(&b),
    }
}

fn compare_magnitude(a: &str, b: &str) -> Ordering {
    let parts = |text: &'_ str| -> (usize, usize) {
        let point = text.find('.').unwrap_or(text.len());
        (point, text.len())
    };
    let ((a_point, _), (b_point, _)) = (parts(a), parts(b));
    let (a_whole, a_fraction) = (&a[..a_point], a[a_point..].trim_start_matches('.').trim_end_matches('0'));
    let (b_whole, b_fraction) = (&b[..b_point], b[b_point..].trim_start_matches('.').trim_end_matches('0'));
    a_whole.len().cmp(&b_whole.len()).then_with(|| a_whole.cmp(b_whole)).then_with(|| a_fraction.cmp(b_fraction))
}

/// Rounds a canonical number to an integer, half away from zero; `None` if it has too many digits.
pub(super) fn round_to_integer(number: &str) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let integer: i128 = whole.parse().ok()?;
    if !fraction.starts_with(|digit: char| digit >= '5') {
        return Some(integer);
    }
    Some(if number.starts_with('-') { integer - 1 } else { integer + 1 })
}

/// Writes `text` as a JSON string.
pub(super) fn write_string(text: &str, out: &mut String) {
    out.push('"');
    let mut plain = 0;
    for (position, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            0x08 => "\\b",
            0x0c => "\\f",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..0x20 => "",
            _ => continue,
        };
        out.push_str(&text[plain..position]);
        plain = position + 1;
        if escape.is_empty() {
            out.push_str(&format!("\\u{byte:04x}"));
        } else {
            out.push_str(escape);
        }
    }
    out.push_str(&text[plain..]);
    out.push('"');
}

/// Writes `value` as `jsonb` is printed.
pub(super) fn write_value(value: &JsonValue, out: &mut String) {
    match value {
        JsonValue::Null => out.push_str("null"),
        JsonValue::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        JsonValue::Number(number) => out.push_str(number),
        JsonValue::Text(text) => write_string(text, out),
        JsonValue::Array(items) => {
            out.push('[');
            for (position, item) in items.iter().enumerate() {
                if position > 0 {
                    out.push_str(", ");
                }
                write_value(item, out);
            }
            out.push(']');
        }
        JsonValue::Object(pairs) => {
            out.push('{');
            for (position, (key, value)) in pairs.iter().enumerate() {
                if position > 0 {
                    out.push_str(", ");
                }
                write_string(key, out);
                out.push_str(": ");
                write_value(value, out);
            }
            out.push('}');
        }
    }
}

/// Writes `value` as `jsonb_pretty` does, at `depth`.
pub(super) fn write_pretty(value: &JsonValue, depth: usize, out: &mut String) {
    let (open, close, length) = match value {
        JsonValue::Array(items) => ('[', ']', items.len()),
        JsonValue::Object(pairs) => ('{', '}', pairs.len()),
        scalar => return write_value(scalar, out),
    };
    out.push(open);
    for position in 0..length {
        out.push_str(if position > 0 { ",\n" } else { "\n" });
        indent(depth + 1, out);
        match value {
            JsonValue::Object(pairs) => {
                write_string(&pairs[position].0, out);
                out.push_str(": ");
                write_pretty(&pairs[position].1, depth + 1, out);
            }
            JsonValue::Array(items) => write_pretty(&items[position], depth + 1, out),
            _ => {}
        }
    }
    out.push('\n');
    indent(depth, out);
    out.push(close);
}

fn indent(depth: usize, out: &mut String) {
    out.extend(std::iter::repeat_n("    ", depth));
}

/// Writes the key of a document. A scalar is like an array of itself, and comes before arrays of one element.
pub(super) fn write_sort_key(document: &JsonValue, key: &mut Vec<u8>) {
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
