//! A request to the registry, built by a transport, with its body, which the handler reads while it arrives; and what
//! the registry adds when it admits the request.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tidegate_core::{
    Budget, CallLimits, CallTarget, Caller, ClientCapabilities, Error, ErrorKind, Format, Limits, LogLevel,
    ProvidedAnswer, TemplateVariables,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Job;
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
    /// The format of a raw body; `None` for content that a model reads. A raw body has no budget except that of its
    /// entry.
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
            // The time limit of an entry applies to its tasks, too.
            task_timeout: if own.timeout.is_some() { Duration::ZERO } else { all.task_timeout },
            ..all
        };
        Self { limits, snapshot }
    }
}

/// A call may run longer by the time that its body takes at this speed. A sender that is slower reaches the time limit.
const BYTES_PER_SECOND_MIN: u64 = 16 * 1024;

type BodyStream = Pin<Box<dyn Stream<Item = Result<Bytes, Error>> + Send>>;

/// The body of the request that made a call. Clones are the same body, and it can be read once.
#[derive(Clone)]
pub struct RequestBody(Arc<RequestBodyParts>);

struct RequestBodyParts {
    media_type: String,
    coding: Option<String>,
    bytes_max: u64,
    time_for_next: Option<Duration>,
    stream: Mutex<Option<BodyStream>>,
}

impl RequestBody {
    /// A body of at most `bytes_max` bytes, as they are sent. `media_type` is the value of `Content-Type`, `coding` that of
    /// `Content-Encoding`. An error of `stream` means that the body is incomplete. Nothing is read ahead of the handler.
    pub fn new(
        media_type: impl Into<String>,
        coding: Option<String>,
        bytes_max: u64,
        stream: impl Stream<Item = Result<Bytes, Error>> + Send + 'static,
    ) -> Self {
        let stream = Mutex::new(Some(Box::pin(stream) as BodyStream));
        let media_type = media_type.into();
        Self(Arc::new(RequestBodyParts { media_type, coding, bytes_max, time_for_next: None, stream }))
    }

    /// Each piece, also an empty one, extends the time limit of the call to `time` from then on. Without this, only the
    /// bytes extend it. It has no effect on a body that has clones.
    #[must_use]
    pub fn with_time_for_next(mut self, time: Duration) -> Self {
        if let Some(parts) = Arc::get_mut(&mut self.0) {
            parts.time_for_next = Some(time);
        }
        self
    }
}

impl fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestBody").field("media_type", &self.0.media_type).finish_non_exhaustive()
    }
}

/// Reads the body of a call. Its bytes count to the usage of the caller.
pub struct RequestBodyReader {
    body: RequestBody,
    stream: BodyStream,
    job: Arc<Job>,
    bytes: u64,
    /// When the call reached its time limit if it had no body.
    deadline: Instant,
    end: Option<Result<(), Error>>,
}

impl Job {
    /// Takes the body of the request that made the call. `None` if there is none, or if it was taken before.
    pub fn take_request_body(self: &Arc<Self>) -> Option<RequestBodyReader> {
        let body = self.request.request_body.clone()?;
        let stream = body.0.stream.lock().take()?;
        Some(RequestBodyReader { body, stream, job: self.clone(), bytes: 0, deadline: self.deadline(), end: None })
    }
}

impl RequestBodyReader {
    /// The value of `Content-Type`, with its parameters.
    pub fn media_type(&self) -> &str {
        &self.body.0.media_type
    }

    /// The value of `Content-Encoding`, if the request has one.
    pub fn coding(&self) -> Option<&str> {
        self.body.0.coding.as_deref()
    }

    /// The number of bytes that were read so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The next bytes; `None` after the last ones, when the body is complete.
    ///
    /// # Errors
    /// `Cancelled` when the call is cancelled, `TooLarge` when the body exceeds its limit, and the error of the transport
    /// when the body breaks off or arrives too slowly. The same error is returned from then on.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        if let Some(end) = &self.end {
            return end.clone().map(|()| None);
        }
        let read = self.read().await;
        match &read {
            Ok(Some(_)) => {}
            Ok(None) => self.end = Some(Ok(())),
            Err(error) => self.end = Some(Err(error.clone())),
        }
        read
    }

    async fn read(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            let piece = tokio::select! {
                biased;
                () = self.job.cancelled() => return Err(Error::cancelled()),
                piece = self.stream.next() => piece,
            };
            if let Some(time) = self.body.0.time_for_next {
                self.job.extend(time);
            }
            let Some(piece) = piece.transpose()? else { return Ok(None) };
            if piece.is_empty() {
                continue;
            }
            self.bytes = self.bytes.saturating_add(piece.len() as u64);
            let bytes_max = self.body.0.bytes_max;
            if self.bytes > bytes_max {
                return Err(Error::new(ErrorKind::TooLarge, format!("the body is larger than {bytes_max} bytes")));
            }
            self.job.usage().count_bytes(piece.len());
            let allowed = self.deadline + Duration::from_secs(self.bytes / BYTES_PER_SECOND_MIN);
            self.job.extend(allowed.saturating_duration_since(Instant::now()));
            return Ok(Some(piece));
        }
    }
}

tidegate_core::impl_debug!(RequestBodyReader { body, bytes });
