//! The text forms of `bytea`: hexadecimal digits, and characters with escapes.

use datafusion::common::{Result, exec_datafusion_err, exec_err};

/// Parses a literal of `bytea`: `\x` and hexadecimal digits, or characters with escapes.
pub(crate) fn parse(literal: &str) -> Result<Vec<u8>> {
    if let Some(digits) = literal.strip_prefix("\\x") {
        return from_hex(digits.as_bytes());
    }
    from_escaped(literal.as_bytes())
}

/// Formats a `bytea` as PostgreSQL's output function does: `\x` and hexadecimal digits.
pub(crate) fn format(bytes: &[u8]) -> String {
    format!("\\x{}", hex::encode(bytes))
}

/// Parses hexadecimal digits as PostgreSQL does, with its errors. White space is allowed between pairs of digits.
pub(crate) fn from_hex(digits: &[u8]) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(digits.len() / 2);
    let mut digits = digits.iter().copied();
    let digit = |byte: u8| {
        char::from(byte)
            .to_digit(16)
            .map(|digit| digit as u8)
            .ok_or_else(|| exec_datafusion_err!("invalid hexadecimal digit: \"{}\"", char::from(byte)))
    };
    while let Some(high) = digits.next() {
        if matches!(high, b' ' | b'\n' | b'\t' | b'\r') {
            continue;
        }
        let high = digit(high)?;
        let Some(low) = digits.next() else {
            return exec_err!("invalid hexadecimal data: odd number of digits");
        };
        bytes.push(high << 4 | digit(low)?);
    }
    Ok(bytes)
}

/// Parses the format `escape`.
pub(crate) fn from_escaped(text: &[u8]) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    loop {
        match rest {
            [] => return Ok(bytes),
            [b'\\', b'\\', tail @ ..] => {
                bytes.push(b'\\');
                rest = tail;
            }
            [b'\\', first @ b'0'..=b'3', second @ b'0'..=b'7', third @ b'0'..=b'7', tail @ ..] => {
                bytes.push((first - b'0') << 6 | (second - b'0') << 3 | (third - b'0'));
                rest = tail;
            }
            [b'\\', ..] => return exec_err!("invalid input syntax for type bytea"),
            [byte, tail @ ..] => {
                bytes.push(*byte);
                rest = tail;
            }
        }
    }
}
