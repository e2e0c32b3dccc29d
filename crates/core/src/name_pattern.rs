//! Patterns of names, as toolsets, roles and the discovery tools write them.

/// A name, or a glob: `*` stands for any characters, `?` for one.
///
/// ```
/// use tidegate_core::NamePattern;
///
/// assert!(NamePattern::new("orders_*").matches("orders_of_customer"));
/// assert!(!NamePattern::new("orders").matches("orders_of_customer"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamePattern(String);

impl NamePattern {
    /// Reads a pattern; every text is one.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it can fit more than one name.
    pub fn is_glob(&self) -> bool {
        self.0.contains(['*', '?'])
    }

    /// Whether the whole of `name` fits. Case counts. Takes no longer than pattern times name.
    pub fn matches(&self, name: &str) -> bool {
        if !self.is_glob() {
            return self.0 == name;
        }
        let mut glob = TextCursor::new(&self.0);
        let mut name = TextCursor::new(name);
        // Where the last star stood, and what of the name it has not taken yet.
        let mut last_star: Option<(TextCursor<'_>, TextCursor<'_>)> = None;
        while let Some(letter) = name.peek() {
            match glob.peek() {
                Some('*') => {
                    glob.advance();
                    last_star = Some((glob, name));
                }
                Some(expected) if expected == '?' || expected == letter => {
                    glob.advance();
                    name.advance();
                }
                _ => {
                    let Some((after_star, not_taken)) = &mut last_star else { return false };
                    not_taken.advance();
                    (glob, name) = (*after_star, *not_taken);
                }
            }
        }
        glob.rest.chars().all(|rest| rest == '*')
    }
}

/// A place in a text.
#[derive(Clone, Copy)]
struct TextCursor<'a> {
    rest: &'a str,
}

impl<'a> TextCursor<'a> {
    fn new(rest: &'a str) -> Self {
        Self { rest }
    }

    fn peek(self) -> Option<char> {
        self.rest.chars().next()
    }

    fn advance(&mut self) {
        let mut letters = self.rest.chars();
        letters.next();
        self.rest = letters.as_str();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_whole_names() {
        let fits = |pattern: &str, name: &str| NamePattern::new(pattern).matches(name);
        assert!(fits("*", "") && fits("*", "anything"));
        assert!(fits("orders_*", "orders_") && !fits("orders_*", "orders"));
        assert!(fits("*_of_*", "orders_of_customer"));
        assert!(fits("a*b*c", "a-b-b-c") && !fits("a*b*c", "a-b-b-d"));
        assert!(fits("größe?", "größe1") && !fits("größe?", "größe"));
        assert!(fits("orders", "orders") && !fits("Orders", "orders") && !fits("", "x"));
    }

    #[test]
    fn hostile_pattern_takes_quadratic_time_at_most() {
        let (pattern, name) = ("*a".repeat(1_000), "a".repeat(2_000) + "b");
        assert!(!NamePattern::new(pattern).matches(&name));
    }
}
