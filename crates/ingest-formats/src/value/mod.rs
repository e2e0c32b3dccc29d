//! From the text of a value to the value, exactly or not at all.

pub(crate) mod binary;
pub(crate) mod number;
pub(crate) mod time;

/// The longest part of a value that a message quotes, in bytes.
pub(crate) const QUOTED_BYTES_MAX: usize = 60;

/// The value as it is quoted in a message: cut if it is long.
pub(crate) fn quoted(text: &str) -> String {
    let cut = cut_at(text, QUOTED_BYTES_MAX);
    if cut.len() < text.len() { format!("{cut:?}…") } else { format!("{cut:?}") }
}

/// The beginning of `text` with at most `bytes_max` bytes, which ends at the end of a character.
pub(crate) fn cut_at(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_cut_between_characters() {
        assert_eq!(quoted("a\"b"), r#""a\"b""#);
        assert_eq!(quoted(&"ä".repeat(40)), format!("\"{}\"…", "ä".repeat(30)));
        assert_eq!(cut_at("äb", 1), "");
    }
}
