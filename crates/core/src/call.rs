//! What an adapter asks of the registry.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::answer_format::AnswerFormat;
use crate::caller::Caller;
use crate::completion::CompletionRequest;
use crate::input::{ClientCapabilities, ProvidedAnswer};
use crate::job::Job;
use crate::limits::Budget;

/// One question to the registry: who asks what, from where, with which wishes.
#[derive(Debug, Clone)]
pub struct Call {
    /// What is asked.
    pub target: CallTarget,
    /// Its arguments; checked against the target's schema before the handler runs.
    pub arguments: Map<String, Value>,
    /// Who asks, and from where.
    pub caller: Caller,
    /// What the adapter can carry inline at most; the entry's and the registry's limits apply too.
    pub inline_limit: Budget,
    /// The form of an answer that shall be a body of its own; none for content that a model reads. A body has no
    /// budget but that of its entry.
    pub format: Option<AnswerFormat>,
    /// Whether the caller wants to hear of progress.
    pub wants_progress: bool,
    /// The least severe log message that the caller wants to hear; none when it wants none.
    pub log_level: Option<LogLevel>,
    /// W3C `traceparent` of the caller, to join our log lines to.
    pub trace_parent: Option<String>,
    /// Whether everything about this call is to be logged, whatever the level; only for who operates the node.
    pub trace: bool,
    /// The call that runs already and on whose behalf it is made, so that it need not wait for a place among the
    /// running ones: were both to wait, each could wait for the other. While it asks, both wait.
    pub on_behalf_of: Option<Arc<Job>>,
    /// What the client can do for the handler.
    pub client_capabilities: ClientCapabilities,
    /// Whether somebody waits for the handler's questions while it runs; otherwise it is run again with the answers.
    pub supports_live_input: bool,
    /// Answers to what the handler will ask, by key: of earlier rounds of the same call.
    pub input_answers: BTreeMap<String, ProvidedAnswer>,
    /// Cancels the call; dropping the [`crate::Reply`] does as well.
    pub cancellation: CancellationToken,
}

impl Call {
    /// A call of `target` with nothing wished for.
    pub fn new(target: CallTarget, caller: Caller) -> Self {
        Self {
            target,
            arguments: Map::new(),
            caller,
            inline_limit: Budget::default(),
            format: None,
            wants_progress: false,
            log_level: None,
            trace_parent: None,
            trace: false,
            on_behalf_of: None,
            client_capabilities: ClientCapabilities::default(),
            supports_live_input: false,
            input_answers: BTreeMap::new(),
            cancellation: CancellationToken::new(),
        }
    }
}

/// What a call is aimed at.
#[derive(Debug, Clone, PartialEq)]
pub enum CallTarget {
    /// A tool, by name.
    Tool(String),
    /// A resource, by URI; a template may serve it.
    Resource(String),
    /// A prompt, by name.
    Prompt(String),
    /// The values that an argument may take.
    Completion(CompletionRequest),
}

impl CallTarget {
    /// The sort of thing it is, as it stands in logs and metrics.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Tool(_) => "tool",
            Self::Resource(_) => "resource",
            Self::Prompt(_) => "prompt",
            Self::Completion(_) => "completion",
        }
    }

    /// The name or URI asked for.
    pub fn name(&self) -> &str {
        match self {
            Self::Tool(name) | Self::Prompt(name) => name,
            Self::Resource(uri) => uri,
            Self::Completion(request) => request.reference.name(),
        }
    }
}

/// Severity of a log message for the caller, least severe first (RFC 5424).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names of RFC 5424 say it")]
pub enum LogLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl LogLevel {
    /// Every level, least severe first.
    pub const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// The lower-case name of RFC 5424.
    pub fn name(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }

    /// The level of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }
}

/// The values of a resource template's variables, by name.
pub type TemplateVariables = BTreeMap<String, String>;
