//! The body of the request that made a call: bytes that the handler reads while they arrive.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt};
use parking_lot::Mutex;
use tidegate_core::{Error, ErrorKind};
use tokio::time::Instant;

use super::Job;

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
                () = self.job.cancelled() => return Err(Error::new(ErrorKind::Cancelled, "the call was cancelled")),
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
