//! The error type of all crates: a kind, a message for the caller, and a hint on how to correct the call.
//!
//! The caller and the log get different texts: [`Error::detail`] is for the log and never leaves the process.

use std::fmt;
use std::time::Duration;

use serde_json::Value;
use uuid::Uuid;

use crate::input::{ClientCapabilities, InputRequest};
use crate::json_schema::Violation;

/// The kind of failure. Each adapter maps kinds to its own codes in one table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum ErrorKind {
    /// The caller's arguments are invalid; `violations` lists every problem.
    InvalidArguments,
    /// The target does not exist, or is hidden from this caller.
    NotFound,
    /// The authenticated caller is not allowed to do this.
    Forbidden,
    /// The caller must authenticate first.
    Unauthenticated,
    /// Too many calls at once or in a period.
    RateLimited,
    /// The call exceeded its time limit.
    TimedOut,
    /// The caller, or an operator, cancelled the call.
    Cancelled,
    /// Another call changes the same now, or has changed it in the meantime.
    Conflict,
    /// The request or the answer exceeds a limit.
    TooLarge,
    /// A database or another component is not available now.
    Unavailable,
    /// The handler needs input first, and runs again with the answers.
    InputRequired,
    /// The client lacks a capability that the call needs.
    #[strum(serialize = "incapable")]
    MissingClientCapability,
    /// The handler reports that the request failed, with a message of its own.
    Failed,
    /// A fault of the server. The caller gets an id, the log gets the detail.
    #[default]
    Internal,
}

impl ErrorKind {
    /// All kinds.
    pub const ALL: &[Self] = <Self as strum::VariantArray>::VARIANTS;

    /// The kind's name, as used in logs, metrics and answers.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A failure, described for the caller, who can correct the call.
#[derive(Debug, Clone)]
pub struct Error(Box<ErrorInner>);

/// Boxed, so that a `Result` with this error stays small.
#[derive(Debug, Clone, Default)]
struct ErrorInner {
    kind: ErrorKind,
    message: String,
    violations: Vec<Violation>,
    choices: Vec<String>,
    hint: Option<String>,
    detail: Option<String>,
    id: Option<Uuid>,
    input_requests: Vec<(String, InputRequest)>,
    missing_capabilities: ClientCapabilities,
    code: Option<i64>,
    protocol_error: Option<ProtocolError>,
    is_reported: bool,
    is_configuration_fault: bool,
    retry_after: Option<Duration>,
    scopes: Vec<String>,
    refused_row: Option<u64>,
}

/// An error that a protocol with error objects must send as one, also where it reports failures of tools in results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtocolError {
    /// The code, which replaces that of the kind.
    pub code: i64,
    /// Additional data for programs.
    pub data: Option<Value>,
}

