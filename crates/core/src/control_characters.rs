//! Control characters of text that a terminal displays. A terminal interprets them: data could set its title, clear it,
//! or write to the clipboard.

use std::borrow::Cow;

/// Escapes the control characters of a text that arrives in pieces. Line feeds, tabs, and carriage returns before line
/// feeds stay as they are.
#[derive(Debug, Clone, Default)]
pub struct ControlEscaper {
    /// Whether the last piece ended with a carriage return. What follows it decides whether it ends a line.
    has_pending_return: bool,
}

impl ControlEscaper {
    /// The next piece, where control characters are written as in Rust, such as `\u{1b}`.
    pub fn escape<'a>(&mut self, piece: &'a str) -> Cow<'a, str> {
        if !self.has_pending_return && piece.chars().all(is_harmless) {
            return Cow::Borrowed(piece);
        }
        let mut escaped = String::with_capacity(piece.len() + 16);
        for character in piece.chars() {
            if std::mem::take(&mut self.has_pending_return) {
                escaped.push_str(if character == '\n' { "\r" } else { "\\r" });
            }
            match character {
                '\r' => self.has_pending_return = true,
                _ if is_harmless(character) => escaped.push(character),
                _ => escaped.extend(character.escape_default()),
            }
        }
        Cow::Owned(escaped)
    }
}

fn is_harmless(character: char) -> bool {
    !character.is_control() || matches!(character, '\n' | '\t')
}

/// `text` as a terminal may display it: its control characters are escaped as [`ControlEscaper`] does.
pub fn escape_control_characters(text: &str) -> Cow<'_, str> {
    let mut escaper = ControlEscaper::default();
    let mut escaped = escaper.escape(text);
    if escaper.has_pending_return {
        escaped.to_mut().push_str("\\r");
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_become_visible() {
        for (text, expected) in [
            ("two\nlines\tä\r\n", "two\nlines\tä\r\n"),
            ("\u{1b}]0;title\u{7}", "\\u{1b}]0;title\\u{7}"),
            ("\u{1b}[2J\u{9b}2J\u{7f}\0", "\\u{1b}[2J\\u{9b}2J\\u{7f}\\u{0}"),
            ("over\rwritten\r", "over\\rwritten\\r"),
            ("\r\r\n", "\\r\r\n"),
        ] {
            assert_eq!(escape_control_characters(text), expected);
        }
        assert!(matches!(escape_control_characters("plain\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn pieces_are_escaped_as_the_whole() {
        let text = "a\r\nb\rc\u{9b}\u{1b}[2J\r\r\nä";
        for (cut, _) in text.char_indices() {
            let mut escaper = ControlEscaper::default();
            let pieces = [&text[..cut], "", &text[cut..]];
            let escaped: String = pieces.into_iter().map(|piece| escaper.escape(piece).into_owned()).collect();
            assert_eq!(escaped, escape_control_characters(text), "{cut}");
        }
    }
}
