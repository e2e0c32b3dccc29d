//! The open connections: their maximum number, and which of them have a request.
//!
//! At the maximum, a further connection ends the oldest one without a request, so that idle clients cannot keep others
//! out. Connections beyond the maximum wait before anything is read from them.
//!
//! A connection breaks if its peer takes no written data within a timeout. Otherwise, a client that stops reading would keep
//! it and the pending data for as long as it likes.

use std::collections::BTreeMap;
use std::io::{self, Error, ErrorKind, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use http_body::{Frame, SizeHint};
use parking_lot::Mutex;
use tidegate_runtime::event::{Event, EventDispatcher};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep};
use tokio_util::sync::CancellationToken;

/// Interval of reports that connections are scarce.
const REPORT_EVERY: Duration = Duration::from_secs(10);

pub(super) struct Connections {
    max: usize,
    semaphore: Arc<Semaphore>,
    open: Mutex<OpenConnections>,
    idle_added: Notify,
    events: EventDispatcher,
    reported_at: Mutex<Option<Instant>>,
}

#[derive(Default)]
struct OpenConnections {
    next_number: u64,
    by_number: BTreeMap<u64, Arc<ConnectionActivity>>,
}

/// An open connection, until it is dropped.
pub(super) struct OpenConnection {
    number: u64,
    connections: Arc<Connections>,
    pub(super) activity: Arc<ConnectionActivity>,
}

pub(super) struct ConnectionActivity {
    /// The requests whose responses are not completely written to the connection.
    requests: AtomicUsize,
    idle_since: Mutex<Instant>,
    /// Fires when the connection has to make room.
    pub(super) ended: CancellationToken,
}

/// A request that is being answered.
pub(super) struct OpenRequest {
    connections: Arc<Connections>,
    activity: Arc<ConnectionActivity>,
}

impl Connections {
    pub(super) fn new(max: usize, events: EventDispatcher) -> Arc<Self> {
        Arc::new(Self {
            max,
            semaphore: Arc::new(Semaphore::new(max)),
            open: Mutex::default(),
            idle_added: Notify::new(),
            events,
            reported_at: Mutex::default(),
        })
    }

    /// A permit for a connection that was accepted. Ends idle connections until there is one.
    pub(super) async fn acquire_permit(&self) -> Option<OwnedSemaphorePermit> {
        loop {
            let mut idle_added = std::pin::pin!(self.idle_added.notified());
            idle_added.as_mut().enable();
            if let Ok(permit) = self.semaphore.clone().try_acquire_owned() {
                return Some(permit);
            }
            self.make_room(&format!("all {} connections are in use", self.max));
            tokio::select! {
                permit = self.semaphore.clone().acquire_owned() => return permit.ok(),
                () = idle_added => {}
            }
        }
    }

    /// Handles a failed accept: the client was gone already, or the process has too many open files.
    pub(super) fn handle_failed_accept(&self, error: &io::Error) {
        if error.kind() != io::ErrorKind::ConnectionAborted {
            self.make_room(&format!("a connection could not be accepted ({error})"));
        }
    }

    pub(super) fn open(self: &Arc<Self>) -> OpenConnection {
        let activity = Arc::new(ConnectionActivity {
            requests: AtomicUsize::new(0),
            idle_since: Mutex::new(Instant::now()),
            ended: CancellationToken::new(),
        });
        let mut open = self.open.lock();
        open.next_number += 1;
        let number = open.next_number;
        open.by_number.insert(number, activity.clone());
        OpenConnection { number, connections: self.clone(), activity }
    }

    /// Ends the oldest idle connection, if there is one, and reports it because of `problem`.
    fn make_room(&self, problem: &str) {
        let action = if self.end_oldest_idle() { "the oldest idle one is closed" } else { "further ones wait" };
        let mut reported_at = self.reported_at.lock();
        if reported_at.is_none_or(|time| time.elapsed() >= REPORT_EVERY) {
            *reported_at = Some(Instant::now());
            self.events.emit(Event::ConnectionsScarce { problem: &format!("{problem}; {action}") });
        }
    }

    fn end_oldest_idle(&self) -> bool {
        let open = self.open.lock();
        let idle = open.by_number.values().filter(|activity| !activity.has_request() && !activity.ended.is_cancelled());
        let oldest = idle.min_by_key(|activity| *activity.idle_since.lock());
        oldest.inspect(|activity| activity.ended.cancel()).is_some()
    }
}

impl ConnectionActivity {
    pub(super) fn has_request(&self) -> bool {
        self.requests.load(Ordering::Acquire) > 0
    }
}

impl OpenConnection {
    /// The beginning of a request, which lasts until the value is dropped.
    pub(super) fn begin_request(&self) -> OpenRequest {
        self.activity.requests.fetch_add(1, Ordering::AcqRel);
        OpenRequest { connections: self.connections.clone(), activity: self.activity.clone() }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.connections.open.lock().by_number.remove(&self.number);
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        *self.activity.idle_since.lock() = Instant::now();
        if self.activity.requests.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.connections.idle_added.notify_waiters();
        }
    }
}

/// The body of a response. Its request is open until the body is dropped.
pub(super) struct ResponseBody {
    pub(super) body: Body,
    pub(super) _open_request: OpenRequest,
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

pub(super) struct WriteTimeoutStream<S> {
    stream: S,
    timeout: Duration,
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<S> WriteTimeoutStream<S> {
    /// Wraps `stream`. The peer must take some written data within each `timeout`.
    pub(super) fn new(stream: S, timeout: Duration) -> Self {
        Self { stream, timeout, deadline: None }
    }

    fn poll_with_timeout<T>(&mut self, written: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.deadline = None;
            return written;
        }
        let within = self.timeout;
        let limit = self.deadline.get_or_insert_with(|| Box::pin(sleep(within)));
        ready!(limit.as_mut().poll(context));
        Poll::Ready(Err(Error::new(ErrorKind::TimedOut, "the peer does not read")))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeoutStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.poll_with_timeout(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.poll_with_timeout(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeoutStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, bytes)
    }
}
