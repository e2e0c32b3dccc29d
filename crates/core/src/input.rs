//! What a handler may ask of the person or the program behind a call, and what comes back.
//!
//! [MCP 2026-07-28, Multi Round-Trip Requests](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr),
//! [Elicitation](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation)

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::json_schema::JsonSchema;

/// Of a hash, as many bytes as make a mark.
const FINGERPRINT_BYTES: usize = 16;

/// What the client behind a call can do for its handler; nothing unless it said so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is one independent ability")]
pub struct ClientCapabilities {
    /// Show a form to a person.
    pub forms: bool,
    /// Send a person to an address.
    pub urls: bool,
    /// Let a model write.
    pub sampling: bool,
    /// List the folders that it works in.
    pub roots: bool,
    /// Come back later for the result of a call that became a task.
    pub tasks: bool,
}

impl ClientCapabilities {
    /// Whether all of `needed` are among these.
    pub fn includes(self, needed: Self) -> bool {
        self.and(needed) == needed
    }

    /// What both have.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            forms: self.forms && other.forms,
            urls: self.urls && other.urls,
            sampling: self.sampling && other.sampling,
            roots: self.roots && other.roots,
            tasks: self.tasks && other.tasks,
        }
    }

    /// What either has.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            forms: self.forms || other.forms,
            urls: self.urls || other.urls,
            sampling: self.sampling || other.sampling,
            roots: self.roots || other.roots,
            tasks: self.tasks || other.tasks,
        }
    }

    /// Their names, for the reader.
    pub fn names(self) -> Vec<&'static str> {
        let all = [
            (self.forms, "elicitation (form)"),
            (self.urls, "elicitation (url)"),
            (self.sampling, "sampling"),
            (self.roots, "roots"),
            (self.tasks, "the tasks extension"),
        ];
        all.into_iter().filter_map(|(has, name)| has.then_some(name)).collect()
    }
}

/// Something that a handler asks.
#[derive(Debug, Clone, PartialEq)]
pub struct InputRequest {
    /// What is wanted.
    pub kind: InputRequestKind,
    /// Whether an answer counts that comes with a call before it was asked for. Never for a consent.
    pub accepts_unsolicited: bool,
    /// What was wrong with the last answer, where it is asked again.
    pub previous_error: Option<String>,
}

/// What a handler wants to have.
#[derive(Debug, Clone, PartialEq)]
pub enum InputRequestKind {
    /// A form, filled in by a person.
    Form {
        /// Why, for the person.
        message: String,
        /// A flat object of strings, numbers, booleans and choices (JSON Schema).
        schema: Value,
    },
    /// That a person goes to an address; what happens there does not pass through the client.
    Url {
        /// Why, for the person.
        message: String,
        /// The address.
        url: String,
    },
    /// That a model writes something: the params of `sampling/createMessage`.
    Sampling(Map<String, Value>),
    /// The folders that the client works in.
    Roots,
}

/// What came back.
#[derive(Debug, Clone, PartialEq)]
pub enum InputAnswer {
    /// The person agreed; of a form it is what was filled in.
    Accepted(Map<String, Value>),
    /// The person said no.
    Declined,
    /// The person did not choose.
    Cancelled,
    /// What the model wrote: a `CreateMessageResult`.
    Sampled(Map<String, Value>),
    /// The folders: the `roots` of a `ListRootsResult`.
    Roots(Vec<Value>),
}

/// Answers by the keys under which they were asked for.
pub type InputAnswers = BTreeMap<String, InputAnswer>;

/// An answer that came with a call.
#[derive(Debug, Clone, PartialEq)]
pub struct ProvidedAnswer {
    /// What it says.
    pub value: InputAnswer,
    /// The [`InputRequest::fingerprint`] of what it answers; none when it came unasked. An adapter can prove it.
    pub request_fingerprint: Option<String>,
}

impl InputRequest {
    /// A form for a person. `json_schema` is a flat object.
    pub fn form(message: impl Into<String>, schema: Value) -> Self {
        Self::new(InputRequestKind::Form { message: message.into(), schema })
    }

