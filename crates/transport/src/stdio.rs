//! MCP over the standard streams: one message a line, nothing else on the output.
//!
//! [MCP 2026-07-28, stdio](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio)

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tidegate_core::event::Event;
use tidegate_core::{Allowed, Authenticator, Budget, Caller, Error, LetEverybodyIn, Origin, Toolset, TransportKind};
use tidegate_mcp::{
    Answer, Frame, InFlight, Incoming, Message, Peer, Request, RequestId, RpcError, Service, Session, decode,
};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt, BufReader, BufWriter};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::spool::{Spool, SpoolError};

/// Messages that wait for the output; more of them make their calls wait.
const OUTGOING_MAX: usize = 64;
/// Requests that are answered at the same time; reading stops beyond them.
const REQUESTS_MAX: usize = 512;
/// Stock clients refuse longer lines than 10 MiB. Rows are counted before they are escaped, which
/// at most doubles them but for control characters.
const CARRIED_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How often it is looked whether gate and registry belong together, which takes a moment while both change.
const TRIES_MAX: usize = 10_000;

/// Whose connection it is, and its bounds.
#[derive(Clone)]
pub struct StdioOptions {
    /// Says who the process's own user is.
    pub authenticator: Arc<dyn Authenticator>,
    /// The name of the toolset that is served; none for the whole registry.
    pub toolset: Option<String>,
    /// Longer messages of the client are refused, in bytes.
    pub message_bytes_max: usize,
    /// Longer answers are refused, in bytes; they wait on disk until they are complete.
    pub answer_bytes_max: u64,
    /// How long running calls may take to end after the client closed its side.
    pub drain_within: Duration,
}

impl Default for StdioOptions {
    fn default() -> Self {
        Self {
            authenticator: Arc::new(LetEverybodyIn),
            toolset: None,
            message_bytes_max: 4 * 1024 * 1024,
            answer_bytes_max: 16 * 1024 * 1024 * 1024,
            drain_within: Duration::from_secs(10),
        }
    }
}

/// Serves one client until it closes its side or `shutdown` fires, then lets running calls end
/// within the bound.
///
/// # Errors
/// When a stream breaks. A client that hangs up is no error.
pub async fn serve(
    service: Arc<Service>,
    reader: impl tokio::io::AsyncRead + Unpin + Send,
    writer: impl AsyncWrite + Unpin + Send + 'static,
    options: StdioOptions,
    shutdown: CancellationToken,
) -> std::io::Result<()> {
    let transport = TransportKind::Stdio;
    service.registry().events().tell(Event::ConnectionOpened { transport });
    let (outgoing, lines) = mpsc::channel(OUTGOING_MAX);
    let mut writing = tokio::spawn(write_lines(lines, writer));
    let drain_within = options.drain_within;
    let mut connection = Connection::new(service.clone(), outgoing, options);
    let read = tokio::select! {
        biased;
        // Also while a client that does not read holds up what it is told.
        () = shutdown.cancelled() => Ok(()),
        read = connection.read_until_end(reader) => read,
    };
    connection.drain().await;
    // A client that no longer reads must not keep the process.
    let written = match tokio::time::timeout(drain_within, &mut writing).await {
        Ok(joined) => joined.unwrap_or(Ok(())),
        Err(_) => {
            writing.abort();
            Ok(())
        }
    };
    service.registry().events().tell(Event::ConnectionClosed { transport });
    read.and(written)
}

/// A message on its way out.
enum Outgoing {
    Whole(Bytes),
    Spooled(Spool),
}

async fn write_lines(
    mut lines: mpsc::Receiver<Outgoing>,
    writer: impl AsyncWrite + Unpin + Send,
) -> std::io::Result<()> {
    let mut writer = BufWriter::new(writer);
    while let Some(line) = lines.recv().await {
        match line {
            Outgoing::Whole(bytes) => writer.write_all(&bytes).await?,
            Outgoing::Spooled(spool) => spool.write_to(&mut writer).await?,
        }
        writer.write_all(b"\n").await?;
        if lines.is_empty() {
            writer.flush().await?;
        }
    }
    writer.flush().await
}

/// The user of the process, at the door of a toolset or of all.
#[derive(Clone)]
struct User {
    service: Arc<Service>,
    authenticator: Arc<dyn Authenticator>,
    toolset: Option<String>,
}

