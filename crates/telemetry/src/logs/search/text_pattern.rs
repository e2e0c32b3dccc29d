//! Text with `*` for any characters, against texts: a search for its literal parts, without allocation for texts of
//! ASCII.
//!
//! Texts that differ in case only have the same folded text, also where folding changes the length, as for `ß` and `SS`.

use memchr::memmem::Finder;
use memchr::{memchr, memchr2};

/// Text in which `*` stands for any characters, also for none: the literal parts around each `*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextPattern {
    parts: Vec<String>,
}

impl TextPattern {
    /// Text without any `*`.
    pub fn literal(text: impl Into<String>) -> Self {
        Self { parts: vec![text.into()] }
    }

    /// The literal parts in their order. Between two of them there may be any characters.
    pub fn parts(&self) -> &[String] {
        &self.parts
    }

    /// The text if it contains no `*`.
    pub fn as_literal(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [text] => Some(text),
            _ => None,
        }
    }

    /// The pattern that matches the texts in any case: a text matches if it does after folding. A text of ASCII matches
    /// if its letters in lower case do, and never if the folded pattern is not ASCII.
    pub fn to_folded(&self) -> Self {
        Self { parts: self.parts.iter().map(|part| fold(part)).collect() }
    }

    /// Whether all characters are ASCII.
    pub fn is_ascii(&self) -> bool {
        self.parts.iter().all(|part| part.is_ascii())
    }

    /// The operand of SQL's `LIKE` for the whole text, with `\` before literal `%`, `_` and `\`.
    pub fn to_like(&self) -> String {
        let mut like = String::new();
        for (index, part) in self.parts.iter().enumerate() {
            if index > 0 {
                like.push('%');
            }
            for character in part.chars() {
                if matches!(character, '%' | '_' | '\\') {
                    like.push('\\');
                }
                like.push(character);
            }
        }
        like
    }

    /// An empty pattern, to which `push` and `push_wildcard` add.
    pub(super) fn new() -> Self {
        Self { parts: vec![String::new()] }
    }

    pub(super) fn push(&mut self, character: char) {
        if let Some(part) = self.parts.last_mut() {
            part.push(character);
        }
    }

    /// Adds a `*`; several in a row are one.
    pub(super) fn push_wildcard(&mut self) {
        if self.parts.len() == 1 || self.parts.last().is_some_and(|part| !part.is_empty()) {
            self.parts.push(String::new());
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parts.len() == 1 && self.parts.iter().all(String::is_empty)
    }
}

/// A compiled pattern.
#[derive(Debug)]
pub(super) struct TextMatcher {
    parts: Vec<LiteralPart>,
    /// Whether the pattern is that of the whole text, and not of a part of it.
    is_whole_text: bool,
    is_case_sensitive: bool,
    is_ascii: bool,
}

/// A literal part of a pattern; in lower case where case is ignored.
#[derive(Debug)]
pub(super) struct LiteralPart {
    bytes: Vec<u8>,
    finder: Finder<'static>,
    /// The index of the byte that is rarest in logs, where a search in any case begins.
    rare_index: usize,
    rare_byte: u8,
}

/// How the bytes of a text are compared with a part.
#[derive(Clone, Copy)]
pub(super) enum ByteComparison {
    Exact,
    IgnoreAsciiCase,
}

impl TextMatcher {
    pub(super) fn new(pattern: &TextPattern, is_whole_text: bool, is_case_sensitive: bool) -> Self {
        let folded = pattern.parts().iter().map(|part| if is_case_sensitive { part.clone() } else { fold(part) });
        let mut parts: Vec<String> = folded.collect();
        if !is_whole_text {
            // Within a text, a `*` at either end allows what is allowed anyway.
            parts.retain(|part| !part.is_empty());
        }
        let is_ascii = parts.iter().all(|part| part.is_ascii());
        let parts = parts.iter().map(|part| LiteralPart::new(part.as_bytes())).collect();
        Self { parts, is_whole_text, is_case_sensitive, is_ascii }
    }

    /// Whether `text` matches. `buffer` keeps its memory from one call to the next.
    pub(super) fn matches(&self, text: &str, buffer: &mut String) -> bool {
        if self.is_case_sensitive {
            return self.matches_bytes(text.as_bytes(), ByteComparison::Exact);
        }
        if text.is_ascii() {
            return self.is_ascii && self.matches_bytes(text.as_bytes(), ByteComparison::IgnoreAsciiCase);
        }
        buffer.clear();
        fold_into(text, buffer);
        self.matches_bytes(buffer.as_bytes(), ByteComparison::Exact)
    }

    /// How `bytes`, which are the texts of many rows, can be searched as a whole. `None` if each text must be folded.
    pub(super) fn bulk_comparison(&self, bytes: &[u8]) -> Option<ByteComparison> {
        if self.is_whole_text {
            return None;
        }
        match self.is_case_sensitive {
            true => Some(ByteComparison::Exact),
            false => (self.is_ascii && bytes.is_ascii()).then_some(ByteComparison::IgnoreAsciiCase),
        }
    }

    /// The parts of a pattern that may be anywhere in a text.
    pub(super) fn parts(&self) -> &[LiteralPart] {
        &self.parts
    }

