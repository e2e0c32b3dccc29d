//! The one error type that crosses crates: a kind, a message for the reader, and what would mend it.
//!
//! What the caller may read and what the log keeps are two messages: [`Error::detail`] never
//! leaves the process.

use std::fmt;
use std::time::Duration;

use uuid::Uuid;

use crate::input::{ClientCapabilities, InputRequest};

/// What sort of failure it is. Each adapter maps kinds to its own codes in one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The caller's arguments are wrong; `violations` says each of them.
    InvalidArguments,
    /// The thing asked for does not exist, or is hidden from this caller.
    NotFound,
    /// The caller is known and may not do this.
    Forbidden,
    /// The caller must prove who it is first.
    Unauthenticated,
    /// Too many calls at once or in a period.
    RateLimited,
    /// The deadline passed.
    TimedOut,
    /// The caller, or an operator, cancelled the call.
    Cancelled,
    /// The question or the answer is beyond a bound.
    TooLarge,
    /// A database or another part cannot be reached now.
    Unavailable,
    /// The handler must ask first: it is run again with the answers.
    InputRequired,
    /// The client cannot do what the call needs.
    MissingClientCapability,
    /// The handler says that what was asked for failed, in words of its own.
    Failed,
    /// A fault of ours; the caller gets an id, the log the detail.
    Internal,
}

impl ErrorKind {
    /// The kind's name as it stands in logs, metrics and answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::InvalidArguments => "invalid_arguments",
            Self::NotFound => "not_found",
            Self::Forbidden => "forbidden",
            Self::Unauthenticated => "unauthenticated",
            Self::RateLimited => "rate_limited",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
            Self::TooLarge => "too_large",
            Self::Unavailable => "unavailable",
            Self::InputRequired => "input_required",
            Self::MissingClientCapability => "incapable",
            Self::Failed => "failed",
            Self::Internal => "internal",
        }
    }
}

/// One thing that is wrong with the arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Where, as a path of names and indexes (`order_by[0].direction`); empty for the whole.
    pub path: String,
    /// What came and what was wanted.
    pub message: String,
}

/// A failure, written for the reader who must mend the call.
#[derive(Debug, Clone)]
pub struct Error(Box<ErrorInner>);

/// Boxed, so that a `Result` that carries it stays small.
#[derive(Debug, Clone)]
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
    is_rendered: bool,
    retry_after: Option<Duration>,
    scopes: Vec<String>,
}

impl Error {
    /// An error of `kind` with a `message` that the caller may read.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(ErrorInner {
            kind,
            message: message.into(),
            violations: Vec::new(),
            choices: Vec::new(),
            hint: None,
            detail: None,
            id: None,
            input_requests: Vec::new(),
            missing_capabilities: ClientCapabilities::default(),
            code: None,
            is_rendered: false,
            retry_after: None,
            scopes: Vec::new(),
        }))
    }

    /// Wrong arguments, all violations at once.
    pub fn invalid_arguments(message: impl Into<String>, violations: Vec<Violation>) -> Self {
        let mut error = Self::new(ErrorKind::InvalidArguments, message);
        error.0.violations = violations;
        error
    }

    /// A fault of ours: the caller reads an id, the log keeps `detail` under the same id.
    pub fn internal(detail: impl Into<String>) -> Self {
        let id = Uuid::new_v4();
        let message = format!("internal error; the server's log has the detail under id {id}");
        let mut error = Self::new(ErrorKind::Internal, message);
        error.0.id = Some(id);
        error.0.detail = Some(detail.into());
        error
    }

    /// The handler must have answers to `requests` first, by key.
    pub fn input_required(requests: Vec<(String, InputRequest)>) -> Self {
        let mut error = Self::new(ErrorKind::InputRequired, "the call needs input before it can continue");
        error.0.input_requests = requests;
        error
    }

    /// The client must have `needs`, and has not said so.
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

    /// Adds what would mend the call: an example, the next step.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Adds detail that only the log may show.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.0.detail = Some(detail.into());
        self
    }

    /// Adds the code that the handler gave it, for protocols whose errors have one.
    #[must_use]
    pub fn with_code(mut self, code: i64) -> Self {
        self.0.code = Some(code);
        self
    }

    /// Adds after what time the same may be tried again.
    #[must_use]
    pub fn with_retry_after(mut self, time: Duration) -> Self {
        self.0.retry_after = Some(time);
        self
    }

    /// Adds the OAuth scopes that the caller's token lacks, or that the token of who has not shown any needs: all of them.
    #[must_use]
    pub fn with_scopes(mut self, scopes: Vec<String>) -> Self {
        self.0.scopes = scopes;
        self
    }

    /// The same with other texts.
    pub(crate) fn with_texts(
        mut self,
        message: String,
        violations: Vec<Violation>,
        choices: Vec<String>,
        hint: Option<String>,
    ) -> Self {
        (self.0.message, self.0.violations, self.0.choices, self.0.hint) = (message, violations, choices, hint);
        self
    }

    /// Says that the answer's blocks told of it already, so that nothing is to be added to them.
    #[must_use]
    pub fn mark_rendered(mut self) -> Self {
        self.0.is_rendered = true;
        self
    }

    /// What sort of failure it is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The message alone, without violations, choices and hint.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Everything that is wrong with the arguments.
    pub fn violations(&self) -> &[Violation] {
        &self.0.violations
    }

    /// The valid choices, nearest first.
    pub fn choices(&self) -> &[String] {
        &self.0.choices
    }

    /// What would mend the call.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// What the handler asks for, by key.
    pub fn input_requests(&self) -> &[(String, InputRequest)] {
        &self.0.input_requests
    }

    /// What the client must be able to do.
    pub fn missing_capabilities(&self) -> ClientCapabilities {
        self.0.missing_capabilities
    }

    /// The code that the handler gave it.
    pub fn code(&self) -> Option<i64> {
        self.0.code
    }

    /// After what time the same may be tried again, where that is known.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// The OAuth scopes that the caller's token would need, if it is these that it lacks, or if it has shown none.
    pub fn scopes(&self) -> &[String] {
        &self.0.scopes
    }

    /// Whether the answer's blocks told of it already.
    pub fn is_rendered(&self) -> bool {
        self.0.is_rendered
    }

    /// What only the log may show.
    pub fn detail(&self) -> Option<&str> {
        self.0.detail.as_deref()
    }

    /// The id under which the log has the detail.
    pub fn id(&self) -> Option<Uuid> {
        self.0.id
    }
}

impl fmt::Display for Error {
    /// The whole text for the reader: message, violations, choices, hint.
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
