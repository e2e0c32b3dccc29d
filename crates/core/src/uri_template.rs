//! URI templates of resources: literal text and `{variable}`s (RFC 6570, level 1).

use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use thiserror::Error;

/// The values of a resource template's variables, by name.
pub type TemplateVariables = BTreeMap<String, String>;

/// Why a URI template is invalid.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum UriTemplateError {
    /// An unpaired brace, or a variable without a valid name.
    #[error("invalid URI template {0:?}: expected text and {{variable}}s")]
    Malformed(String),
    /// Two adjacent variables, which cannot be separated.
    #[error("invalid URI template {0:?}: put text between two variables")]
    Ambiguous(String),
}

/// A URI with `{variable}`s. A variable stands for one or more characters except `/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UriTemplate {
    text: String,
    parts: Vec<UriTemplatePart>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum UriTemplatePart {
    Literal(String),
    Variable(String),
}

impl UriTemplate {
    /// Parses a template.
    ///
    /// # Errors
    /// If it is malformed or ambiguous.
    pub fn parse(text: impl Into<String>) -> Result<Self, UriTemplateError> {
        let text = text.into();
        let malformed = || UriTemplateError::Malformed(text.clone());
        let mut parts = Vec::new();
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let (literal, after) = rest.split_once('{').unwrap_or((rest, ""));
            if literal.contains('}') {
                return Err(malformed());
            }
            if !literal.is_empty() {
                parts.push(UriTemplatePart::Literal(literal.to_owned()));
            }
            if literal.len() == rest.len() {
                break;
            }
            let (name, after) = after.split_once('}').ok_or_else(malformed)?;
            if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                return Err(malformed());
            }
            if matches!(parts.last(), Some(UriTemplatePart::Variable(_))) {
                return Err(UriTemplateError::Ambiguous(text));
            }
            parts.push(UriTemplatePart::Variable(name.to_owned()));
            rest = after;
        }
        Ok(Self { text, parts })
    }

    /// The text of the template.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The names of its variables, in order.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            UriTemplatePart::Variable(name) => Some(name.as_str()),
            UriTemplatePart::Literal(_) => None,
        })
    }

    /// The number of literal bytes. If several templates match, the one with the most serves the URI.
    pub fn literal_bytes(&self) -> usize {
        let literal = |part: &UriTemplatePart| if let UriTemplatePart::Literal(text) = part { text.len() } else { 0 };
        self.parts.iter().map(literal).sum()
    }

    /// The percent-decoded values of the variables, if `uri` matches the template.
    pub fn matches(&self, uri: &str) -> Option<TemplateVariables> {
        let mut variables = TemplateVariables::new();
        let mut rest = uri;
        let mut parts = self.parts.as_slice();
        while let [part, following @ ..] = parts {
            match part {
                UriTemplatePart::Literal(text) => rest = rest.strip_prefix(text.as_str())?,
                UriTemplatePart::Variable(name) => {
                    let value = match following {
                        // The last literal ends the URI: the value before it may contain the same text.
                        [UriTemplatePart::Literal(text)] => rest.strip_suffix(text.as_str())?,
                        [UriTemplatePart::Literal(text), ..] => rest.split_once(text.as_str())?.0,
                        [] | [UriTemplatePart::Variable(_), ..] => rest,
                    };
                    if value.is_empty() || value.contains('/') {
                        return None;
                    }
                    variables.insert(name.clone(), percent_decode(value)?);
                    rest = &rest[value.len()..];
                }
            }
            parts = following;
        }
        rest.is_empty().then_some(variables)
    }

    /// The URI with `values` for the variables, percent-encoded, in the template's order.
    pub fn expand(&self, values: &[&str]) -> String {
        let mut values = values.iter();
        self.parts
            .iter()
            .map(|part| match part {
                UriTemplatePart::Literal(text) => text.clone(),
                UriTemplatePart::Variable(_) => values.next().map(|value| percent_encode(value)).unwrap_or_default(),
            })
            .collect()
    }
}

/// The characters that are encoded in one part of a URI: all except unreserved ones.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// `value` as one part of a URI: all characters except unreserved ones become `%XX`.
pub fn percent_encode(value: &str) -> String {
    utf8_percent_encode(value, RESERVED).to_string()
}

/// `None` if a `%` is not followed by two hexadecimal digits, or the value is not UTF-8.
fn percent_decode(value: &str) -> Option<String> {
    let is_escape = |text: &str| text.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2;
    let is_valid = value.split('%').skip(1).all(is_escape);
    percent_decode_str(value).decode_utf8().ok().filter(|_| is_valid).map(Into::into)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn variables_match_within_a_segment() {
        let template = UriTemplate::parse("tidegate://databases/{database}/tables/{table}").unwrap();
        let variables = template.matches("tidegate://databases/shop/tables/a%20%2F%20b").unwrap();
        assert_eq!(variables["database"], "shop");
        assert_eq!(variables["table"], "a / b");
        assert!(template.matches("tidegate://databases/shop/tables/").is_none());
        assert!(template.matches("tidegate://databases/shop/tables/a/b").is_none());
        assert!(template.matches("tidegate://databases/shop/tables/%zz").is_none());
    }

    #[test]
    fn a_value_may_hold_the_text_that_ends_the_uri() {
        let template = UriTemplate::parse("files://{name}.csv").unwrap();
        assert_eq!(template.matches("files://a.csv.csv").unwrap()["name"], "a.csv");
        assert!(template.matches("files://.csv").is_none());
        assert!(template.matches("files://a.csv.gz").is_none());
    }

    #[test]
    fn malformed_templates_are_refused() {
        for text in ["a{b", "a}b", "a{}", "a{b c}", "{a}{b}"] {
            assert!(UriTemplate::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn expanded_uri_matches_with_same_values(a in "\\PC{1,12}", b in "\\PC{1,12}") {
            for text in ["x://{a}/y/{b}/z", "x://{a}/{b}.csv"] {
                let template = UriTemplate::parse(text).unwrap();
                let variables = template.matches(&template.expand(&[&a, &b])).unwrap();
                prop_assert_eq!(&variables["a"], &a);
                prop_assert_eq!(&variables["b"], &b);
            }
        }
    }
}
