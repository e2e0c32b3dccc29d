//! Texts with `{{name}}` in them, as declared prompts write them.

use std::collections::BTreeSet;

use tidegate_core::{Error, ErrorKind};

/// A text with `{{name}}` in it. Single braces stand for themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextTemplate(Vec<TextTemplatePart>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum TextTemplatePart {
    Text(String),
    Name(String),
}

impl TextTemplate {
    /// Reads a template.
    ///
    /// # Errors
    /// `InvalidArguments` for `{{` without `}}`, or something else than a name between them.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let wrong = |message: String| Err(Error::new(ErrorKind::InvalidArguments, message));
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let Some((name, behind)) = after.split_once("}}") else {
                return wrong(format!("{{{{ has no }}}}, near {:?}", after.chars().take(20).collect::<String>()));
            };
            let name = name.trim();
            if name.is_empty() || !name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
                return wrong(format!("{name:?} between {{{{ and }}}} is not an argument name"));
            }
            pieces.extend([TextTemplatePart::Text(before.to_owned()), TextTemplatePart::Name(name.to_owned())]);
            rest = behind;
        }
        pieces.push(TextTemplatePart::Text(rest.to_owned()));
        Ok(Self(pieces))
    }

    /// The names in it, each once.
    pub fn names(&self) -> BTreeSet<&str> {
        let names = self.0.iter().filter_map(|piece| match piece {
            TextTemplatePart::Name(name) => Some(name.as_str()),
            TextTemplatePart::Text(_) => None,
        });
        names.collect()
    }

    /// Whether it is one name and nothing else.
    pub fn is_one_name(&self) -> bool {
        let is_there = |piece: &&TextTemplatePart| !matches!(piece, TextTemplatePart::Text(text) if text.is_empty());
        let mut pieces = self.0.iter().filter(is_there);
        matches!((pieces.next(), pieces.next()), (Some(TextTemplatePart::Name(_)), None))
    }

    /// The text with each name replaced by what `value` gives; what a value holds is never a template again.
    pub fn fill<'a>(&'a self, value: impl Fn(&'a str) -> String) -> String {
        let filled = self.0.iter().map(|piece| match piece {
            TextTemplatePart::Text(text) => text.clone(),
            TextTemplatePart::Name(name) => value(name),
        });
        filled.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_filled_once() {
        let template = TextTemplate::parse("Dear {{ name }}, {x} {{name}}{{day}}").unwrap();
        assert_eq!(template.names(), BTreeSet::from(["day", "name"]));
        assert_eq!(
            template.fill(|name| format!("<{name}>{{{{day}}}}")),
            "Dear <name>{{day}}, {x} <name>{{day}}<day>{{day}}"
        );
    }

    #[test]
    fn recognises_a_single_name_template() {
        let is_one_name = |text: &str| TextTemplate::parse(text).unwrap().is_one_name();
        assert!(
            is_one_name("{{uri}}") && !is_one_name("x{{uri}}") && !is_one_name("{{a}}{{b}}") && !is_one_name("uri")
        );
    }

    #[test]
    fn rejects_unclosed_and_invalid_names() {
        for text in ["{{name", "{{}}", "{{a b}}", "{{a{{b}}}}"] {
            assert!(TextTemplate::parse(text).is_err(), "{text}");
        }
    }
}
