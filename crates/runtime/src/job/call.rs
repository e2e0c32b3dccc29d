//! A request to the registry, built by a transport, and what the registry adds when it admits it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tidegate_core::{
    Budget, CallLimits, CallTarget, Caller, ClientCapabilities, Format, Limits, LogLevel, ProvidedAnswer,
    TemplateVariables,
};
use tokio_util::sync::CancellationToken;

use super::Job;
use super::request_body::RequestBody;
use crate::snapshot::Snapshot;

/// The JSON-RPC request that made a call. Handlers in a database receive it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientRequest {
    /// The id as JSON text: a string or a number.
    pub id: Arc<str>,
    /// `params._meta` as JSON text: an object.
    pub meta: Option<Arc<str>>,
}

/// One call of a registry entry: its target, arguments, caller and options.
#[derive(Debug, Clone)]
pub struct Call {
    /// The entry to call.
    pub target: CallTarget,
    /// The arguments; checked against the target's schema before the handler runs.
    pub arguments: Map<String, Value>,
    /// The values of a resource template's variables, percent-decoded. The registry sets them.
    pub variables: TemplateVariables,
    /// The principal and the origin of the call.
    pub caller: Caller,
    /// The maximum inline size that the transport can carry. The limits of the entry and of the registry apply too.
    pub inline_limit: Budget,
    /// The format of an answer that is a body of its own; `None` for content that a model reads. A body has no budget
    /// except that of its entry.
    pub format: Option<Format>,
    /// Whether the caller requests progress.
    pub wants_progress: bool,
    /// The least severe log message that the caller requests; `None` for no messages.
    pub log_level: Option<LogLevel>,
    /// The JSON-RPC request that made the call; `None` for other calls, such as those over REST.
    pub client_request: Option<ClientRequest>,
    /// The body of the request, for a tool that [takes one](crate::Tool::request_body); the handler reads it while it
    /// arrives.
    pub request_body: Option<RequestBody>,
    /// The caller's W3C `traceparent`, which links our log lines to its trace.
    pub trace_parent: Option<String>,
    /// Whether the whole call is logged, whatever the log level. Applies to operators of the node only.
    pub trace: bool,
    /// The running call on whose behalf this one is made. This call then waits for no permit of its own: if both
    /// waited, each could wait for the other. While this call waits for input, both calls pause.
    pub on_behalf_of: Option<Arc<Job>>,
    /// The capabilities that the client declared.
    pub client_capabilities: ClientCapabilities,
    /// Whether the client answers input requests while the handler runs. Otherwise the handler runs again with the
    /// answers.
    pub supports_live_input: bool,
    /// Answers to the handler's input requests, by key, from earlier rounds of the same call.
    pub input_answers: BTreeMap<String, ProvidedAnswer>,
    /// Cancels the call. Dropping the [`crate::Reply`] cancels it as well.
    pub cancellation: CancellationToken,
}

impl Call {
    /// A call of `target` without arguments and options.
    pub fn new(target: CallTarget, caller: Caller) -> Self {
        Self {
            target,
            arguments: Map::new(),
            variables: TemplateVariables::new(),
            caller,
            inline_limit: Budget::default(),
            format: None,
            wants_progress: false,
            log_level: None,
            client_request: None,
            request_body: None,
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

/// What the registry determines for a call when it admits it.
#[derive(Debug)]
pub(crate) struct CallTerms {
    /// The limits of the registry, with those of the entry and of the transport in their place.
    pub(crate) limits: Limits,
    /// The snapshot with which the caller was authenticated.
    pub(crate) snapshot: Arc<Snapshot>,
}

impl CallTerms {
    /// The limits of the entry, `own`, come before those of the snapshot.
    pub(crate) fn new(call: &Call, own: &CallLimits, snapshot: Arc<Snapshot>) -> Self {
        let all = *snapshot.limits();
        let budget = match call.format {
            None => own.inline.unwrap_or(all.inline),
            Some(_) => own.body.or(own.inline).unwrap_or_default(),
        };
        let limits = Limits {
            timeout: own.timeout.unwrap_or(all.timeout),
            inline: budget.and(call.inline_limit),
            task_after: own.task_after.unwrap_or(all.task_after),
            batch_rows: own.batch_rows.or(all.batch_rows).filter(|_| matches!(call.target, CallTarget::Tool(_))),
            // The time limit of an entry applies to its tasks, too.
            task_timeout: if own.timeout.is_some() { Duration::ZERO } else { all.task_timeout },
            ..all
        };
        Self { limits, snapshot }
    }
}