impl User {
    /// The user by the gate and the registry of this moment, which belong together.
    fn caller(&self) -> Caller {
        let origin = Origin { transport: TransportKind::Stdio, peer: None };
        let registry = self.service.registry();
        let together = || Caller::into_state(self.authenticator.local(), origin, registry.snapshot());
        // While a new configuration is entered they may not, for a moment; one without a state reaches nothing then.
        let caller = (0..TRIES_MAX).find_map(|_| {
            together().or_else(|| {
                std::thread::yield_now();
                None
            })
        });
        let caller = caller.unwrap_or_else(|| Caller::new(self.authenticator.local(), origin));
        let toolset = self.toolset.as_ref().map(|name| {
            // A toolset that a reload took away has nothing in it.
            let gone = || Arc::new(Toolset { name: name.clone(), entries: Allowed::NOTHING });
            registry.state_for(&caller).toolset(name, &caller).cloned().unwrap_or_else(gone)
        });
        caller.through(toolset)
    }
}

struct Connection {
    service: Arc<Service>,
    user: User,
    session: Option<Arc<Session>>,
    in_flight: Arc<InFlight>,
    outgoing: mpsc::Sender<Outgoing>,
    options: StdioOptions,
    places: Arc<Semaphore>,
    tasks: TaskTracker,
}

impl Connection {
    fn new(service: Arc<Service>, outgoing: mpsc::Sender<Outgoing>, options: StdioOptions) -> Self {
        let places = Arc::new(Semaphore::new(REQUESTS_MAX));
        let in_flight = Arc::new(InFlight::default());
        let (authenticator, toolset) = (options.authenticator.clone(), options.toolset.clone());
        let user = User { service: service.clone(), authenticator, toolset };
        Self { service, user, session: None, in_flight, outgoing, options, places, tasks: TaskTracker::new() }
    }

    /// Who asks, and what its connection knows.
    fn peer(&self) -> Peer {
        let is_bounded = self.service.registry().limits().inline.bytes.is_some();
        Peer {
            caller: self.user.caller(),
            carries: Budget { rows: None, bytes: is_bounded.then_some(CARRIED_BYTES_MAX) },
            session: self.session.clone(),
            in_flight: Some(self.in_flight.clone()),
        }
    }

    async fn read_until_end(&mut self, reader: impl tokio::io::AsyncRead + Unpin) -> std::io::Result<()> {
        let mut reader = BufReader::new(reader);
        let mut versions = self.service.registry().versions();
        let mut line = Vec::new();
        loop {
            tokio::select! {
                biased;
                () = self.outgoing.closed() => return Ok(()),
                Ok(()) = versions.changed() => self.tell_of_changes().await,
                read = read_line(&mut reader, &mut line, self.options.message_bytes_max) => {
                    match read? {
                        Line::End => return Ok(()),
                        Line::TooLong => self.refuse_long_line().await,
                        Line::Whole => self.hear(&line).await,
                    }
                    line.clear();
                }
            }
        }
    }

    async fn hear(&mut self, line: &[u8]) {
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        match decode(line) {
            Ok(Incoming::Request(request)) if self.is_handshake(&request) => self.shake_hands(&request).await,
            Ok(Incoming::Request(request)) => self.spawn(Work::Request(request)).await,
            Ok(Incoming::Notification(notification)) => self.service.notified(&notification, &self.peer()),
            Ok(Incoming::Response) => {}
            Ok(Incoming::Batch(messages)) => self.spawn(Work::Batch(messages)).await,
            Err(rejection) => self.refuse(rejection.id.as_ref(), &rejection.error).await,
        }
    }

    fn is_handshake(&self, request: &Request) -> bool {
        request.method == "initialize" && request.meta.protocol_version.is_none()
    }

    async fn shake_hands(&mut self, request: &Request) {
        match self.service.initialize(request, self.in_flight.clone()) {
            Ok((session, message)) => {
                self.session = Some(Arc::new(session));
                self.send(Outgoing::Whole(message.bytes)).await;
            }
            Err(error) => self.refuse(Some(&request.id), &error).await,
        }
    }

    async fn spawn(&self, work: Work) {
        // The semaphore is never closed.
        let Ok(place) = self.places.clone().acquire_owned().await else { return };
        let task = WorkTask {
            service: self.service.clone(),
            peer: self.peer(),
            outgoing: self.outgoing.clone(),
            user: self.user.clone(),
            answer_bytes_max: self.options.answer_bytes_max,
        };
        self.tasks.spawn(async move {
            match work {
                Work::Request(request) => task.answer(request).await,
                Work::Batch(messages) => task.answer_batch(messages).await,
            }
            drop(place);
        });
    }

    async fn refuse_long_line(&self) {
        let message = format!("Invalid request: the message is longer than {} bytes", self.options.message_bytes_max);
        self.refuse(None, &RpcError::invalid_request(message)).await;
    }

