//! Templates with `{{name}}`, the syntax of all texts of declared entries.
//!
//! Errors contain the position but not the text, which may be a secret.

use std::collections::BTreeSet;
use std::fmt;

use thiserror::Error;

const NAME_CHARACTERS_MAX: usize = 128;
/// What stands for a brace after `{{`.
const BRACE_LITERALS: [(&str, char); 2] = [("\"{\"}}", '{'), ("\"}\"}}", '}')];

/// Writes each brace of `text` as `{{"{"}}` or `{{"}"}}`, so that a template renders it unchanged. Used for values from
/// outside the configuration, such as `${VARIABLE}`.
pub fn escape_braces(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '{' => escaped.push_str("{{\"{\"}}"),
            '}' => escaped.push_str("{{\"}\"}}"),
            _ => escaped.push(character),
        }
    }
    escaped
}

/// A text with arguments as `{{name}}`. Single braces are literal; `{{"{"}}` is a brace where two would meet.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct TextTemplate {
    parts: Vec<TemplatePart>,
}

#[derive(Clone, PartialEq, Eq)]
enum TemplatePart {
    Text(String),
    Argument(String),
}

/// Why a text is not a template, and at which character, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{message} (character {at})")]
pub struct TemplateError {
    message: &'static str,
    at: usize,
}

impl TemplateError {
    /// What would be right, for any error.
    pub const HINT: &'static str = "write {{name}} for an argument, {{\"{\"}} and {{\"}\"}} for braces";
}

impl TextTemplate {
    /// Parses a template.
    ///
    /// # Errors
    /// For `{{` without `}}`, or an invalid name between them.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let (mut parts, mut literal, mut rest) = (Vec::new(), String::new(), text);
        while let Some((before, after)) = rest.split_once("{{") {
            literal.push_str(before);
            // Of more than two braces in a row, the last two open the argument.
            let inside = after.trim_start_matches('{');
            literal.push_str(&after[..after.len() - inside.len()]);
            let brace = BRACE_LITERALS.iter().find_map(|(form, brace)| Some((inside.strip_prefix(form)?, *brace)));
            if let Some((behind, brace)) = brace {
                literal.push(brace);
                rest = behind;
                continue;
            }
            let at = text[..text.len() - inside.len()].chars().count() - 1;
            let Some((name, behind)) = inside.split_once("}}") else {
                return Err(TemplateError { message: "the braces are not closed", at });
            };
            let name = name.trim();
            if !is_argument_name(name) {
                return Err(TemplateError { message: "the braces contain no valid name", at });
            }
            if !literal.is_empty() {
                parts.push(TemplatePart::Text(std::mem::take(&mut literal)));
            }
            parts.push(TemplatePart::Argument(name.to_owned()));
            rest = behind;
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(TemplatePart::Text(literal));
        }
        Ok(Self { parts })
    }

    pub(super) fn literal(text: impl Into<String>) -> Self {
        Self { parts: vec![TemplatePart::Text(text.into())] }
    }

    /// The distinct names of the arguments.
    pub fn names(&self) -> BTreeSet<&str> {
        self.arguments().collect()
    }

    pub(super) fn arguments(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            TemplatePart::Argument(name) => Some(name.as_str()),
            TemplatePart::Text(_) => None,
        })
    }

    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            TemplatePart::Text(text) => Some(text.as_str()),
            TemplatePart::Argument(_) => None,
        })
    }

    pub(super) fn only_argument(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [TemplatePart::Argument(name)] => Some(name),
            _ => None,
        }
    }

    pub(super) fn fixed_text(&self) -> Option<String> {
        self.arguments().next().is_none().then(|| self.texts().collect())
    }

    pub(super) fn map_texts(self, change: impl Fn(&str) -> String) -> Self {
        let parts = self.parts.into_iter().map(|part| match part {
            TemplatePart::Text(text) => TemplatePart::Text(change(&text)),
            argument @ TemplatePart::Argument(_) => argument,
        });
        Self { parts: parts.collect() }
    }

    /// Replaces each argument by its value; `None` if one of them is missing. Values are not parsed as templates.
    pub(super) fn render<E>(
        &self,
        mut value: impl FnMut(&str) -> Result<Option<String>, E>,
    ) -> Result<Option<String>, E> {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                TemplatePart::Text(fixed) => text.push_str(fixed),
                TemplatePart::Argument(name) => match value(name)? {
                    Some(value) => text.push_str(&value),
                    None => return Ok(None),
                },
            }
        }
        Ok(Some(text))
    }

    /// Replaces each argument by `value`. Values are not parsed as templates.
    pub fn fill(&self, value: impl Fn(&str) -> String) -> String {
        let filled = self.parts.iter().map(|part| match part {
            TemplatePart::Text(text) => text.clone(),
            TemplatePart::Argument(name) => value(name),
        });
        filled.collect()
    }
}

