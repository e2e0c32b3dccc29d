//! The complete list of events of the process.
//!
//! Log, metrics and the log messages for clients subscribe to this list. Nothing else counts or logs calls. The messages
//! for clients are the events of a call, for its own caller, at the level that the client requests. A message contains fixed
//! text, numbers, and names that the caller used itself. It never contains arguments, SQL or the detail of an error.

use std::collections::VecDeque;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tidegate_core::{Caller, Error, ErrorKind, LimitLevel, LimitMeasure, LogLevel, MissingNodes, TransportKind};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::job::Job;
use crate::reply::ReplyNotification;

/// An event of the process.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// A call was accepted; it waits or runs.
    CallStarted {
        /// The call.
        job: &'a Job,
    },
    /// A call waits for other calls to end.
    CallWaiting {
        /// The call.
        job: &'a Job,
    },
    /// A call ended; its outcome is the state of the job.
    CallEnded {
        /// The call.
        job: &'a Job,
        /// The outcome: `done`, or the name of an error kind.
        outcome: &'static str,
    },
    /// A call was refused before its handler ran.
    CallRefused {
        /// The caller.
        caller: &'a Caller,
        /// The kind of target.
        kind: &'static str,
        /// The requested name.
        name: &'a str,
        /// The name of the error kind.
        outcome: &'static str,
    },
    /// A caller reached a limit: a request or a call was refused, or a call was ended.
    LimitReached {
        /// The caller.
        caller: &'a Caller,
        /// The level of the limit.
        level: LimitLevel,
        /// The limited quantity.
        measure: LimitMeasure,
    },
    /// A query of a call made a step.
    QueryStep {
        /// The call.
        job: &'a Job,
        /// The step.
        step: QueryStep<'a>,
    },
    /// A query ended, with or without an error.
    QueryEnded {
        /// The call.
        job: &'a Job,
        /// The database.
        database: &'a str,
        /// The run time.
        elapsed: Duration,
        /// The number of rows returned.
        rows: u64,
    },
    /// An error with a detail that only the log may contain.
    ErrorDetail {
        /// The id that the caller received; the id of the job if the caller received none.
        id: Uuid,
        /// The kind of the error; `Internal` is a fault of the server.
        kind: ErrorKind,
        /// Whether only the owner can correct it, in the configuration.
        is_configuration_fault: bool,
        /// The detail.
        detail: &'a str,
    },
    /// A connection was opened.
    ConnectionOpened {
        /// The transport.
        transport: TransportKind,
    },
    /// A connection was closed.
    ConnectionClosed {
        /// The transport.
        transport: TransportKind,
    },
    /// The server has no room for further connections.
    ConnectionsScarce {
        /// The limit, and what happens to further connections.
        problem: &'a str,
    },
    /// A session was opened: a legacy session over Streamable HTTP, or a connection that is a session.
    SessionOpened {
        /// The transport.
        transport: TransportKind,
    },
    /// A session ended.
    SessionClosed {
        /// The transport.
        transport: TransportKind,
    },
    /// A request of MCP was admitted, whether it is a call or not.
    RequestAdmitted {
        /// The method; `other` for one that no revision has.
        method: &'static str,
        /// The transport.
        transport: TransportKind,
    },
    /// A message was refused before it became a call.
    MessageRefused {
        /// The transport.
        transport: TransportKind,
        /// The peer's address; `None` without a network.
        peer: Option<IpAddr>,
        /// The reason, in a few words.
        reason: &'a str,
    },
    /// An operator stopped or started a group of transports.
    TransportSwitched {
        /// The operator.
        caller: &'a Caller,
        /// The group.
        group: &'static str,
        /// The new state.
        state: &'static str,
    },
    /// The registry was replaced.
    RegistryChanged {
        /// The new version of the registry.
        version: u64,
    },
}

