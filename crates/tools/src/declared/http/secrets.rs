//! Removes secrets from texts for callers. APIs repeat parts of requests in errors, and some in successful responses.

use std::borrow::Cow;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Url;
use reqwest::header::HeaderName;
use serde_json::Value;

use super::templates::VALUE_ENCODE_SET;
use crate::declared::template::TextTemplate;

/// Bytes of a secret at least; shorter words would match everywhere.
const SECRET_BYTES_MIN: usize = 6;
const PLAIN_HEADERS: [&str; 4] = ["accept", "accept-language", "content-type", "user-agent"];
const CREDENTIAL_HEADER_PARTS: [&str; 5] = ["auth", "cookie", "key", "secret", "token"];
const MASK: &str = "***";

/// The secrets of one tool, in all encodings, the longest first.
#[derive(Clone, Default)]
pub(super) struct Secrets {
    /// Secrets in error texts. They include words of other headers, because no data can be lost there.
    in_errors: Vec<String>,
    /// Secrets in successful responses.
    in_answers: Vec<String>,
}

impl Secrets {
    /// The secrets in `headers`, and the `values` from outside the configuration. Parts of `origin` are not secret.
    pub(super) fn new(headers: &[(HeaderName, TextTemplate)], values: &[String], origin: &Url) -> Self {
        let header_words = |is_selected: &dyn Fn(&str) -> bool| -> Vec<String> {
            let expected = headers.iter().filter(|(name, _)| is_selected(name.as_str()));
            let texts = expected.flat_map(|(_, template)| template.texts());
            texts
                .flat_map(|text| std::iter::once(text.trim()).chain(text.split_whitespace()))
                .map(str::to_owned)
                .collect()
        };
        let values = values.iter().filter(|value| !origin.as_str().contains(value.as_str()));
        let values: Vec<String> = values.cloned().collect();
        let credentials = header_words(&|name| CREDENTIAL_HEADER_PARTS.iter().any(|part| name.contains(part)));
        let all = header_words(&|name| !PLAIN_HEADERS.contains(&name));
        Self {
            in_errors: encoded_forms([all.as_slice(), &values].concat()),
            in_answers: encoded_forms([credentials.as_slice(), &values].concat()),
        }
    }

    pub(super) fn redact_error(&self, text: &str) -> String {
        mask_secrets(text, &self.in_errors).into_owned()
    }

    pub(super) fn redact_text(&self, text: String) -> String {
        match mask_secrets(&text, &self.in_answers) {
            Cow::Owned(masked) => masked,
            Cow::Borrowed(_) => text,
        }
    }

    /// Removes secrets from a JSON response, including its member names.
    pub(super) fn redact_json(&self, value: &mut Value) {
        if self.in_answers.is_empty() {
            return;
        }
        match value {
            Value::String(text) => {
                if let Cow::Owned(masked) = mask_secrets(text, &self.in_answers) {
                    *text = masked;
                }
            }
            Value::Number(number) => {
                if self.in_answers.contains(&number.to_string()) {
                    *value = Value::from(MASK);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_json(item)),
            Value::Object(members) => {
                members.values_mut().for_each(|member| self.redact_json(member));
                if members.keys().any(|name| matches!(mask_secrets(name, &self.in_answers), Cow::Owned(_))) {
                    let named = std::mem::take(members).into_iter();
                    *members = named.map(|(name, member)| (self.redact_text(name), member)).collect();
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }
}

fn mask_secrets<'a>(text: &'a str, secrets: &[String]) -> Cow<'a, str> {
    secrets.iter().fold(Cow::Borrowed(text), |text, secret| {
        if text.contains(secret.as_str()) { Cow::Owned(text.replace(secret.as_str(), MASK)) } else { text }
    })
}

/// Each secret as plain text, percent-encoded and as JSON, without short ones, the longest first.
fn encoded_forms(secrets: Vec<String>) -> Vec<String> {
    let mut forms: Vec<String> = Vec::new();
    for secret in secrets {
        if secret.len() < SECRET_BYTES_MIN || secret.eq_ignore_ascii_case("bearer") {
            continue;
        }
        let encoded = utf8_percent_encode(&secret, VALUE_ENCODE_SET).to_string();
        let all_encoded = utf8_percent_encode(&secret, NON_ALPHANUMERIC).to_string();
        let of_form = encoded.replace("%20", "+");
        let json = Value::from(secret.as_str()).to_string();
        let json = json.trim_start_matches('"').strip_suffix('"').unwrap_or(&json).to_owned();
        let lowered = [&encoded, &all_encoded].map(|text| lower_hexadecimal(text));
        forms.extend(lowered);
        forms.extend([secret, encoded, all_encoded, of_form, json]);
    }
    forms.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
    forms.dedup();
    forms
}

/// The text with lower-case digits in percent-encoding (`%2f` instead of `%2F`).
fn lower_hexadecimal(encoded: &str) -> String {
    let mut lowered = String::with_capacity(encoded.len());
    for (index, part) in encoded.split('%').enumerate() {
        if index == 0 {
            lowered.push_str(part);
            continue;
        }
        let (digits, rest) = part.split_at(part.len().min(2));
        lowered.push('%');
        lowered.push_str(&digits.to_ascii_lowercase());
        lowered.push_str(rest);
    }
    lowered
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn secrets() -> Secrets {
        let headers = [("x-api-key", "k3y-of-mine"), ("x-client", "tidegate")];
        let headers = headers.map(|(name, text)| (HeaderName::from_static(name), TextTemplate::literal(text)));
        let values = ["p/w\u{fc} \"x\"", "123456", "short", "api.example.com"].map(str::to_owned);
        Secrets::new(&headers, &values, &Url::parse("https://api.example.com/").unwrap())
    }

    #[test]
    fn redacts_every_encoding() {
        for sent in [
            "p/w\u{fc} \"x\"",
            "p%2Fw%C3%BC%20%22x%22",
            "p%2fw%c3%bc%20%22x%22",
            "p%2Fw%C3%BC+%22x%22",
            "p/w\u{fc} \\\"x\\\"",
        ] {
            assert_eq!(secrets().redact_text(format!("a {sent} b")), "a *** b", "{sent}");
        }
        let kept = "short tidegate api.example.com";
        assert_eq!(secrets().redact_text(kept.to_owned()), kept);
        assert_eq!(secrets().redact_error("tidegate k3y-of-mine"), "*** ***");
    }

    #[test]
    fn redacted_json_stays_valid() {
        let mut value = json!({"k3y-of-mine": [123456, 1234567, "is k3y-of-mine"], "n": null});
        secrets().redact_json(&mut value);
        assert_eq!(value, json!({"***": ["***", 1234567, "is ***"], "n": null}));
    }
}
