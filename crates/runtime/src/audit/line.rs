//! Audit records, taken from a call while it ends and rendered by the writer thread: what of the arguments is recorded, and the
//! form of a line. It is JSON with members in a fixed order, without the two members that chain it.

use std::sync::Arc;
use std::time::SystemTime;

use crate::{Job, JobId};
use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;
use serde_json::{Map, Value, json};
use tidegate_core::{ArgumentRedaction, AuditedStatement, CallOrigin, Caller, LimitLevel, Principal};

const WORD_BYTES_MAX: usize = 256;
const ROLES_MAX: usize = 32;

pub(crate) fn render_line(record: &mut Record, seq: u64) -> String {
    let mut line = JsonLine(Vec::new());
    line.push("time", DateTime::<Utc>::from(record.time).to_rfc3339_opts(SecondsFormat::Millis, true));
    line.push("seq", seq);
    match &mut record.kind {
        RecordKind::Opened { mended_bytes, missing_until } => {
            line.push("kind", "opened");
            line.push_some("mended_bytes", Some(*mended_bytes).filter(|bytes| *bytes > 0));
            line.push_some("missing_until", *missing_until);
        }
        RecordKind::Call(call) => line.push_call(call),
        RecordKind::RefusedCall { caller, target, outcome } => {
            line.push("kind", "refused_call");
            line.push_caller(caller);
            line.push_target(target, None);
            line.push("outcome", outcome);
        }
        RecordKind::RefusedMessage(RefusedMessage { principal, origin, reason, times }) => {
            line.push("kind", "refused_message");
            if let Some(principal) = principal {
                line.push_principal(principal);
            }
            line.push_origin(*origin);
            line.push("reason", reason);
            line.push_some("times", Some(*times).filter(|times| *times > 1));
        }
        RecordKind::Dropped(lines) => {
            line.push("kind", "dropped");
            line.push("dropped", lines);
        }
    }
    line.0.push(b'}');
    String::from_utf8(line.0).unwrap_or_default()
}

/// The JSON text of a line, without its last brace.
struct JsonLine(Vec<u8>);

impl JsonLine {
    fn push(&mut self, name: &str, value: impl Serialize) {
        self.0.extend_from_slice(if self.0.is_empty() { b"{\"" } else { b",\"" });
        self.0.extend_from_slice(name.as_bytes());
        self.0.extend_from_slice(b"\":");
        // Serialization into memory cannot fail: all keys are text.
        let _ = serde_json::to_writer(&mut self.0, &value);
    }

    fn push_some(&mut self, name: &str, value: Option<impl Serialize>) {
        if let Some(value) = value {
            self.push(name, value);
        }
    }

    fn push_call(&mut self, call: &mut CallRecord) {
        self.push("kind", "call");
        self.push_caller(&call.caller);
        self.push_target(&call.target, call.called_tool.as_deref());
        match &call.arguments {
            RecordedArguments::Names(names) => self.push("arguments", names),
            RecordedArguments::Values(values) => self.push("arguments", values),
        }
        let statements = std::mem::take(&mut call.statements).into_iter().map(|statement| {
            let tables: Vec<&str> = statement.tables.iter().map(|table| truncate_word(table)).collect();
            let database = truncate_word(&statement.database);
            json!({"database": database, "fingerprint": (statement.fingerprint)(), "tables": tables})
        });
        self.push("statements", statements.collect::<Vec<_>>());
        self.push("rows", call.rows);
        self.push("bytes", call.bytes);
        self.push_some("secrets", Some(call.secrets).filter(|secrets| *secrets > 0));
        self.push_some("missing_nodes", call.missing_nodes.as_ref());
        self.push("outcome", call.outcome);
        self.push("elapsed_ms", call.elapsed_ms);
        self.push("job", call.job.to_string());
    }

    fn push_caller(&mut self, caller: &RecordCaller) {
        self.push_principal(&caller.principal);
        self.push_origin(caller.origin);
    }

    fn push_origin(&mut self, origin: CallOrigin) {
        self.push("transport", origin.transport.name());
        self.push_some("address", origin.peer);
    }

    fn push_principal(&mut self, principal: &Principal) {
        let roles: Vec<&str> = principal.roles.iter().take(ROLES_MAX).map(|role| truncate_word(role)).collect();
        self.push("subject", truncate_word(&principal.subject));
        self.push_some("tenant", principal.tenant.as_deref().map(truncate_word));
        self.push("proof", principal.auth_method.name());
        self.push("roles", roles);
    }

