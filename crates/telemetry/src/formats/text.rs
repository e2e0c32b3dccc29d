//! Values as text: JSON, identifiers and times.

use std::fmt::Write;

use chrono::{DateTime, SecondsFormat};

use crate::formats::error::RecordError;

/// Appends a string of JSON.
pub(crate) fn write_string(output: &mut String, text: &str) {
    output.push('"');
    let mut start = 0;
    for (index, byte) in text.bytes().enumerate() {
        if byte >= b' ' && byte != b'"' && byte != b'\\' {
            continue;
        }
        // The byte is ASCII, so that the positions before and after it are between characters.
        output.push_str(&text[start..index]);
        start = index + 1;
        match byte {
            b'"' => output.push_str("\\\""),
            b'\\' => output.push_str("\\\\"),
            b'\n' => output.push_str("\\n"),
            b'\r' => output.push_str("\\r"),
            b'\t' => output.push_str("\\t"),
            // Writing to a text does not fail.
            _ => _ = write!(output, "\\u{byte:04x}"),
        }
    }
    output.push_str(&text[start..]);
    output.push('"');
}

/// Appends a float as JSON: the shortest digits that are the same float, or `"NaN"`, `"Infinity"`, `"-Infinity"`.
pub(crate) fn write_double(output: &mut String, value: f64) {
    match serde_json::Number::from_f64(value) {
        Some(number) => _ = write!(output, "{number}"),
        None if value.is_nan() => output.push_str("\"NaN\""),
        None if value > 0.0 => output.push_str("\"Infinity\""),
        None => output.push_str("\"-Infinity\""),
    }
}

/// An identifier of `length` bytes as hexadecimal digits. Nothing if it is missing or consists of zeros, which the
/// standard declares invalid.
pub(crate) fn identifier(name: &str, bytes: &[u8], length: usize) -> Result<Option<String>, RecordError> {
    if bytes.iter().all(|byte| *byte == 0) && (bytes.is_empty() || bytes.len() == length) {
        return Ok(None);
    }
    if bytes.len() != length {
        return RecordError::rejected(format!("{name} has {} bytes; {length} are right", bytes.len()));
    }
    Ok(Some(hex::encode(bytes)))
}

/// Nanoseconds since 1970. Nothing if they are zero, which the standard uses for an unknown time.
pub(crate) fn nanoseconds(name: &str, time: u64) -> Result<Option<i64>, RecordError> {
    match i64::try_from(time) {
        Ok(0) => Ok(None),
        Ok(time) => Ok(Some(time)),
        Err(_) => RecordError::rejected(format!("{name} {time} is after the year 2262")),
    }
}

/// A number without sign as one with sign.
pub(crate) fn count(name: &str, value: u64) -> Result<i64, RecordError> {
    let most = i64::MAX;
    i64::try_from(value).or_else(|_| RecordError::rejected(format!("{name} is {value}; at most {most} are accepted")))
}

/// A time as text with all its digits.
pub(crate) fn time_text(nanoseconds: i64) -> String {
    DateTime::from_timestamp_nanos(nanoseconds).to_rfc3339_opts(SecondsFormat::Nanos, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_json() {
        let every: String = (0..0x180).filter_map(char::from_u32).chain(['😀', '\u{2028}']).collect();
        let mut output = String::new();
        write_string(&mut output, &every);
        assert_eq!(serde_json::from_str::<String>(&output).expect("it is JSON"), every);
    }

    #[test]
    fn floats_are_exact() {
        for value in [0.1, -0.0, 1.0, f64::MIN_POSITIVE, f64::MAX, 9_007_199_254_740_993.0] {
            let mut output = String::new();
            write_double(&mut output, value);
            assert_eq!(output.parse::<f64>().map(f64::to_bits), Ok(value.to_bits()), "{output}");
            assert!(output.contains(['.', 'e']), "{output}");
        }
    }

    #[test]
    fn identifiers_and_times() {
        assert_eq!(identifier("span_id", &[0; 8], 8).expect("it is accepted"), None);
        assert_eq!(identifier("span_id", &[0xab; 2], 2).expect("it is accepted").as_deref(), Some("abab"));
        assert!(identifier("span_id", &[0; 7], 8).is_err());
        assert!(identifier("span_id", &[1; 9], 8).is_err());
        assert!(nanoseconds("time", u64::MAX).is_err());
        assert_eq!(nanoseconds("time", 0).expect("it is accepted"), None);
        assert_eq!(time_text(1_544_712_660_300_000_001), "2018-12-13T14:51:00.300000001Z");
    }
}