/// A step of a query.
#[derive(Debug, Clone, Copy)]
pub enum QueryStep<'a> {
    /// The statement is planned.
    Planning {
        /// The database.
        database: &'a str,
    },
    /// The plan runs.
    Running {
        /// The database.
        database: &'a str,
    },
    /// An earlier answer is used.
    Cached,
    /// A member of a federated database is queried.
    MemberRunning {
        /// The member.
        member: &'a str,
    },
    /// The statement runs again.
    Retried {
        /// The reason, in a few words without data.
        reason: &'static str,
    },
    /// Operators exceeded their memory and wrote temporary files.
    Spilled {
        /// The number of files.
        files: usize,
        /// The size of the files.
        bytes: usize,
    },
    /// The rows are stored, because they do not fit into the answer.
    Storing {
        /// The maximum number of stored rows, if the call has a row limit.
        rows_max: Option<u64>,
    },
    /// The answer lacks the rows of some nodes of a network.
    NodesMissing {
        /// The nodes.
        nodes: &'a MissingNodes,
    },
    /// The answer ends although more rows exist.
    Truncated {
        /// The number of rows in the answer.
        rows: u64,
    },
}

/// Receives events. Must not block.
pub trait Subscriber: Send + Sync + 'static {
    /// Handles `event`.
    fn on_event(&self, event: Event<'_>);
}

/// Sends events to subscribers.
#[derive(Clone, Default)]
pub struct EventDispatcher {
    subscribers: Arc<[Arc<dyn Subscriber>]>,
    auditor: Option<Arc<dyn Auditor>>,
}

impl EventDispatcher {
    /// Sends events to `subscribers`, in order.
    pub fn new(subscribers: impl IntoIterator<Item = Arc<dyn Subscriber>>) -> Self {
        Self { subscribers: subscribers.into_iter().collect(), auditor: None }
    }

    /// Adds `auditor` as a subscriber. It also records every call of the registry that uses this dispatcher.
    #[must_use]
    pub fn with_auditor(self, auditor: Arc<dyn Auditor>) -> Self {
        let subscribers = self.subscribers.iter().cloned();
        let subscribers = subscribers.chain([auditor.clone() as Arc<dyn Subscriber>]).collect();
        Self { subscribers, auditor: Some(auditor) }
    }

    pub(crate) fn auditor(&self) -> Option<&Arc<dyn Auditor>> {
        self.auditor.as_ref()
    }

    /// Emits the detail of `error`, if it has one, under the id that the caller received, or else under `id`.
    pub fn emit_error_detail(&self, error: &Error, id: Uuid) {
        if let Some(detail) = error.detail() {
            self.emit(Event::ErrorDetail {
                id: error.id().unwrap_or(id),
                kind: error.kind(),
                is_configuration_fault: error.is_configuration_fault(),
                detail,
            });
        }
    }

    /// Sends `event` to all subscribers.
    pub fn emit(&self, event: Event<'_>) {
        for subscriber in self.subscribers.iter() {
            subscriber.on_event(event);
        }
    }
}

impl fmt::Debug for EventDispatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EventDispatcher({})", self.subscribers.len())
    }
}

/// The maximum length in the log of text that callers send: names, URIs, reasons that quote them.
const LOGGED_BYTES_MAX: usize = 256;

/// The log: writes each event as a structured line through `tracing`.
#[derive(Debug, Default)]
pub struct LogSubscriber;

