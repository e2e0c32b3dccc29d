//! Positions of a text that a pattern can require.

use super::charset::is_word;

/// A condition on a position of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextPosition {
    TextStart,
    TextEnd,
    LineStart,
    LineEnd,
    WordStart,
    WordEnd,
    WordBoundary,
    NotWordBoundary,
}

impl TextPosition {
    /// Whether the condition holds at the offset `at` of `text`.
    pub(super) fn is_at(self, text: &str, at: usize) -> bool {
        let before = || text[..at].chars().next_back();
        let after = || text[at..].chars().next();
        let is_in_word = || (before().is_some_and(is_word), after().is_some_and(is_word));
        match self {
            Self::TextStart => at == 0,
            Self::TextEnd => at == text.len(),
            Self::LineStart => at == 0 || before() == Some('\n'),
            Self::LineEnd => at == text.len() || after() == Some('\n'),
            Self::WordStart => is_in_word() == (false, true),
            Self::WordEnd => is_in_word() == (true, false),
            Self::WordBoundary => matches!(is_in_word(), (true, false) | (false, true)),
            Self::NotWordBoundary => matches!(is_in_word(), (true, true) | (false, false)),
        }
    }
}