    fn matches_bytes(&self, bytes: &[u8], comparison: ByteComparison) -> bool {
        if !self.is_whole_text {
            return find_all(&self.parts, bytes, comparison);
        }
        let [first, middle @ ..] = self.parts.as_slice() else { return bytes.is_empty() };
        let [middle @ .., last] = middle else {
            return bytes.len() == first.bytes.len() && first.is_at_start(bytes, comparison);
        };
        if bytes.len() < first.bytes.len() + last.bytes.len() || !first.is_at_start(bytes, comparison) {
            return false;
        }
        let (rest, end) = bytes.split_at(bytes.len() - last.bytes.len());
        let rest = rest.get(first.bytes.len()..).unwrap_or_default();
        last.is_at_start(end, comparison) && find_all(middle, rest, comparison)
    }
}

/// Whether `bytes` contain the parts one after the other.
pub(super) fn find_all(parts: &[LiteralPart], bytes: &[u8], comparison: ByteComparison) -> bool {
    let mut rest = bytes;
    parts.iter().all(|part| match part.find(rest, comparison) {
        Some(start) => {
            rest = rest.get(start + part.bytes.len()..).unwrap_or_default();
            true
        }
        None => false,
    })
}

impl LiteralPart {
    fn new(bytes: &[u8]) -> Self {
        let rare = bytes.iter().enumerate().min_by_key(|(_, byte)| frequency(**byte));
        let (rare_index, rare_byte) = rare.map_or((0, 0), |(index, byte)| (index, *byte));
        Self { bytes: bytes.to_vec(), finder: Finder::new(bytes).into_owned(), rare_index, rare_byte }
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    fn is_at_start(&self, bytes: &[u8], comparison: ByteComparison) -> bool {
        let start = bytes.get(..self.bytes.len());
        start.is_some_and(|start| match comparison {
            ByteComparison::Exact => start == self.bytes,
            ByteComparison::IgnoreAsciiCase => start.eq_ignore_ascii_case(&self.bytes),
        })
    }

    /// The index of the first occurrence in `bytes`.
    pub(super) fn find(&self, bytes: &[u8], comparison: ByteComparison) -> Option<usize> {
        if matches!(comparison, ByteComparison::Exact) {
            return self.finder.find(bytes);
        }
        if self.bytes.is_empty() {
            return Some(0);
        }
        let (lower, upper) = (self.rare_byte, self.rare_byte.to_ascii_uppercase());
        let mut from = self.rare_index;
        loop {
            let rest = bytes.get(from..)?;
            let found = if lower == upper { memchr(lower, rest) } else { memchr2(lower, upper, rest) };
            let start = from + found? - self.rare_index;
            if self.is_at_start(bytes.get(start..)?, comparison) {
                return Some(start);
            }
            from = start + self.rare_index + 1;
        }
    }
}

/// How frequent a byte of lower case is in logs, roughly: a search that begins at a rare byte skips more.
fn frequency(byte: u8) -> u8 {
    const LETTERS_FROM_FREQUENT: &[u8] = b"etaoinsrhldcumfpgwybvkxjqz";
    match byte {
        b' ' => 255,
        b'0'..=b'9' => 150,
        b'.' | b':' | b'/' | b'-' | b'"' | b'=' | b'_' => 140,
        byte => match LETTERS_FROM_FREQUENT.iter().position(|letter| *letter == byte) {
            // There are 26 letters.
            Some(rank) => 200 - (rank as u8) * 6,
            None => 20,
        },
    }
}

/// Appends the folded `text` to `out`.
fn fold_into(text: &str, out: &mut String) {
    for character in text.chars() {
        match character {
            character if character.is_ascii() => out.push(character.to_ascii_lowercase()),
            // Dotless i is a letter of its own, although its upper case is that of i.
            'ı' => out.push(character),
            // The upper case first: it makes one of the several lower forms of a letter, such as σ and ς.
            character => out.extend(character.to_uppercase().flat_map(char::to_lowercase)),
        }
    }
}

/// The folded `text`.
pub(super) fn fold(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    fold_into(text, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn like_escapes_its_own_signs() {
        let mut pattern = TextPattern::new();
        "50%".chars().for_each(|character| pattern.push(character));
        pattern.push_wildcard();
        pattern.push_wildcard();
        pattern.push('_');
        assert_eq!(pattern.to_like(), "50\\%%\\_");
        assert_eq!(pattern.parts(), ["50%", "_"]);
    }

    #[test]
    fn cases_of_a_letter_fold_to_the_same_text() {
        for (one, other) in [("Straße", "STRASSE"), ("ΣΊΣΥΦΟΣ", "σίσυφος"), ("\u{212a}", "k"), ("ſ", "S"), ("ﬁ", "FI")]
        {
            assert_eq!(fold(one), fold(other), "{one} {other}");
        }
        assert_eq!(fold("É"), "é");
        assert_ne!(fold("ı"), fold("i"));
    }

    proptest! {
        #[test]
        fn folding_ignores_case_and_is_stable(character in any::<char>()) {
            let text = character.to_string();
            prop_assert_eq!(fold(&fold(&text)), fold(&text));
            if character != 'ı' {
                prop_assert_eq!(fold(&text.to_uppercase()), fold(&text));
            }
        }
    }
}
