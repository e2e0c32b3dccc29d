//! Templates with `{{name}}`, as in declared prompts.

use std::collections::BTreeSet;

use tidegate_core::{Error, ErrorKind};

/// A template with `{{name}}`. Single braces are literal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextTemplate(Vec<TextTemplatePart>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum TextTemplatePart {
    Text(String),
    Name(String),
}

impl TextTemplate {
    /// Parses a template.
    ///
    /// # Errors
    /// `InvalidArguments` for `{{` without `}}`, or an invalid name between them.
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

    /// The distinct names in the template.
    pub fn names(&self) -> BTreeSet<&str> {
        let names = self.0.iter().filter_map(|piece| match piece {
            TextTemplatePart::Name(name) => Some(name.as_str()),
            TextTemplatePart::Text(_) => None,
        });
        names.collect()
    }

    /// Whether the template is a single name.
    pub fn is_one_name(&self) -> bool {
        let is_there = |piece: &&TextTemplatePart| !matches!(piece, TextTemplatePart::Text(text) if text.is_empty());
        let mut pieces = self.0.iter().filter(is_there);
        matches!((pieces.next(), pieces.next()), (Some(TextTemplatePart::Name(_)), None))
    }

    /// Replaces each name by `value`. Values are not parsed as templates.
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
