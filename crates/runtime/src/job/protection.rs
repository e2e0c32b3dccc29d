//! Masks secrets in the answer of a call, and fences its data.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use tidegate_core::{
    AnswerProtection, Content, DataFence, Error, ErrorKind, MissingNodes, RedactedText, Redactor, ResourceBody,
};

/// Protects the answer of one call, as its registry snapshot requires.
#[derive(Debug)]
pub struct AnswerProtector {
    required: AnswerProtection,
    fence: OnceLock<DataFence>,
    secret_count: AtomicU64,
}

impl AnswerProtector {
    pub(super) fn new(required: AnswerProtection) -> Self {
        Self { required, fence: OnceLock::new(), secret_count: AtomicU64::new(0) }
    }

    /// The redactor of the answer.
    pub fn redactor(&self) -> Option<&Arc<dyn Redactor>> {
        self.required.redactor.as_ref()
    }

    /// The number of secrets found in the answer.
    pub fn secret_count(&self) -> u64 {
        self.secret_count.load(Ordering::Relaxed)
    }

    /// `text` with each secret masked.
    ///
    /// # Errors
    /// `Forbidden` with the name of the rule if there is a secret and the redactor rejects secrets.
    pub fn redact_text<'t>(&self, text: impl Into<Cow<'t, str>>) -> Result<Cow<'t, str>, Error> {
        let text = text.into();
        let Some(masked) = self.redact_and_count(&text) else { return Ok(text) };
        if self.redactor().is_some_and(|redactor| redactor.rejects_secrets()) {
            return Err(secret_found_error(&masked.rule));
        }
        Ok(Cow::Owned(masked.text))
    }

    /// `json` with each secret in its strings masked. Invalid JSON is scanned as far as possible.
    ///
    /// # Errors
    /// As [`Self::redact_text`].
    pub fn redact_json(&self, json: String) -> Result<String, Error> {
        // If the whole text has no secrets, and no escapes that could hide one, its strings are not examined one by
        // one.
        if self.redactor().is_none_or(|redactor| !json.contains('\\') && redactor.redact(&json).is_none()) {
            return Ok(json);
        }
        let mut redacted = String::with_capacity(json.len());
        let mut rest = json.as_str();
        while let Some(start) = rest.find('"') {
            redacted.push_str(&rest[..start]);
            let end = start + json_string_end(&rest[start..]);
            let literal = &rest[start..end];
            match serde_json::from_str::<String>(literal).ok().as_deref().map(|text| self.redact_text(text)) {
                Some(Ok(Cow::Owned(masked))) => redacted.push_str(&serde_json::Value::from(masked).to_string()),
                Some(Err(error)) => return Err(error),
                _ => redacted.push_str(literal),
            }
            rest = &rest[end..];
        }
        redacted.push_str(rest);
        Ok(redacted)
    }

    pub(crate) fn redact_content(&self, content: Content) -> Result<Content, Error> {
        if self.redactor().is_none() {
            return Ok(content);
        }
        Ok(match content {
            Content::Text { text, annotations } => {
                Content::Text { text: self.redact_text(text)?.into_owned(), annotations }
            }
            Content::Resource(mut contents) => {
                if let ResourceBody::Text(text) = contents.body {
                    contents.body = ResourceBody::Text(self.redact_text(text)?.into_owned());
                }
                Content::Resource(contents)
            }
            other @ (Content::Image { .. } | Content::Audio { .. } | Content::Link(_)) => other,
        })
    }

    pub(crate) fn redact_error(&self, error: Error) -> Error {
        if self.redactor().is_none() {
            return error;
        }
        error.map_texts(|text| self.redact_and_count(text).map(|masked| masked.text))
    }

    /// Secrets in reasons are masked, as in errors.
    pub(super) fn redact_missing_nodes(&self, missing: &MissingNodes) -> MissingNodes {
        let mut missing = missing.clone();
        for node in &mut missing.nodes {
            if let Some(masked) = self.redact_and_count(&node.reason) {
                node.reason = masked.text;
            }
        }
        missing
    }

    fn redact_and_count(&self, text: &str) -> Option<RedactedText> {
        let masked = self.redactor()?.redact(text)?;
        self.secret_count.fetch_add(masked.secret_count, Ordering::Relaxed);
        Some(masked)
    }

    /// The fence for data in the answer, if data is fenced and the answer is for a model.
    pub fn fence(&self) -> Option<&DataFence> {
        self.required.fences_data.then(|| self.fence.get_or_init(DataFence::new))
    }

    /// `data` within the [fence](Self::fence), if there is one.
    pub fn fence_data(&self, data: String) -> String {
        self.fence().map(|fence| fence.wrap(&data)).unwrap_or(data)
    }
}

/// The end of the JSON string at the start of `literal`.
fn json_string_end(literal: &str) -> usize {
    let mut is_escaped = false;
    for (position, byte) in literal.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return position + 1,
            _ => {}
        }
    }
    literal.len()
}

fn secret_found_error(rule: &str) -> Error {
    let message = format!("the answer contains what looks like a secret ({rule}); this server rejects such answers");
    Error::new(ErrorKind::Forbidden, message).with_hint("Select other columns, or other rows.")
}
