//! Escapes of text: for JSON strings, and for lines that people read.

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

    proptest! {
        #[test]
        fn escapes_are_those_of_json(text in any::<String>()) {
            let mut out = String::new();
            write_json_string(&text, &mut out);
            prop_assert_eq!(serde_json::from_str::<String>(&out).unwrap(), text);
        }
    }
}
