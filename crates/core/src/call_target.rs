//! What is called, and how severe a log message for the caller is.

use crate::completion::CompletionRequest;

/// The target of a call.
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
    /// The kind of target, as used in logs and metrics.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Tool(_) => "tool",
            Self::Resource(_) => "resource",
            Self::Prompt(_) => "prompt",
            Self::Completion(_) => "completion",
        }
    }

    /// The requested name or URI.
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
#[allow(missing_docs, reason = "the names are those of RFC 5424")]
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

    /// The level with that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }
}