    async fn refuse(&self, id: Option<&RequestId>, error: &RpcError) {
        let event = Event::MessageRefused { transport: TransportKind::Stdio, reason: &error.message };
        self.service.registry().events().tell(event);
        self.send(Outgoing::Whole(error.to_bytes(id))).await;
    }

    async fn tell_of_changes(&self) {
        if let Some(session) = &self.session {
            for notification in self.service.changes(session) {
                self.send(Outgoing::Whole(notification)).await;
            }
        }
    }

    async fn send(&self, message: Outgoing) {
        // An error means that the client hung up; the reading loop ends by itself then.
        let _ = self.outgoing.send(message).await;
    }

    /// Lets running calls end within the bound, then cancels the rest. The output closes with the last of them.
    async fn drain(self) {
        self.tasks.close();
        if tokio::time::timeout(self.options.drain_within, self.tasks.wait()).await.is_err() {
            self.in_flight.cancel_all();
            // A task may still wait for an output that nobody reads.
            let _ = tokio::time::timeout(Duration::from_secs(1), self.tasks.wait()).await;
        }
    }
}

enum Work {
    Request(Request),
    Batch(Vec<Result<Incoming, tidegate_mcp::Rejection>>),
}

/// What the task of one request needs.
struct WorkTask {
    service: Arc<Service>,
    user: User,
    peer: Peer,
    outgoing: mpsc::Sender<Outgoing>,
    answer_bytes_max: u64,
}

impl WorkTask {
    async fn answer(&self, request: Request) {
        let id = request.id.clone();
        match self.service.answer(request, &self.peer).await {
            Answer::Silence => {}
            Answer::Whole(message) => self.send(Outgoing::Whole(message.bytes)).await,
            Answer::Stream(mut stream) => {
                let mut spool = Spool::new(self.answer_bytes_max);
                while let Some(frame) = stream.next().await {
                    match frame {
                        Frame::Notification(notification) => self.send(Outgoing::Whole(notification)).await,
                        Frame::Piece(piece) => {
                            if let Err(error) = spool.push(piece).await {
                                let error = RpcError::new(RpcError::INTERNAL_ERROR, self.told(&error));
                                return self.send(Outgoing::Whole(Message::error(Some(&id), &error).bytes)).await;
                            }
                        }
                    }
                }
                if stream.is_complete() {
                    self.send(Outgoing::Spooled(spool)).await;
                }
            }
        }
    }

    /// What the client may read of `error`. What the disk said is for the log.
    fn told(&self, error: &SpoolError) -> String {
        if let SpoolError::TooLarge(_) = error {
            return error.to_string();
        }
        let fault = Error::internal(error.to_string());
        if let (Some(id), Some(detail)) = (fault.id(), fault.detail()) {
            self.service.registry().events().tell(Event::Fault { id, detail });
        }
        fault.to_string()
    }

    async fn answer_batch(&self, messages: Vec<Result<Incoming, tidegate_mcp::Rejection>>) {
        let messages = messages.into_iter().map(|message| (message, self.user.caller()));
        match self.service.answer_batch(futures::stream::iter(messages), &self.peer).await {
            Ok(Some(answers)) => self.send(Outgoing::Whole(answers)).await,
            Ok(None) => {}
            Err(error) => self.send(Outgoing::Whole(error.to_bytes(None))).await,
        }
    }

    async fn send(&self, message: Outgoing) {
        let _ = self.outgoing.send(message).await;
    }
}

enum Line {
    Whole,
    TooLong,
    End,
}

/// Reads up to the next line feed into `line`, which may hold the beginning of it already: the
/// future may be dropped between two reads. Of a line that is too long nothing is kept.
async fn read_line(
    reader: &mut (impl AsyncBufRead + Unpin),
    line: &mut Vec<u8>,
    bytes_max: usize,
) -> std::io::Result<Line> {
    loop {
        let available = reader.fill_buf().await?;
        if available.is_empty() {
            return Ok(match line.len() {
                0 => Line::End,
                bytes if bytes > bytes_max => Line::TooLong,
                _ => Line::Whole,
            });
        }
        let end = available.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(available.len(), |end| end + 1);
        // One byte more than allowed marks the line as too long until its end is seen.
        let room = (bytes_max + 1).saturating_sub(line.len());
        line.extend_from_slice(&available[..end.unwrap_or(taken).min(room)]);
        reader.consume(taken);
        if end.is_some() {
            return Ok(if line.len() > bytes_max { Line::TooLong } else { Line::Whole });
        }
    }
}
