//! Audit records, taken from a call while it ends and rendered by the writer thread.

use std::sync::Arc;
use std::time::SystemTime;

use serde_json::{Map, Value};
use tidegate_core::{AuditedStatement, CallOrigin, Caller, LimitLevel, Principal};
use tidegate_runtime::{Job, JobId};

use crate::redaction::{Redaction, argument_names, truncate};

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
    pub(crate) target: (&'static str, String),
    pub(crate) arguments: RecordedArguments,
    pub(crate) statements: Vec<AuditedStatement>,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    pub(crate) secrets: u64,
    /// The names of the nodes whose rows the answer lacks.
    pub(crate) missing_nodes: Option<String>,
    pub(crate) outcome: &'static str,
    pub(crate) elapsed_ms: u64,
    pub(crate) job: JobId,
}

pub(crate) enum RecordedArguments {
    Names(Vec<String>),
    Values(Map<String, Value>),
}

impl Record {
    pub(crate) fn now(kind: RecordKind) -> Self {
        Self { time: SystemTime::now(), kind }
    }

    /// The record of `job`, which ended with `outcome`. The values of its arguments are included only with `redaction`.
    pub(crate) fn from_call(job: &Job, outcome: &'static str, values: Option<&Redaction>) -> Self {
        let target = job.target();
        let arguments = match values {
            Some(redaction) => RecordedArguments::Values(redaction.redact(job.arguments())),
            None => RecordedArguments::Names(argument_names(job.arguments())),
        };
        Self::now(RecordKind::Call(Box::new(CallRecord {
            caller: RecordCaller::from_caller(job.caller()),
            target: (target.kind(), truncate(target.name(), NAME_BYTES_MAX).to_owned()),
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
