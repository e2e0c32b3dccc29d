//! logfmt: pairs `key=value` separated by blanks. A key without value is true.

use super::scanner::QuotedText;
use crate::entry::{EntryFields, Misfit, Piece, Slot};

/// Longer words are no keys.
const KEY_BYTES_MAX: usize = 256;

pub(crate) fn parse(line: &str, fields: &mut EntryFields) -> Result<(), Misfit> {
    let bytes = line.as_bytes();
    if !begins_with_pair(bytes) {
        return Err(Misfit::expected("key=value", 0));
    }
    let mut position = 0;
    while position < bytes.len() {
        if bytes.get(position).is_some_and(u8::is_ascii_whitespace) {
            position += 1;
            continue;
        }
        let rest = bytes.get(position..).unwrap_or_default();
        let key_bytes = rest.iter().take_while(|byte| !byte.is_ascii_whitespace() && **byte != b'=').count();
        if key_bytes == 0 {
            return Err(Misfit::expected("a key", position));
        }
        let key = Piece::of_text(position, position + key_bytes);
        position += key_bytes;
        if bytes.get(position) != Some(&b'=') {
            fields.push_member(key, Slot::Boolean(true));
            continue;
        }
        position += 1;
        if bytes.get(position) == Some(&b'"') {
            let quoted = QuotedText::find(line, position + 1);
            let quoted = quoted.ok_or(Misfit::expected("a closing quote", bytes.len()))?;
            position = quoted.end + 1;
            let value = quoted.piece(line, fields);
            fields.push_member(key, Slot::Text(value));
        } else {
            let rest = bytes.get(position..).unwrap_or_default();
            let value_bytes = rest.iter().take_while(|byte| !byte.is_ascii_whitespace()).count();
            let value = Piece::of_text(position, position + value_bytes);
            position += value_bytes;
            // The type of the column decides whether it is a number.
            fields.push_member(key, if value.is_empty() { Slot::Null } else { Slot::Number(value) });
        }
    }
    Ok(())
}

/// Whether a line begins with a key and `=`.
pub(crate) fn begins_with_pair(line: &[u8]) -> bool {
    let is_key = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-' | b'/' | b'@' | b':');
    let key_bytes = line.iter().take(KEY_BYTES_MAX).take_while(|byte| is_key(byte)).count();
    key_bytes > 0 && line.get(key_bytes) == Some(&b'=')
}