    fn push_target(&mut self, (kind, name): &(&'static str, String), called_tool: Option<&str>) {
        let mut target = json!({"kind": kind, "name": name});
        if let Some(tool) = called_tool {
            target["calls"] = truncate_word(tool).into();
        }
        self.push("target", target);
    }
}

fn truncate_word(text: &str) -> &str {
    truncate(text, WORD_BYTES_MAX)
}

/// Bytes of names, URIs and reasons from callers in a line at most.
const NAME_BYTES_MAX: usize = 512;

pub(crate) struct Record {
    pub(crate) time: SystemTime,
    pub(crate) kind: RecordKind,
}

pub(crate) enum RecordKind {
    /// The log was opened.
    Opened {
        /// Bytes of an incomplete line that were removed.
        mended_bytes: u64,
        /// The last line in the head, if the log ends before it.
        missing_until: Option<u64>,
    },
    Call(Box<CallRecord>),
    RefusedCall {
        caller: RecordCaller,
        target: (&'static str, String),
        outcome: &'static str,
    },
    RefusedMessage(RefusedMessage),
    /// So many lines were dropped before this one.
    Dropped(u64),
}

pub(crate) struct RecordCaller {
    pub(crate) principal: Arc<Principal>,
    pub(crate) origin: CallOrigin,
}

/// A refused message, or several that are counted together.
#[derive(Debug)]
pub(crate) struct RefusedMessage {
    /// Its principal, if it is known.
    pub(crate) principal: Option<Arc<Principal>>,
    pub(crate) origin: CallOrigin,
    pub(crate) reason: String,
    pub(crate) times: u64,
}

pub(crate) struct CallRecord {
    pub(crate) caller: RecordCaller,
    target: (&'static str, String),
    /// The built-in tool that the target calls.
    called_tool: Option<String>,
    arguments: RecordedArguments,
    statements: Vec<AuditedStatement>,
    rows: u64,
    pub(crate) bytes: u64,
    secrets: u64,
    /// The names of the nodes whose rows the answer lacks.
    missing_nodes: Option<String>,
    pub(crate) outcome: &'static str,
    elapsed_ms: u64,
    pub(crate) job: JobId,
}

enum RecordedArguments {
    Names(Vec<String>),
    Values(Map<String, Value>),
}

impl Record {
    pub(crate) fn now(kind: RecordKind) -> Self {
        Self { time: SystemTime::now(), kind }
    }

    /// The record of `job`, which ended with `outcome`. The values of its arguments are included only with `redaction`.
    pub(crate) fn from_call(job: &Job, outcome: &'static str, values: Option<&ArgumentRedaction>) -> Self {
        let target = job.target();
        let arguments = match values {
            Some(redaction) => RecordedArguments::Values(redaction.redact(job.arguments(), BYTES_MAX)),
            None => RecordedArguments::Names(argument_names(job.arguments())),
        };
        Self::now(RecordKind::Call(Box::new(CallRecord {
            caller: RecordCaller::from_caller(job.caller()),
            target: (target.kind(), truncate(target.name(), NAME_BYTES_MAX).to_owned()),
            called_tool: job.called_tool().map(str::to_owned),
            arguments,
            statements: job.take_statements(),
            rows: job.usage().rows(),
            bytes: job.usage().bytes(),
            secrets: job.protection().secret_count(),
            missing_nodes: job.missing_nodes().map(|missing| truncate(&missing.names(), NAME_BYTES_MAX).to_owned()),
            outcome,
            elapsed_ms: u64::try_from(job.elapsed().as_millis()).unwrap_or(u64::MAX),
            job: job.id(),
        })))
    }

    pub(crate) fn from_refused_call(caller: &Caller, kind: &'static str, name: &str, outcome: &'static str) -> Self {
        let target = (kind, truncate(name, NAME_BYTES_MAX).to_owned());
        Self::now(RecordKind::RefusedCall { caller: RecordCaller::from_caller(caller), target, outcome })
    }
}

impl RefusedMessage {
    pub(crate) fn new(origin: CallOrigin, reason: &str) -> Self {
        Self { principal: None, origin, reason: truncate(reason, NAME_BYTES_MAX).to_owned(), times: 1 }
    }

    pub(crate) fn rate_limited(caller: &Caller, level: LimitLevel) -> Self {
        let reason = format!("too many requests: the limit of the {}", level.name());
        Self { principal: Some(caller.principal.clone()), ..Self::new(caller.origin, &reason) }
    }
}

impl From<RefusedMessage> for RecordKind {
    fn from(message: RefusedMessage) -> Self {
        Self::RefusedMessage(message)
    }
}

impl RecordCaller {
    fn from_caller(caller: &Caller) -> Self {
        Self { principal: caller.principal.clone(), origin: caller.origin }
    }
}

/// Limits of the logged arguments of one call.
const MEMBERS_MAX: usize = 64;
const ARGUMENT_NAME_BYTES_MAX: usize = 128;
const BYTES_MAX: usize = 16 * 1_024;

fn argument_names(arguments: &Map<String, Value>) -> Vec<String> {
    arguments.keys().take(MEMBERS_MAX).map(|name| truncate(name, ARGUMENT_NAME_BYTES_MAX).to_owned()).collect()
}

/// The beginning of `text`, of so many bytes at most.
pub(crate) fn truncate(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}
