//! Refusals of a server that concern the caller or the address, and the server's own error message as a part of ours.

use std::fmt;

use serde_json::Value;
use thiserror::Error;

/// Why a server refuses every request of this caller, or at this address.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the messages document the variants")]
pub enum ServerRefusal {
    #[error(
        "the server requires authentication (401); pass --bearer TOKEN, \
         or set TIDEGATE_BEARER in the environment{message}"
    )]
    TokenRequired { message: ServerMessage },
    #[error("the server rejected the bearer token (401); check --bearer or TIDEGATE_BEARER{message}")]
    TokenRejected { message: ServerMessage },
    #[error("the server denied access (403); pass a token that has access with --bearer TOKEN{message}")]
    AccessDenied { message: ServerMessage },
    #[error("the server redirects ({status}), and redirects are not followed; use the target of the redirect")]
    Redirected { status: u16 },
}

impl ServerRefusal {
    /// The refusal for a status of HTTP. For any other status, the message of the server is returned as the error.
    pub(crate) fn from_status(status: u16, has_token: bool, message: ServerMessage) -> Result<Self, ServerMessage> {
        match status {
            401 if has_token => Ok(Self::TokenRejected { message }),
            401 => Ok(Self::TokenRequired { message }),
            403 => Ok(Self::AccessDenied { message }),
            300..=399 => Ok(Self::Redirected { status }),
            _ => Err(message),
        }
    }
}

const MESSAGE_CHARACTERS_MAX: usize = 500;

/// The server's own message, bounded; it is appended to our message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerMessage(String);

impl ServerMessage {
    /// `text` without control characters and without `secret`.
    pub(crate) fn new(text: &str, secret: Option<&str>) -> Self {
        let text = match secret {
            Some(secret) if !secret.is_empty() => text.replace(secret, "…"),
            _ => text.to_owned(),
        };
        Self(sanitize(&text))
    }

    /// The message of a JSON-RPC error, of a problem document, or of a plain text body.
    ///
    /// [RFC 9457](https://www.rfc-editor.org/rfc/rfc9457)
    pub(crate) fn from_body(body: &[u8], secret: Option<&str>) -> Self {
        let text = String::from_utf8_lossy(body);
        let Ok(problem) = serde_json::from_str::<Value>(&text) else {
            // HTML pages contain nothing useful here.
            return if text.trim_start().starts_with('<') { Self::default() } else { Self::new(&text, secret) };
        };
        if let Some(message) = problem["error"]["message"].as_str() {
            return Self::new(message, secret);
        }
        let output = |name: &str| problem[name].as_str().filter(|text| !text.is_empty());
        let sentences = [output("detail").or_else(|| output("title")), output("hint")];
        Self::new(&sentences.into_iter().flatten().collect::<Vec<_>>().join("; "), secret)
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

/// `text` of a server without control characters, bounded.
pub(crate) fn sanitize(text: &str) -> String {
    let printable = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    printable.take(MESSAGE_CHARACTERS_MAX).collect::<String>().trim().to_owned()
}

impl fmt::Display for ServerMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, "; the server reports: {}", self.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redacts_secrets_and_control_characters() {
        let text = |body: &str| ServerMessage::from_body(body.as_bytes(), Some("tide_abc")).to_string();
        let problem = r#"{"title":"There is no such thing","detail":"the result has expired","hint":"ask again"}"#;
        assert_eq!(text(problem), "; the server reports: the result has expired; ask again");
        assert_eq!(text(r#"{"id":null,"error":{"code":1,"message":"no"}}"#), "; the server reports: no");
        assert_eq!(text(r#"{"title":"Too many calls"}"#), "; the server reports: Too many calls");
        assert_eq!(text("no tide_abc\u{1b}[2Jhere\n"), "; the server reports: no … [2Jhere");
        assert_eq!(text("<html><body>502</body></html>"), "");
        assert_eq!(text(""), "");
        assert!(text(&"x".repeat(100_000)).len() < 600);
    }
}
