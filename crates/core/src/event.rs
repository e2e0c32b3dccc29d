//! The closed list of events that the process tells about itself.
//!
//! Log, metrics and whatever comes later subscribe to this list; nothing else counts or logs calls.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::auditor::Auditor;
use crate::caller::Caller;
use crate::job::Job;
use crate::limits::{LimitLevel, LimitMeasure};
use crate::principal::TransportKind;

/// Something that happened.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// A call passed the door and waits or runs.
    CallStarted {
        /// The call.
        job: &'a Job,
    },
    /// A call ended; its outcome is the job's state.
    CallEnded {
        /// The call.
        job: &'a Job,
        /// How it ended: `last_progress` or an error kind's name.
        outcome: &'static str,
    },
    /// A call was refused at the door.
    CallRefused {
        /// Who called.
        caller: &'a Caller,
        /// The sort of target.
        kind: &'static str,
        /// The name asked for.
        name: &'a str,
        /// The error kind's name.
        outcome: &'static str,
    },
    /// Somebody reached a bound: a request or a call was refused, or a call was ended.
    LimitReached {
        /// Who called.
        caller: &'a Caller,
        /// Whose bound it is.
        level: LimitLevel,
        /// What is bounded.
        measure: LimitMeasure,
    },
    /// A query ended, well or not.
    QueryEnded {
        /// Which database.
        database: &'a str,
        /// How long it ran.
        elapsed: Duration,
        /// Rows it gave.
        rows: u64,
    },
    /// A fault of ours, whose detail only the log may show.
    InternalError {
        /// The id that the caller was told; the job's id if it was told none.
        id: Uuid,
        /// What happened.
        detail: &'a str,
    },
    /// A connection was opened.
    ConnectionOpened {
        /// On which transport.
        transport: TransportKind,
    },
    /// A connection was closed.
    ConnectionClosed {
        /// On which transport.
        transport: TransportKind,
    },
    /// A session was opened: a legacy one over Streamable HTTP, or a connection that is one.
    SessionOpened {
        /// On which transport.
        transport: TransportKind,
    },
    /// A session ended.
    SessionClosed {
        /// On which transport.
        transport: TransportKind,
    },
    /// A message was refused before it became a call.
    MessageRefused {
        /// On which transport.
        transport: TransportKind,
        /// The peer's address; none where there is no network.
        peer: Option<IpAddr>,
        /// Why, in a few words.
        reason: &'a str,
    },
    /// The registry was swapped.
    RegistryChanged {
        /// Its new version.
        version: u64,
    },
}

/// Somebody who hears of events. Must not block.
pub trait Subscriber: Send + Sync + 'static {
    /// Hears `event`.
    fn on_event(&self, event: Event<'_>);
}

/// Those who hear of events.
#[derive(Clone, Default)]
pub struct EventDispatcher {
    subscribers: Arc<[Arc<dyn Subscriber>]>,
    auditor: Option<Arc<dyn Auditor>>,
}

impl EventDispatcher {
    /// Events that go to `subscribers`, in order.
    pub fn new(subscribers: impl IntoIterator<Item = Arc<dyn Subscriber>>) -> Self {
        Self { subscribers: subscribers.into_iter().collect(), auditor: None }
    }

    /// The same, which `auditor` hears of as well; it writes down every call of the registry that tells of them.
    #[must_use]
    pub fn with_auditor(self, auditor: Arc<dyn Auditor>) -> Self {
        let subscribers = self.subscribers.iter().cloned();
        let subscribers = subscribers.chain([auditor.clone() as Arc<dyn Subscriber>]).collect();
        Self { subscribers, auditor: Some(auditor) }
    }

    /// Who writes down every call.
    pub(crate) fn auditor(&self) -> Option<&Arc<dyn Auditor>> {
        self.auditor.as_ref()
    }

    /// Tells everybody.
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

/// Of what callers send (names, URIs, reasons that quote them) so many bytes are logged.
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
            Event::CallEnded { job, outcome } => tracing::info!(
                job = %job.id(),
                kind = job.target().kind(),
                name = truncate_for_log(job.target().name()),
                outcome,
                transport = job.caller().origin.transport.name(),
                subject = job.principal().subject,
                tenant = job.principal().tenant,
                rows = job.rows(),
                bytes = job.bytes(),
                elapsed_ms = job.elapsed().as_millis() as u64,
                "call ended"
            ),
            Event::CallRefused { kind, name, outcome, .. } => {
                tracing::info!(kind, name = truncate_for_log(name), outcome, "call refused");
            }
            // Whoever asks too often must not fill the log as well; the metrics count it.
            Event::LimitReached { caller, level, measure } => tracing::debug!(
                level = level.name(),
                measure = measure.name(),
                subject = caller.principal.subject,
                tenant = caller.principal.tenant,
                "limit reached"
            ),
            Event::QueryEnded { database, elapsed, rows } => {
                tracing::debug!(database, elapsed_ms = elapsed.as_millis() as u64, rows, "query ended");
            }
            Event::InternalError { id, detail } => tracing::error!(%id, detail, "internal error"),
            Event::ConnectionOpened { transport } => {
                tracing::debug!(transport = transport.name(), "connection opened");
            }
            Event::ConnectionClosed { transport } => {
                tracing::debug!(transport = transport.name(), "connection closed");
            }
            Event::SessionOpened { transport } => tracing::debug!(transport = transport.name(), "session opened"),
            Event::SessionClosed { transport } => tracing::debug!(transport = transport.name(), "session closed"),
            Event::MessageRefused { transport, peer, reason } => {
                let peer = peer.map(tracing::field::display);
                tracing::info!(
                    transport = transport.name(),
                    peer,
                    reason = truncate_for_log(reason),
                    "message refused"
                );
            }
            Event::RegistryChanged { version } => tracing::debug!(version, "registry changed"),
        }
    }
}

/// What a caller sent, as far as the log takes it.
fn truncate_for_log(text: &str) -> &str {
    &text[..text.floor_char_boundary(LOGGED_BYTES_MAX)]
}