    /// An address that a person goes to.
    pub fn url(message: impl Into<String>, url: impl Into<String>) -> Self {
        Self::new(InputRequestKind::Url { message: message.into(), url: url.into() })
    }

    /// Something for a model to write: the params of `sampling/createMessage`.
    pub fn sampling(params: Map<String, Value>) -> Self {
        Self::new(InputRequestKind::Sampling(params))
    }

    /// The folders that the client works in.
    pub fn roots() -> Self {
        Self::new(InputRequestKind::Roots)
    }

    fn new(kind: InputRequestKind) -> Self {
        Self { kind, accepts_unsolicited: false, previous_error: None }
    }

    /// The same, whose answer may come with the call before it was asked for.
    #[must_use]
    pub fn allow_unsolicited(self) -> Self {
        Self { accepts_unsolicited: true, ..self }
    }

    /// What a client must be able to do to answer it.
    pub fn required_capabilities(&self) -> ClientCapabilities {
        let none = ClientCapabilities::default();
        match self.kind {
            InputRequestKind::Form { .. } => ClientCapabilities { forms: true, ..none },
            InputRequestKind::Url { .. } => ClientCapabilities { urls: true, ..none },
            InputRequestKind::Sampling(_) => ClientCapabilities { sampling: true, ..none },
            InputRequestKind::Roots => ClientCapabilities { roots: true, ..none },
        }
    }

    /// Whether `answer` answers it.
    ///
    /// # Errors
    /// What does not fit, for the reader.
    pub fn check(&self, answer: &InputAnswer) -> Result<(), String> {
        match (&self.kind, answer) {
            (
                InputRequestKind::Form { .. } | InputRequestKind::Url { .. },
                InputAnswer::Declined | InputAnswer::Cancelled,
            )
            | (InputRequestKind::Url { .. }, InputAnswer::Accepted(_))
            | (InputRequestKind::Sampling(_), InputAnswer::Sampled(_))
            | (InputRequestKind::Roots, InputAnswer::Roots(_)) => Ok(()),
            (InputRequestKind::Form { schema, .. }, InputAnswer::Accepted(content)) => check_form(schema, content),
            _ => Err("it answers a different kind of request".to_owned()),
        }
    }

    /// The same, with what was wrong with the last answer.
    pub(crate) fn with_previous_error(self, wrong: String) -> Self {
        Self { previous_error: Some(wrong), ..self }
    }

    /// Tells questions apart: a yes to one is none to another, though both be asked under one key. The address that a
    /// person is sent to may be another each time.
    pub fn fingerprint(&self) -> String {
        let text = match &self.kind {
            InputRequestKind::Form { message, schema } => format!("form\n{}\n{schema}", Value::from(message.as_str())),
            InputRequestKind::Url { message, .. } => format!("url\n{message}"),
            InputRequestKind::Sampling(params) => format!("sampling\n{}", Value::Object(params.clone())),
            InputRequestKind::Roots => "roots".to_owned(),
        };
        Sha256::digest(text).iter().take(FINGERPRINT_BYTES).map(|byte| format!("{byte:02x}")).collect()
    }

    /// The text for the person, with the remark.
    pub fn client_message(&self) -> Option<String> {
        let (InputRequestKind::Form { message, .. } | InputRequestKind::Url { message, .. }) = &self.kind else {
            return None;
        };
        let remark = self.previous_error.as_ref().map(|wrong| format!("\n(The last answer was invalid: {wrong})"));
        Some(format!("{message}{}", remark.unwrap_or_default()))
    }
}

fn check_form(schema: &Value, content: &Map<String, Value>) -> Result<(), String> {
    let schema = JsonSchema::object(schema.clone()).map_err(|error| error.to_string())?;
    schema.check(&Value::Object(content.clone())).map_err(|violations| {
        let message = violations.iter().map(|violation| match violation.path.as_str() {
            "" => violation.message.clone(),
            path => format!("{path}: {}", violation.message),
        });
        message.collect::<Vec<_>>().join("; ")
    })
}
