//! Parts of a call: its target, completions, levels of log messages, and the statements in its audit line.

use std::collections::BTreeMap;

use strum::{EnumString, IntoStaticStr, VariantArray};

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

/// An entry for rows that come in. To its callers it is a tool: it is listed, granted, limited and recorded as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum WriteRows {
    /// Adds rows to a table.
    AppendRows,
    /// Replaces all rows of a table.
    ReplaceRows,
    /// Removes a table with its rows.
    DropTable,
    /// Stores telemetry of OpenTelemetry.
    ReceiveOtlp,
    /// Stores samples of the remote write of Prometheus.
    ReceivePrometheus,
    /// Stores documents of the bulk API of Elasticsearch.
    ReceiveBulk,
}

impl WriteRows {
    /// The name of the tool.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Severity of a log message for the caller, least severe first (RFC 5424).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
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
    pub const ALL: &[Self] = Self::VARIANTS;

    /// The lower-case name of RFC 5424.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The level with that name.
    pub fn parse(name: &str) -> Option<Self> {
        name.parse().ok()
    }
}

/// A completion request.
#[derive(Debug, Clone, PartialEq)]
pub struct CompletionRequest {
    /// The prompt or resource template.
    pub reference: CompletionReference,
    /// The argument or template variable.
    pub argument: String,
    /// The text typed so far.
    pub value: String,
    /// The values of other arguments, as far as the client knows them.
    pub context: BTreeMap<String, String>,
}

/// The entry whose argument is completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompletionReference {
    /// A prompt, by name.
    Prompt(String),
    /// A resource template, by its template text.
    Resource(String),
}

impl CompletionReference {
    /// The prompt's name or the template's text.
    pub fn name(&self) -> &str {
        match self {
            Self::Prompt(name) | Self::Resource(name) => name,
        }
    }
}

/// The matching values, best first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Completion {
    /// At most [`Completion::VALUES_MAX`] values.
    pub values: Vec<String>,
    /// The number of all matching values, if known.
    pub total: Option<u64>,
    /// Whether more values match than `values` contains.
    pub has_more: bool,
}

impl Completion {
    /// The maximum number of values in one answer (MCP, `completion/complete`).
    pub const VALUES_MAX: usize = 100;

    /// The candidates that begin with `typed`, ignoring case, truncated to the maximum.
    pub fn matching(candidates: impl IntoIterator<Item = String>, typed: &str) -> Self {
        let typed = typed.to_lowercase();
        let values: Vec<String> =
            candidates.into_iter().filter(|candidate| candidate.to_lowercase().starts_with(&typed)).collect();
        Self { total: Some(values.len() as u64), has_more: false, values }.truncated()
    }

    /// Truncates the values to the maximum and sets `has_more` accordingly.
    pub fn truncated(mut self) -> Self {
        if self.values.len() > Self::VALUES_MAX {
            self.total = self.total.or(Some(self.values.len() as u64));
            self.has_more = true;
            self.values.truncate(Self::VALUES_MAX);
        }
        self
    }
}

/// A statement that a call sent to a database, as the audit log records it.
pub struct AuditedStatement {
    /// The database.
    pub database: String,
    /// The tables that it reads, as far as they are known.
    pub tables: Vec<String>,
    /// Computes a fingerprint that does not depend on the values in the statement. It runs on the auditor's thread,
    /// because it takes longer than a call can wait.
    pub fingerprint: Box<dyn FnOnce() -> String + Send>,
}

crate::impl_debug!(AuditedStatement { database, tables });
