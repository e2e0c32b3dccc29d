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
/// The maximum number of valid values in a message; the nearest come first.
const CHOICES_MAX: usize = 10;
/// The prefix of `type` in a problem document of Tidegate.
const PROBLEM_TYPE_PREFIX: &str = "tag:tidegate.dev,2026:problem/";
/// The name of the problem of a path that the server does not have.
const NO_SUCH_PATH: &str = "no_such_path";

/// The server's own message, bounded; it is appended to our message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerMessage {
    text: String,
    /// Whether Tidegate itself refused the request, and has its path.
    is_refused_call: bool,
}

impl ServerMessage {
    /// `text` without control characters and without `secret`.
    pub(crate) fn new(text: &str, secret: Option<&str>) -> Self {
        let text = match secret {
            Some(secret) if !secret.is_empty() => text.replace(secret, "…"),
            _ => text.to_owned(),
        };
        Self { text: sanitize(&text), is_refused_call: false }
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
        let name = problem["type"].as_str().and_then(|name| name.strip_prefix(PROBLEM_TYPE_PREFIX));
        let is_refused_call = name.is_some_and(|name| name != NO_SUCH_PATH);
        Self { is_refused_call, ..Self::new(&describe_problem(&problem), secret) }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether the server refused the call itself: nothing runs, and the path is right.
    pub(crate) fn is_refused_call(&self) -> bool {
        self.is_refused_call
    }
}

/// The sentences of a problem document: what was wrong, the valid values, and the next step.
fn describe_problem(problem: &Value) -> String {
    let member = |name: &str| problem[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let items = |name: &str| problem[name].as_array().map(Vec::as_slice).unwrap_or_default();
    let violations = items("violations")
        .iter()
        .filter_map(|violation| Some(format!("{}: {}", violation["path"].as_str()?, violation["message"].as_str()?)));
    let choices: Vec<&str> = items("choices").iter().filter_map(Value::as_str).take(CHOICES_MAX).collect();
    let choices = (!choices.is_empty()).then(|| format!("valid choices: {}", choices.join(", ")));
    let detail = member("detail").or_else(|| member("title"));
    detail.into_iter().chain(violations).chain(choices).chain(member("hint")).collect::<Vec<_>>().join("; ")
}

/// `text` of a server without control characters, bounded.
pub(crate) fn sanitize(text: &str) -> String {
    let printable = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    printable.take(MESSAGE_CHARACTERS_MAX).collect::<String>().trim().to_owned()
}

impl fmt::Display for ServerMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.text.is_empty() { Ok(()) } else { write!(f, "; the server reports: {}", self.text) }
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
        let choices = r#"{"detail":"there is no table \"fligths\"","violations":[{"path":"limit","message":"too large"}],
            "choices":["flights","planes"],"hint":"Call list_tables."}"#;
        let message = "; the server reports: there is no table \"fligths\"; limit: too large; valid choices: flights, \
                       planes; Call list_tables.";
        assert_eq!(text(choices), message);
        assert_eq!(text("no tide_abc\u{1b}[2Jhere\n"), "; the server reports: no … [2Jhere");
        assert_eq!(text("<html><body>502</body></html>"), "");
        assert_eq!(text(""), "");
        assert!(text(&"x".repeat(100_000)).len() < 600);
    }
}
