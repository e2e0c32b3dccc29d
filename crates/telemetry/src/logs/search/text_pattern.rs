//! Text with `*` for any characters.

use super::case_folding::fold;

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

#[cfg(test)]
mod tests {
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
}
