//! A request to the registry, built by a transport.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use serde_json::{Map, Value};
use tidegate_core::{
    AnswerProtection, Budget, CallTarget, Caller, ClientCapabilities, Format, Limits, LogLevel, ProvidedAnswer,
    RowPolicyFingerprints, TemplateVariables,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::call_timer::CallTimer;
use super::client_log::ClientLog;
use super::request_body::RequestBody;
use super::status::{JobId, JobState};
use super::{InteractionState, Job};
use crate::event::EventDispatcher;
use crate::limits::UsageCharges;

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

    pub(crate) fn into_job(
        self,
        variables: TemplateVariables,
        inline_budget: Budget,
        timeout: Duration,
        limits: &Limits,
        charges: UsageCharges,
    ) -> Job {
        let interaction = InteractionState {
            client_capabilities: self.client_capabilities,
            input_answers: self.input_answers,
            supports_live_input: AtomicBool::new(self.supports_live_input),
            on_behalf_of: self.on_behalf_of,
            task_requested: CancellationToken::new(),
            task_started: CancellationToken::new(),
            input_timeout: limits.input_timeout,
            task_after: limits.task_after,
            task_timeout: limits.task_timeout,
            permit_queues: OnceLock::new(),
            held_permits: Mutex::default(),
            reacquire_lock: tokio::sync::Mutex::default(),
        };
        Job {
            // From a seeded generator: the system's one costs a call of the kernel.
            id: JobId(uuid::Builder::from_random_bytes(rand::random()).into_uuid()),
            target: self.target,
            arguments: self.arguments,
            variables,
            caller: self.caller,
            inline_budget,
            format: self.format,
            batch_rows: None,
            wants_progress: self.wants_progress,
            progress_throttle: Mutex::default(),
            log_level: self.log_level,
            client_log: ClientLog::default(),
            events: EventDispatcher::default(),
            client_request: self.client_request,
            request_body: self.request_body,
            client_cancellation: self.cancellation,
            cancellation: CancellationToken::new(),
            timer: CallTimer::new(timeout),
            is_in_background: AtomicBool::new(false),
            interaction,
            is_audited: false,
            audited_statements: Mutex::default(),
            protection: AnswerProtection::default(),
            secret_count: AtomicU64::new(0),
            fence: OnceLock::new(),
            row_policies: RowPolicyFingerprints::default(),
            result_uri: OnceLock::new(),
            answer_age: OnceLock::new(),
            completeness: Mutex::default(),
            databases: Mutex::default(),
            started_at: SystemTime::now(),
            started: Instant::now(),
            rows: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            charges,
            state: Mutex::new((JobState::Waiting, None)),
            timeout_error: OnceLock::new(),
        }
    }
}