impl Subscriber for LogSubscriber {
    fn on_event(&self, event: Event<'_>) {
        match event {
            Event::CallStarted { job } => {
                tracing::debug!(job = %job.id(), kind = job.target().kind(), name = truncate_for_log(job.target().name()), "call started");
            }
            Event::CallWaiting { job } => tracing::debug!(job = %job.id(), "call waiting"),
            Event::QueryStep { job, step } => tracing::debug!(job = %job.id(), ?step, "query step"),
            Event::CallEnded { job, outcome } => tracing::info!(
                job = %job.id(),
                kind = job.target().kind(),
                name = truncate_for_log(job.target().name()),
                outcome,
                transport = job.caller().origin.transport.name(),
                subject = job.principal().subject,
                tenant = job.principal().tenant,
                rows = job.usage().rows(),
                bytes = job.usage().bytes(),
                elapsed_ms = job.elapsed().as_millis() as u64,
                missing_nodes = job.missing_nodes().map(|missing| missing.names()),
                "call ended"
            ),
            Event::CallRefused { kind, name, outcome, .. } => {
                tracing::info!(kind, name = truncate_for_log(name), outcome, "call refused");
            }
            // Debug only: a caller with too many requests must not fill the log. The metrics count it.
            Event::LimitReached { caller, level, measure } => tracing::debug!(
                level = level.name(),
                measure = measure.name(),
                subject = caller.principal.subject,
                tenant = caller.principal.tenant,
                "limit reached"
            ),
            Event::QueryEnded { database, elapsed, rows, .. } => {
                tracing::debug!(database, elapsed_ms = elapsed.as_millis() as u64, rows, "query ended");
            }
            Event::ErrorDetail { id, kind, is_configuration_fault, detail } => {
                log_error_detail(id, kind, is_configuration_fault, detail);
            }
            Event::ConnectionOpened { transport } => {
                tracing::debug!(transport = transport.name(), "connection opened");
            }
            Event::ConnectionClosed { transport } => {
                tracing::debug!(transport = transport.name(), "connection closed");
            }
            Event::ConnectionsScarce { problem } => tracing::warn!("{problem}"),
            Event::SessionOpened { transport } => tracing::debug!(transport = transport.name(), "session opened"),
            Event::SessionClosed { transport } => tracing::debug!(transport = transport.name(), "session closed"),
            // Only counted: the call that it becomes is logged.
            Event::RequestAdmitted { .. } => {}
            Event::MessageRefused { transport, peer, reason } => {
                let peer = peer.map(tracing::field::display);
                tracing::info!(
                    transport = transport.name(),
                    peer,
                    reason = truncate_for_log(reason),
                    "message refused"
                );
            }
            Event::TransportSwitched { caller, group, state } => {
                tracing::info!(transport = group, state, subject = caller.principal.subject, "transport switched");
            }
            Event::RegistryChanged { version } => tracing::debug!(version, "registry changed"),
        }
    }
}

fn log_error_detail(id: Uuid, kind: ErrorKind, is_configuration_fault: bool, detail: &str) {
    match kind {
        ErrorKind::Internal => tracing::error!(%id, detail, "internal error"),
        ErrorKind::Unavailable => tracing::warn!(%id, detail, "a component is unavailable"),
        _ if is_configuration_fault => tracing::warn!(%id, detail, "the configuration must be corrected"),
        // Debug only: it is the caller's mistake, and the detail may quote rows.
        _ => tracing::debug!(%id, kind = kind.name(), detail, "detail of a caller's error"),
    }
}

fn truncate_for_log(text: &str) -> &str {
    &text[..text.floor_char_boundary(LOGGED_BYTES_MAX)]
}

/// Writes an audit line for every call.
///
/// An auditor learns of refused calls and messages as a [`Subscriber`], and nothing waits for these lines. A call waits
/// until its line is reserved, so that no call runs without a record.
#[async_trait]
pub trait Auditor: Subscriber {
    /// Waits until the line of a call that is about to start is reserved.
    ///
    /// # Errors
    /// `Unavailable` if no line can be reserved in time. The call does not run then.
    async fn reserve(&self) -> Result<Box<dyn AuditReservation>, Error>;

