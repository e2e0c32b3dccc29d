//! The bytes of an entry as text.

use crate::defect::Defects;

/// Gives the text of `bytes`: the bytes themselves if they are UTF-8 without NUL, else a copy in `repaired`, in which NUL
/// bytes are removed and invalid bytes replaced.
pub(crate) fn decode<'a>(bytes: &'a [u8], repaired: &'a mut String, defects: &mut Defects) -> &'a str {
    let has_nul = memchr::memchr(0, bytes).is_some();
    match std::str::from_utf8(bytes) {
        Ok(text) if !has_nul => return text,
        // A line that was cut may end within a character, which is cut too.
        Err(error) if !has_nul && defects.cut_bytes > 0 && error.error_len().is_none() => {
            let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
            return std::str::from_utf8(valid).unwrap_or_default();
        }
        _ => {}
    }
    repaired.clear();
    for chunk in bytes.utf8_chunks() {
        for part in chunk.valid().split('\0') {
            repaired.push_str(part);
        }
        if !chunk.invalid().is_empty() {
            defects.has_invalid_utf8 = true;
            repaired.push(char::REPLACEMENT_CHARACTER);
        }
    }
    defects.nul_bytes = memchr::memchr_iter(0, bytes).count();
    repaired
}
