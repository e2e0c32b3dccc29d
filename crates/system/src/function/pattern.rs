//! Simple patterns: `*` for any characters, `|` between alternatives.

/// A pattern for the operators `match` and `not match`. The whole text must match, with upper and lower case distinguished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SimplePattern {
    alternatives: Vec<String>,
}

impl SimplePattern {
    /// Parses a pattern. Blanks around alternatives do not count, and empty alternatives are left out.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let alternatives = text.split('|').map(str::trim).filter(|part| !part.is_empty());
        let alternatives: Vec<String> = alternatives.map(str::to_owned).collect();
        (!alternatives.is_empty()).then_some(Self { alternatives })
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        self.alternatives.iter().any(|pattern| matches_one(pattern, text))
    }
}

/// The parts between stars are found from left to right, the first possible place each, which leaves the most for the
/// rest. The last part must be at the end.
fn matches_one(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in middle.split('*') {
        let Some((_, after)) = text.split_once(part) else { return false };
        text = after;
    }
    text.ends_with(last)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        SimplePattern::parse(pattern).is_some_and(|pattern| pattern.matches(text))
    }

    #[test]
    fn stars_and_alternatives() {
        assert!(matches("postgres", "postgres") && !matches("postgres", "postgresql"));
        assert!(matches("post*", "postgresql") && matches("*sql", "postgresql") && matches("*gre*", "postgresql"));
        assert!(matches("nginx | post*", "postgres") && !matches("nginx|apache", "postgres"));
        assert!(matches("a*b*b", "abb") && !matches("ab*ba", "aba") && matches("*", "") && matches("**", "x"));
        assert!(!matches("Post*", "postgres") && !matches("", "") && !matches(" | ", "x"));
    }

    /// All ways to divide the text.
    fn brute_force(pattern: &[u8], text: &[u8]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some((b'*', rest)) => (0..=text.len()).any(|skipped| brute_force(rest, &text[skipped..])),
            Some((first, rest)) => text.first() == Some(first) && brute_force(rest, &text[1..]),
        }
    }

    proptest! {
        #[test]
        fn agrees_with_all_ways_to_divide_the_text(pattern in "[ab*]{1,8}", text in "[ab]{0,10}") {
            prop_assert_eq!(matches(&pattern, &text), brute_force(pattern.as_bytes(), text.as_bytes()));
        }
    }
}