    /// Records a call that ended with `outcome` before its line was reserved. Must not block.
    fn record_unreserved(&self, job: &Job, outcome: &'static str);

    /// The counters of this auditor.
    fn stats(&self) -> AuditStats;
}

/// The reserved line of one call. Dropping it releases the reservation.
pub trait AuditReservation: Send {
    /// Records that `job` ended with `outcome`. Must not block.
    fn write(self: Box<Self>, job: &Job, outcome: &'static str);
}

/// The counters of an auditor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AuditStats {
    /// Lines written.
    pub written: u64,
    /// Lines dropped.
    pub dropped: u64,
    /// Lines that wait to be written.
    pub waiting: u64,
    /// Whether nothing can be written, so that calls wait and are refused.
    pub is_blocked: bool,
}

const CALL: &str = "call";
const QUERY: &str = "query";

/// Puts the events of a call into its reply as log messages.
#[derive(Debug, Default)]
pub struct ClientLogSubscriber;

impl Subscriber for ClientLogSubscriber {
    fn on_event(&self, event: Event<'_>) {
        match event {
            Event::CallStarted { job } => {
                job.client_log.log(LogLevel::Debug, CALL, || json!({"message": "the call was accepted"}));
            }
            Event::CallWaiting { job } => {
                job.client_log.log(
                    LogLevel::Info,
                    CALL,
                    || json!({"message": "the call waits for other calls to end"}),
                );
            }
            Event::CallEnded { job, outcome } => job.client_log.log(stage_level(job), CALL, || {
                json!({
                    "message": "the call ended", "outcome": outcome, "rows": job.usage().rows(),
                    "bytes": job.usage().bytes(),
                    "elapsed_ms": job.elapsed().as_millis() as u64,
                })
            }),
            Event::QueryEnded { job, database, elapsed, rows } => job.client_log.log(LogLevel::Debug, QUERY, || {
                let message =
                    json!({"message": "the query ended", "rows": rows, "elapsed_ms": elapsed.as_millis() as u64});
                with_database(message, job, database)
            }),
            Event::QueryStep { job, step } => log_step(job, step),
            _ => {}
        }
    }
}

/// The level of the stages that each call has. A client that requests `info` wants them; libraries that request `debug`
/// with each call, such as FastMCP, show their user what is above it.
fn stage_level(job: &Job) -> LogLevel {
    match job.request().log_level {
        Some(LogLevel::Info) => LogLevel::Info,
        _ => LogLevel::Debug,
    }
}

fn log_step(job: &Job, step: QueryStep<'_>) {
    match step {
        QueryStep::Planning { database } => job.client_log.log(LogLevel::Debug, QUERY, || {
            with_database(json!({"message": "the query is planned"}), job, database)
        }),
        QueryStep::Running { database } => job.client_log.log(stage_level(job), QUERY, || {
            with_database(json!({"message": "the query runs"}), job, database)
        }),
        QueryStep::Cached => {
            job.client_log.log(stage_level(job), QUERY, || json!({"message": "an earlier answer is still valid"}));
        }
        QueryStep::MemberRunning { member } => job.client_log.log(stage_level(job), QUERY, || {
            with_names(json!({"message": "a member database is queried"}), job, "member", || member.into())
        }),
        QueryStep::Retried { reason } => job.client_log.log(LogLevel::Notice, QUERY, || {
            json!({"message": "the query runs again", "reason": reason})
        }),
        QueryStep::Spilled { files, bytes } => job.client_log.log(LogLevel::Notice, QUERY, || {
            json!({"message": "the query exceeded its memory and used temporary files", "files": files, "bytes": bytes})
        }),
        QueryStep::Storing { rows_max } => job.client_log.log(LogLevel::Notice, QUERY, || {
            let mut message = json!({"message": "the rows do not fit into the answer and are stored"});
            if let Some(rows_max) = rows_max {
                message["rows_max"] = rows_max.into();
            }
            message
        }),
        QueryStep::NodesMissing { nodes } => job.client_log.log(LogLevel::Warning, QUERY, || {
            let message = json!({"message": "the answer is partial: nodes are missing", "count": nodes.nodes.len()});
            with_names(message, job, "nodes", || nodes.names().into())
        }),
        QueryStep::Truncated { rows } => job.client_log.log(LogLevel::Warning, QUERY, || {
            json!({"message": "the answer is partial: more rows exist", "rows": rows})
        }),
    }
}

/// Adds names, unless the owner declared the query: its databases may be hidden from the caller.
fn with_names(mut message: Value, job: &Job, key: &str, names: impl FnOnce() -> Value) -> Value {
    if !job.databases().is_empty() {
        message[key] = names();
    }
    message
}

/// Adds the database if the caller queries it with its own rights.
fn with_database(mut message: Value, job: &Job, database: &str) -> Value {
    if job.databases().contains(database) {
        message["database"] = database.into();
    }
    message
}

/// The maximum number of messages that wait; further ones are left out and counted.
const WAITING_MESSAGES_MAX: usize = 64;
/// The maximum number of messages of a call, with those about messages that were left out. The last one is of these.
const MESSAGES_MAX: usize = 1_000;

/// A bounded queue. Events must not wait for a slow client.
#[derive(Debug, Default)]
pub(crate) struct ClientLog {
    /// The least severe level that the client requests.
    level: Option<LogLevel>,
    queue: Mutex<MessageQueue>,
    added: Notify,
}

#[derive(Debug, Default)]
struct MessageQueue {
    waiting: VecDeque<ReplyNotification>,
    /// The messages that wait or were sent.
    count: usize,
    /// The messages that were left out and that no message has counted.
    left_out: usize,
}

impl ClientLog {
    pub(crate) fn new(level: Option<LogLevel>) -> Self {
        Self { level, ..Self::default() }
    }

