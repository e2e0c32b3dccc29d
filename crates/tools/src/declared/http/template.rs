//! Templates with `{name}`.
//!
//! Errors contain the position but not the text, which may be a secret.

use std::fmt;
use std::ops::Range;

/// Characters of an argument's name at most.
const NAME_CHARACTERS_MAX: usize = 128;

/// Doubles the braces of `text`, so that a template renders it unchanged. Used for values from outside the
/// configuration, such as `${VARIABLE}`.
pub fn escape_braces(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}")
}

/// A text with arguments.
#[derive(Clone, Default)]
pub(super) struct Template {
    pieces: Vec<BracePart>,
}

#[derive(Clone)]
enum BracePart {
    Text(String),
    Argument(String),
}

/// Why a text is not a template, and at which character, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TemplateError {
    kind: TemplateErrorKind,
    at: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TemplateErrorKind {
    Unclosed,
    Unopened,
    InvalidName,
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subject = match self.kind {
            TemplateErrorKind::Unclosed => "the brace is not closed",
            TemplateErrorKind::Unopened => "the closing brace has no opening brace",
            TemplateErrorKind::InvalidName => "the braces contain no valid name",
        };
        write!(f, "{subject} (character {})", self.at)
    }
}

/// The hint for any [`TemplateError`].
pub(super) const TEMPLATE_HINT: &str = "write {name} for an argument, {{ and }} for braces";

impl Template {
    /// Parses `text`.
    pub(super) fn parse(text: &str) -> Result<Self, TemplateError> {
        let characters: Vec<char> = text.chars().collect();
        let (mut pieces, mut literal, mut at) = (Vec::new(), String::new(), 0);
        while let Some(&character) = characters.get(at) {
            let next = characters.get(at + 1).copied();
            match character {
                '{' | '}' if next == Some(character) => {
                    literal.push(character);
                    at += 2;
                }
                '{' => {
                    let Range { start, end } = name_range(&characters, at)?;
                    if !literal.is_empty() {
                        pieces.push(BracePart::Text(std::mem::take(&mut literal)));
                    }
                    pieces.push(BracePart::Argument(characters[start..end].iter().collect()));
                    at = end + 1;
                }
                '}' => return Err(TemplateError { kind: TemplateErrorKind::Unopened, at: at + 1 }),
                _ => {
                    literal.push(character);
                    at += 1;
                }
            }
        }
        if !literal.is_empty() {
            pieces.push(BracePart::Text(literal));
        }
        Ok(Self { pieces })
    }

    /// A template without arguments.
    pub(super) fn literal(text: impl Into<String>) -> Self {
        Self { pieces: vec![BracePart::Text(text.into())] }
    }

    /// The names of the arguments, in order.
    pub(super) fn arguments(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            BracePart::Argument(name) => Some(name.as_str()),
            BracePart::Text(_) => None,
        })
    }

    /// The fixed texts, in order.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            BracePart::Text(text) => Some(text.as_str()),
            BracePart::Argument(_) => None,
        })
    }

    /// The argument, if the template consists of one.
    pub(super) fn only_argument(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [BracePart::Argument(name)] => Some(name),
            _ => None,
        }
    }

    /// The text, if it has no argument.
    pub(super) fn fixed_text(&self) -> Option<String> {
        self.arguments().next().is_none().then(|| self.texts().collect())
    }

    /// The template with each fixed text changed.
    pub(super) fn map_texts(self, change: impl Fn(&str) -> String) -> Self {
        let pieces = self.pieces.into_iter().map(|piece| match piece {
            BracePart::Text(text) => BracePart::Text(change(&text)),
            argument @ BracePart::Argument(_) => argument,
        });
        Self { pieces: pieces.collect() }
    }

    /// Fills in the values; `None` if one of them is missing.
    pub(super) fn render<E>(
        &self,
        mut value: impl FnMut(&str) -> Result<Option<String>, E>,
    ) -> Result<Option<String>, E> {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                BracePart::Text(fixed) => text.push_str(fixed),
                BracePart::Argument(name) => match value(name)? {
                    Some(value) => text.push_str(&value),
                    None => return Ok(None),
                },
            }
        }
        Ok(Some(text))
    }
}

impl fmt::Debug for Template {
    /// Omits the fixed texts, which may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Template")?;
        f.debug_list().entries(self.arguments()).finish()
    }
}

/// The position of the argument's name after the brace at `opening`.
fn name_range(characters: &[char], opening: usize) -> Result<Range<usize>, TemplateError> {
    let fault = |sort| TemplateError { kind: sort, at: opening + 1 };
    let start = opening + 1;
    let length = characters[start..].iter().position(|character| *character == '}');
    let name = start..start + length.ok_or(fault(TemplateErrorKind::Unclosed))?;
    let is_name = |character: &char| character.is_alphanumeric() || matches!(character, '_' | '-' | '.');
    if name.is_empty() || name.len() > NAME_CHARACTERS_MAX || !characters[name.clone()].iter().all(is_name) {
        return Err(fault(TemplateErrorKind::InvalidName));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rendered(text: &str) -> Option<String> {
        let value = |name: &str| Ok::<_, ()>((name != "none").then(|| format!("<{name}>")));
        Template::parse(text).unwrap().render(value).unwrap()
    }

    #[test]
    fn renders_arguments_and_escaped_braces() {
        assert_eq!(rendered("a {b} c").as_deref(), Some("a <b> c"));
        assert_eq!(rendered("{{{b}}} {{}}").as_deref(), Some("{<b>} {}"));
        assert_eq!(rendered("").as_deref(), Some(""));
        assert_eq!(rendered("x{none}"), None);
        assert_eq!(Template::parse("{b}").unwrap().only_argument(), Some("b"));
        assert_eq!(Template::parse(" {b}").unwrap().only_argument(), None);
    }

    #[test]
    fn errors_name_the_position_only() {
        let fault = |text| Template::parse(text).unwrap_err().to_string();
        assert_eq!(fault("ab{c"), "the brace is not closed (character 3)");
        assert_eq!(fault("ab}"), "the closing brace has no opening brace (character 3)");
        assert_eq!(fault("{}"), "the braces contain no valid name (character 1)");
        assert_eq!(fault("{a b}"), "the braces contain no valid name (character 1)");
        assert_eq!(fault("{a{b}"), "the braces contain no valid name (character 1)");
        assert!(!format!("{:?}", Template::parse("secret {a}").unwrap()).contains("secret"));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in ".*") {
            let _ = Template::parse(&text);
        }

        #[test]
        fn escaped_braces_round_trip(text in ".*") {
            prop_assert_eq!(Template::parse(&escape_braces(&text)).unwrap().fixed_text(), Some(text));
        }
    }
}