/// Replaces each string in `value`, names of members too, by the result of `map`, if there is one.
fn map_strings(value: &mut Value, map: &impl Fn(&str) -> Option<String>) {
    match value {
        Value::String(text) => {
            if let Some(mapped) = map(text) {
                *text = mapped;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| map_strings(item, map)),
        Value::Object(members) => {
            let mapped = std::mem::take(members).into_iter().map(|(name, mut member)| {
                map_strings(&mut member, map);
                (map(&name).unwrap_or(name), member)
            });
            *members = mapped.collect();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

impl Error {
    /// An error of `kind`. The caller can read `message`.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(ErrorInner { kind, message: message.into(), ..ErrorInner::default() }))
    }

    /// Invalid arguments, with all violations at once.
    pub fn invalid_arguments(message: impl Into<String>, violations: Vec<Violation>) -> Self {
        let mut error = Self::new(ErrorKind::InvalidArguments, message);
        error.0.violations = violations;
        error
    }

    /// A fault of the server: the caller gets an id, and the log gets `detail` under the same id.
    pub fn internal(detail: impl Into<String>) -> Self {
        let id = Uuid::new_v4();
        let message = format!("internal error; the server's log has the detail under id {id}");
        let mut error = Self::new(ErrorKind::Internal, message);
        error.0.id = Some(id);
        error.0.detail = Some(detail.into());
        error
    }

    /// The caller, an operator or a limit has cancelled the call.
    pub fn cancelled() -> Self {
        Self::new(ErrorKind::Cancelled, "the call was cancelled")
    }

    /// The error for a table that takes no rows from the caller. It is the same whether the table is absent or the caller
    /// may not write to it.
    pub fn takes_no_rows(database: &str, table: &str) -> Self {
        let message = format!("there is no table {table:?} of database {database:?} that takes rows from you");
        Self::new(ErrorKind::NotFound, message).with_hint(
            "A database of the configuration takes rows with its key ingest, and a role may write with its own key ingest.",
        )
    }

    /// The handler needs answers to `requests` first. Each request has a key.
    pub fn input_required(requests: Vec<(String, InputRequest)>) -> Self {
        let mut error = Self::new(ErrorKind::InputRequired, "the call needs input before it can continue");
        error.0.input_requests = requests;
        error
    }

    /// The client did not declare capabilities that the call needs.
    pub fn missing_client_capability(needs: ClientCapabilities) -> Self {
        let names = needs.names().join(", ");
        let message = format!("the call needs client capabilities that your client did not declare: {names}");
        let mut error = Self::new(ErrorKind::MissingClientCapability, message);
        error.0.missing_capabilities = needs;
        error
    }

    /// Adds the valid choices, nearest first.
    #[must_use]
    pub fn with_choices(mut self, choices: impl IntoIterator<Item = String>) -> Self {
        self.0.choices = choices.into_iter().collect();
        self
    }

    /// Adds a hint on how to correct the call, for example a valid form or the next step.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Adds detail for the log only.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.0.detail = Some(detail.into());
        self
    }

    /// Adds the error code that the handler set, for protocols with error codes.
    #[must_use]
    pub fn with_code(mut self, code: i64) -> Self {
        self.0.code = Some(code);
        self
    }

    /// Makes it an error object of the protocol, with this code and data.
    #[must_use]
    pub fn with_protocol_error(mut self, code: i64, data: Option<Value>) -> Self {
        self.0.protocol_error = Some(ProtocolError { code, data });
        self
    }

    /// Adds the time after which the caller can try again.
    #[must_use]
    pub fn with_retry_after(mut self, time: Duration) -> Self {
        self.0.retry_after = Some(time);
        self
    }

    /// Adds all OAuth scopes that a token needs for this call. For callers whose token lacks some of them, and for
    /// anonymous callers.
    #[must_use]
    pub fn with_scopes(mut self, scopes: Vec<String>) -> Self {
        self.0.scopes = scopes;
        self
    }

    /// Adds the row that a table refuses: its number among the rows of the write, from 0. The message leaves it out, because
    /// only the reader of a body knows where the row is in it.
    #[must_use]
    pub fn with_refused_row(mut self, row: u64) -> Self {
        self.0.refused_row = Some(row);
        self
    }

    /// The same error with each text for the caller replaced by the result of `map`, if there is one.
    #[must_use]
    pub fn map_texts(mut self, map: impl Fn(&str) -> Option<String>) -> Self {
        let ErrorInner { message, violations, choices, hint, protocol_error, .. } = &mut *self.0;
        if let Some(data) = protocol_error.as_mut().and_then(|error| error.data.as_mut()) {
            map_strings(data, &map);
        }
        let violation_messages = violations.iter_mut().map(|violation| &mut violation.message);
        for text in violation_messages.chain(choices).chain(hint).chain([message]) {
            if let Some(mapped) = map(text) {
                *text = mapped;
            }
        }
        self
    }

    /// The same error with another message, as where it says what failed because of it.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.0.message = message.into();
        self
    }

    /// Records that only the owner can correct this, in the configuration: the same call fails until then. The log has the
    /// detail.
    #[must_use]
    pub fn mark_configuration_fault(mut self) -> Self {
        self.0.is_configuration_fault = true;
        self
    }

    /// Records that the blocks of the answer already report this error, so that nothing is added to them.
    #[must_use]
    pub fn mark_reported(mut self) -> Self {
        self.0.is_reported = true;
        self
    }

    /// The kind of failure.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The message alone, without violations, choices and hint.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// All problems of the arguments.
    pub fn violations(&self) -> &[Violation] {
        &self.0.violations
    }

    /// The valid choices, nearest first.
    pub fn choices(&self) -> &[String] {
        &self.0.choices
    }

    /// A hint on how to correct the call.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// The input that the handler requests, by key.
    pub fn input_requests(&self) -> &[(String, InputRequest)] {
        &self.0.input_requests
    }

    /// The capabilities that the client lacks.
    pub fn missing_capabilities(&self) -> ClientCapabilities {
        self.0.missing_capabilities
    }

    /// The error code that the handler set.
    pub fn code(&self) -> Option<i64> {
        self.0.code
    }

    /// The error object of the protocol, if it must be one.
    pub fn protocol_error(&self) -> Option<&ProtocolError> {
        self.0.protocol_error.as_ref()
    }

    /// The time after which the caller can try again, if known.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// All OAuth scopes that a token needs for this call; empty if scopes are not the problem.
    pub fn scopes(&self) -> &[String] {
        &self.0.scopes
    }

    /// The row that a table refuses, as its number among the rows of the write, from 0.
    pub fn refused_row(&self) -> Option<u64> {
        self.0.refused_row
    }

    /// Whether only the owner can correct this, in the configuration.
    pub fn is_configuration_fault(&self) -> bool {
        self.0.is_configuration_fault
    }

    /// Whether the blocks of the answer already report this error.
    pub fn is_reported(&self) -> bool {
        self.0.is_reported
    }

    /// The detail for the log only.
    pub fn detail(&self) -> Option<&str> {
        self.0.detail.as_deref()
    }

    /// The id of the detail in the log.
    pub fn id(&self) -> Option<Uuid> {
        self.0.id
    }
}

impl fmt::Display for Error {
    /// The complete text for the caller: message, violations, choices, hint.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        for Violation { path, message } in &self.0.violations {
            match path.as_str() {
                "" => write!(f, "\n- {message}")?,
                path => write!(f, "\n- {path}: {message}")?,
            }
        }
        if !self.0.choices.is_empty() {
            write!(f, "\nValid choices: {}", self.0.choices.join(", "))?;
        }
        if let Some(hint) = &self.0.hint {
            write!(f, "\n{hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_of_data_are_mapped_too() {
        let data = json!({"secret": ["a secret", 1, {"b": null, "c": "plain"}]});
        let error = Error::new(ErrorKind::Failed, "secret").with_protocol_error(-32_603, Some(data));
        let error = error.map_texts(|text| text.contains("secret").then(|| text.replace("secret", "***")));
        assert_eq!(error.to_string(), "***");
        let expected = json!({"***": ["a ***", 1, {"b": null, "c": "plain"}]});
        assert_eq!(error.protocol_error().unwrap().data, Some(expected));
    }
}