    /// Logs the message `data`, if the client requests messages of `level`.
    pub(crate) fn log(&self, level: LogLevel, logger: &str, data: impl FnOnce() -> Value) {
        if self.level.is_some_and(|least| level >= least) {
            let logger = Some(logger.to_owned());
            self.push(ReplyNotification::Log { level, logger, data: data() });
        }
    }

    fn push(&self, message: ReplyNotification) {
        let mut queue = self.queue.lock();
        if queue.waiting.len() >= WAITING_MESSAGES_MAX || queue.count + 1 >= MESSAGES_MAX {
            queue.left_out += 1;
        } else {
            queue.count += 1;
            queue.waiting.push_back(message);
        }
        drop(queue);
        self.added.notify_one();
    }

    /// The next message that waits, or else the number of those that were left out.
    pub(crate) fn pop(&self) -> Option<ReplyNotification> {
        let mut queue = self.queue.lock();
        if let Some(message) = queue.waiting.pop_front() {
            return Some(message);
        }
        let left_out = std::mem::take(&mut queue.left_out);
        if left_out == 0 || queue.count >= MESSAGES_MAX {
            return None;
        }
        queue.count += 1;
        let data = match queue.count < MESSAGES_MAX {
            true => json!({"message": "log messages were left out", "count": left_out}),
            false => json!({"message": "all further log messages are left out", "count_max": MESSAGES_MAX}),
        };
        Some(ReplyNotification::Log { level: LogLevel::Warning, logger: Some(CALL.to_owned()), data })
    }

    /// Resolves when a message was added. Cancel-safe.
    pub(crate) async fn added(&self) {
        self.added.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_counts_what_it_leaves_out() {
        let log = ClientLog::default();
        let message =
            |number: usize| ReplyNotification::Log { level: LogLevel::Info, logger: None, data: json!(number) };
        (0..WAITING_MESSAGES_MAX + 3).for_each(|number| log.push(message(number)));
        for number in 0..WAITING_MESSAGES_MAX {
            assert_eq!(log.pop(), Some(message(number)));
        }
        let Some(ReplyNotification::Log { data, .. }) = log.pop() else { panic!("the count is missing") };
        assert_eq!(data["count"], 3);
        assert_eq!(log.pop(), None);
    }

    #[test]
    fn the_last_message_of_a_call_is_that_no_more_follow() {
        let log = ClientLog::default();
        let mut sent = Vec::new();
        for number in 0..2 * MESSAGES_MAX {
            log.push(ReplyNotification::Log { level: LogLevel::Info, logger: None, data: json!(number) });
            sent.extend(log.pop());
        }
        assert_eq!((sent.len(), log.pop()), (MESSAGES_MAX, None));
        let Some(ReplyNotification::Log { data, .. }) = sent.last() else { panic!("no message") };
        assert_eq!(data["message"], "all further log messages are left out");
    }
}