impl fmt::Debug for TextTemplate {
    /// Omits the fixed texts, which may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TextTemplate")?;
        f.debug_list().entries(self.arguments()).finish()
    }
}

fn is_argument_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    (1..=NAME_CHARACTERS_MAX).contains(&name.len()) && name.bytes().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rendered(text: &str) -> Option<String> {
        let value = |name: &str| Ok::<_, ()>((name != "none").then(|| format!("<{name}>{{{{day}}}}")));
        TextTemplate::parse(text).unwrap().render(value).unwrap()
    }

    #[test]
    fn arguments_are_replaced_once_and_single_braces_are_text() {
        assert_eq!(rendered("a {{b}} c").as_deref(), Some("a <b>{{day}} c"));
        assert_eq!(rendered("{a} }} {{ b }}{\"c\": {}}").as_deref(), Some("{a} }} <b>{{day}}{\"c\": {}}"));
        assert_eq!(rendered("").as_deref(), Some(""));
        assert_eq!(rendered("x{{none}}"), None);
        let template = TextTemplate::parse("Dear {{ name }}, {x} {{name}}{{day}}").unwrap();
        assert_eq!(template.names(), BTreeSet::from(["day", "name"]));
        assert_eq!(
            template.fill(|name| format!("<{name}>{{{{day}}}}")),
            "Dear <name>{{day}}, {x} <name>{{day}}<day>{{day}}"
        );
    }

    #[test]
    fn braces_around_an_argument_are_text() {
        assert_eq!(rendered("{{{b}}}").as_deref(), Some("{<b>{{day}}}"));
        assert_eq!(rendered(r#"{{"{"}}b{{"}"}}}"#).as_deref(), Some("{b}}"));
        assert_eq!(rendered(r#"{{{"{"}}b"#).as_deref(), Some("{{b"));
    }

    #[test]
    fn recognises_a_template_of_one_argument() {
        let only_argument = |text| TextTemplate::parse(text).unwrap().only_argument().map(str::to_owned);
        assert_eq!(only_argument("{{uri}}").as_deref(), Some("uri"));
        assert_eq!(["x{{uri}}", " {{uri}}", "{{a}}{{b}}", "uri", "{uri}"].map(only_argument), [const { None }; 5]);
    }

    #[test]
    fn errors_name_the_position_only() {
        let error = |text| TextTemplate::parse(text).unwrap_err().to_string();
        assert_eq!(error("äb{{c"), "the braces are not closed (character 3)");
        assert_eq!(error("ab{{c}"), "the braces are not closed (character 3)");
        for text in ["{{}}", "{{a b}}", "{{a{{b}}}}", "{{a{b}}", "{{\"a\"}}"] {
            assert_eq!(error(text), "the braces contain no valid name (character 1)", "{text}");
        }
        assert!(!format!("{:?}", TextTemplate::parse("secret {{a}}").unwrap()).contains("secret"));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in ".*") {
            let _ = TextTemplate::parse(&text);
        }

        #[test]
        fn escaped_braces_round_trip_next_to_braces(text in "[{}\"a]{0,6}|.*") {
            let template = TextTemplate::parse(&format!("{{{}{{{{b}}}}}}{}", escape_braces(&text), escape_braces(&text)));
            prop_assert_eq!(template.unwrap().fill(|_| "|".to_owned()), format!("{{{text}|}}{text}"));
        }
    }
}
