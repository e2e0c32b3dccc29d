//! A connection that many requests share: its state, and how each request is answered.
//!
//! Messages arrive one by one. Answers leave through a bounded queue in the order in which they are ready. The
//! transports frame them as lines, WebSocket frames or events.
//!
//! Notifications are sent between other messages, through the same queue. A change becomes a message only when the queue has
//! room. A client that reads slowly therefore receives one notification for several changes. A client that does not read at
//! all is dropped by its transport: HTTP breaks connections at the write timeout, and over standard output the client blocks
//! only itself.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_core::{AuthenticationError, Budget, CallOrigin, Caller, ErrorKind};
use tidegate_mcp::{
    InFlightRequests, IncomingMessage, ListenStream, McpService, McpSession, NotificationFeed, RequestContext,
    RequestId, ResponseFrame, ResponseStream, RpcAnswer, RpcError, RpcRequest,
};
use tidegate_runtime::event::Event;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::outbox::{AnswerSink, Outbox, OutgoingMessage, Spool, SpoolError};
use crate::revalidation::{CallerResolver, CallerRevalidator, DecodedMessage, Revoked, with_callers};

#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionLimits {
    /// Maximum number of concurrent requests. The connection reads no further message while they are open.
    pub(crate) requests_max: usize,
    /// Maximum number of messages in the outgoing queue. Calls wait while it is full.
    pub(crate) outgoing_max: usize,
    /// Maximum size of an inline answer where answers are bounded, in bytes before JSON escaping.
    pub(crate) inline_bytes_max: usize,
    /// Bytes of an answer, which is spooled to disk until it is complete; a longer one is refused.
    pub(crate) answer_bytes_max: u64,
    /// Whether the answer to the only open request is written while it is produced. Messages that come later wait.
    pub(crate) streams_lone_answers: bool,
}

pub(crate) struct McpConnection {
    service: Arc<McpService>,
    origin: CallOrigin,
    limits: ConnectionLimits,
    session: Mutex<Option<Arc<McpSession>>>,
    /// Cancels the notifications of the session when another handshake replaces it.
    session_notifications: Mutex<CancellationToken>,
    in_flight: Arc<InFlightRequests>,
    outgoing: mpsc::Sender<OutgoingMessage>,
    request_permits: Arc<Semaphore>,
    stream_permits: Arc<Semaphore>,
    tasks: TaskTracker,
    /// Fires when the client sends no more messages; open subscriptions then end.
    input_closed: CancellationToken,
    abandoned: CancellationToken,
}

impl McpConnection {
    /// Opens a connection with the client at `origin`. Its outgoing messages leave through the [`Outbox`].
    pub(crate) fn open(service: Arc<McpService>, origin: CallOrigin, limits: ConnectionLimits) -> (Arc<Self>, Outbox) {
        let (outgoing, messages) = mpsc::channel(limits.outgoing_max);
        let tasks = TaskTracker::new();
        let outbox = Outbox::new(messages, tasks.clone());
        let connection = Self {
            service,
            origin,
            limits,
            session: Mutex::default(),
            session_notifications: Mutex::default(),
            in_flight: Arc::default(),
            outgoing,
            request_permits: Arc::new(Semaphore::new(limits.requests_max)),
            stream_permits: Arc::new(Semaphore::new(STREAMS_MAX)),
            tasks,
            input_closed: CancellationToken::new(),
            abandoned: CancellationToken::new(),
        };
        (Arc::new(connection), outbox)
    }

    /// Waits while too many requests are open or the outgoing queue is full. `resolver` resolves the caller again then.
    pub(crate) async fn receive(
        self: &Arc<Self>,
        incoming: IncomingMessage,
        caller: Caller,
        resolver: &Arc<dyn CallerResolver>,
    ) {
        match incoming {
            IncomingMessage::Request(request) if is_initialize(&request) => {
                self.handle_initialize(&request, &caller, resolver).await
            }
            IncomingMessage::Request(request) if is_listen_request(&request) => {
                self.spawn_subscription(request, caller, resolver).await
            }
            IncomingMessage::Request(request) => self.spawn_request(request, caller, resolver).await,
            IncomingMessage::Notification(notification) => {
                self.service.handle_notification(&notification, &self.request_context(caller))
            }
            IncomingMessage::Response(response) => {
                self.service.handle_response(&response, &self.request_context(caller))
            }
            IncomingMessage::RpcBatch(messages) => self.spawn_rpc_batch(messages, caller, resolver).await,
        }
    }

    /// Handles a decoded message. If its caller cannot be resolved, a request or JSON-RPC batch gets the error of `caller`.
    pub(crate) async fn receive_decoded(
        self: &Arc<Self>,
        message: DecodedMessage,
        caller: Result<Caller, RpcError>,
        resolver: &Arc<dyn CallerResolver>,
    ) {
        match (message, caller) {
            (Ok(incoming), Ok(caller)) => self.receive(incoming, caller, resolver).await,
            (Ok(IncomingMessage::Request(request)), Err(error)) => self.refuse(Some(&request.id), &error).await,
            (Ok(IncomingMessage::RpcBatch(_)), Err(error)) => self.refuse(None, &error).await,
            (Ok(IncomingMessage::Notification(_) | IncomingMessage::Response(_)), Err(_)) => {}
            (Err(rejection), _) => self.refuse(rejection.id.as_ref(), &rejection.error).await,
        }
    }

    pub(crate) async fn refuse(&self, id: Option<&RequestId>, error: &RpcError) {
        self.report_rejection(&error.message);
        self.send(OutgoingMessage::Whole(error.to_bytes(id))).await;
    }

    pub(crate) fn report_rejection(&self, reason: &str) {
        let CallOrigin { transport, peer } = self.origin;
        let event = Event::MessageRefused { transport, peer, reason };
        self.service.registry().events().emit(event);
    }

    pub(crate) fn is_idle(&self) -> bool {
        let free = (self.request_permits.available_permits(), self.stream_permits.available_permits());
        free == (self.limits.requests_max, STREAMS_MAX)
    }

    /// Resolves when the output is closed: the client no longer receives messages.
    pub(crate) async fn output_closed(&self) {
        self.outgoing.closed().await;
    }

    pub(crate) fn is_output_closed(&self) -> bool {
        self.outgoing.is_closed()
    }

    /// Accepts no more messages: subscriptions end, and the outbox ends after the last answer.
    pub(crate) fn finish(&self) {
        self.input_closed.cancel();
        self.tasks.close();
    }

    /// Accepts no more messages, waits up to `within` for open requests, and drops the others with their calls.
    pub(crate) async fn drain(&self, within: Duration) {
        self.finish();
        if tokio::time::timeout(within, self.tasks.wait()).await.is_err() {
            self.abandon();
            self.tasks.wait().await;
        }
    }

    /// Drops all open requests, with their calls.
    pub(crate) fn abandon(&self) {
        self.abandoned.cancel();
        self.finish();
    }

    fn request_context(&self, caller: Caller) -> RequestContext {
        let is_bounded = self.service.registry().limits().inline.bytes.is_some();
        RequestContext {
            caller,
            inline_limit: Budget { rows: None, bytes: is_bounded.then_some(self.limits.inline_bytes_max) },
            accepts_server_requests: true,
            session: self.session.lock().clone(),
            in_flight: Some(self.in_flight.clone()),
        }
    }

    async fn handle_initialize(&self, request: &RpcRequest, caller: &Caller, resolver: &Arc<dyn CallerResolver>) {
        match self.service.initialize(request, caller, self.in_flight.clone()).await {
            Ok((session, message)) => {
                let feed = NotificationFeed::for_session(&session);
                *self.session.lock() = Some(Arc::new(session));
                self.send(OutgoingMessage::Whole(message.bytes)).await;
                self.spawn_session_notifications(feed, resolver.clone());
            }
            Err(error) => self.refuse(Some(&request.id), &error).await,
        }
    }

    fn spawn_session_notifications(&self, mut feed: NotificationFeed, resolver: Arc<dyn CallerResolver>) {
        let replaced = CancellationToken::new();
        std::mem::replace(&mut *self.session_notifications.lock(), replaced.clone()).cancel();
        let (input_closed, outgoing) = (self.input_closed.clone(), self.outgoing.clone());
        self.tasks.spawn(async move {
            let forwarding = forward_feed(&mut feed, &resolver, &outgoing);
            input_closed.run_until_cancelled(replaced.run_until_cancelled(forwarding)).await;
        });
    }

    /// Starts a notification stream. It has its own permit and does not count as a request.
    async fn spawn_subscription(
        self: &Arc<Self>,
        request: RpcRequest,
        caller: Caller,
        resolver: &Arc<dyn CallerResolver>,
    ) {
        let Ok(permit) = self.stream_permits.clone().try_acquire_owned() else {
            let message = format!("too many open notification streams: at most {STREAMS_MAX} per connection");
            return self.refuse(Some(&request.id), &RpcError::invalid_request(message)).await;
        };
        let task = self.request_task(caller, resolver);
        self.spawn_task(permit, async move { task.answer(request).await });
    }

    async fn spawn_request(
        self: &Arc<Self>,
        request: RpcRequest,
        mut caller: Caller,
        resolver: &Arc<dyn CallerResolver>,
    ) {
        let permit = match self.request_permits.clone().try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => {
                let Some(permit) = self.acquire_permit().await else { return };
                caller = match resolver.resolve_caller().await {
                    Ok(caller) => caller,
                    Err(error) => return self.refuse(Some(&request.id), &error).await,
                };
                permit
            }
        };
        let task = self.request_task(caller, resolver);
        self.spawn_task(permit, async move { task.answer(request).await });
    }

    async fn spawn_rpc_batch(
        self: &Arc<Self>,
        messages: Vec<DecodedMessage>,
        caller: Caller,
        resolver: &Arc<dyn CallerResolver>,
    ) {
        let Some(permit) = self.acquire_permit().await else { return };
        let task = self.request_task(caller, resolver);
        self.spawn_task(permit, async move { task.answer_rpc_batch(messages).await });
    }

    async fn acquire_permit(&self) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed.
        self.abandoned.run_until_cancelled(self.request_permits.clone().acquire_owned()).await?.ok()
    }

    fn spawn_task(&self, permit: OwnedSemaphorePermit, answering: impl Future<Output = ()> + Send + 'static) {
        let abandoned = self.abandoned.clone();
        self.tasks.spawn(async move {
            abandoned.run_until_cancelled(answering).await;
            drop(permit);
        });
    }

    fn request_task(self: &Arc<Self>, caller: Caller, resolver: &Arc<dyn CallerResolver>) -> RequestTask {
        RequestTask { connection: self.clone(), resolver: resolver.clone(), context: self.request_context(caller) }
    }

    async fn send(&self, message: OutgoingMessage) {
        // An error means that the client disconnected; the reading side detects this by itself.
        let _ = self.outgoing.send(message).await;
    }
}

fn is_initialize(request: &RpcRequest) -> bool {
    request.method == "initialize" && request.meta.protocol_version.is_none()
}

fn is_listen_request(request: &RpcRequest) -> bool {
    request.method == "subscriptions/listen" && request.meta.protocol_version.is_some()
}

fn revoked_error() -> RpcError {
    RpcError::invalid_request(AuthenticationError::Invalid.to_string())
}

struct RequestTask {
    connection: Arc<McpConnection>,
    resolver: Arc<dyn CallerResolver>,
    context: RequestContext,
}

impl RequestTask {
    async fn answer(&self, request: RpcRequest) {
        let id = request.id.clone();
        // A short answer is complete before the first check of the credentials.
        let answering = self.connection.service.answer(request, &self.context);
        let answer = self.revalidator().run_while_valid(answering).await;
        let Ok(answer) = answer else { return self.send_error(&id, &revoked_error()).await };
        match answer {
            RpcAnswer::NoResponse => {}
            RpcAnswer::Whole(message) => self.send(OutgoingMessage::Whole(message.bytes)).await,
            RpcAnswer::Stream(stream) => self.send_answer(&id, stream).await,
            RpcAnswer::Listen(stream) => {
                let McpConnection { outgoing, input_closed, .. } = &*self.connection;
                forward_subscription(stream, &self.resolver, outgoing, input_closed).await;
            }
        }
    }

    /// Sends the answer when it is complete, or while it is produced. Its notifications are sent immediately.
    async fn send_answer(&self, id: &RequestId, mut stream: Box<ResponseStream>) {
        let mut sink: Option<AnswerSink> = None;
        let mut revalidator = self.revalidator();
        let failure = loop {
            match revalidator.next_frame(&mut stream).await {
                Ok(Some(ResponseFrame::Notification(notification))) => {
                    self.send(OutgoingMessage::Whole(notification)).await;
                }
                Ok(Some(ResponseFrame::ResponseBytes(piece))) => {
                    let opened = match &mut sink {
                        Some(opened) => opened,
                        none => none.insert(self.open_sink().await),
                    };
                    if let Err(error) = opened.push(piece).await {
                        break Some(self.spool_error(&error));
                    }
                }
                Ok(None) => break None,
                Err(Revoked) => break Some(revoked_error()),
            }
        };
        let mut sink = sink.filter(|sink| failure.is_none() || sink.is_live());
        match (&mut sink, failure) {
            // What was written cannot be withdrawn, and the connection carries further messages.
            (Some(live), failure) if live.is_live() && (failure.is_some() || !stream.is_complete()) => {
                let reason = failure.map_or_else(|| "the call was cancelled".to_owned(), |error| error.message);
                // A live sink cannot fail.
                let _ = live.push(stream.abandon(reason)).await;
            }
            (_, Some(error)) => return self.send_error(id, &error).await,
            (_, None) if !stream.is_complete() => return,
            (_, None) => {}
        }
        // Dropped before the end is sent: a client that has read the answer may reuse the id.
        drop(stream);
        let Some(sink) = sink else { return };
        match sink.finish().await {
            Ok(Some(message)) => self.send(message).await,
            Ok(None) => {}
            Err(error) => self.send_error(id, &self.spool_error(&error)).await,
        }
    }

    /// A live sink if nothing else could wait for the end of the answer.
    async fn open_sink(&self) -> AnswerSink {
        let McpConnection { limits, request_permits, outgoing, .. } = &*self.connection;
        let is_alone = request_permits.available_permits() + 1 == limits.requests_max
            && outgoing.capacity() == outgoing.max_capacity();
        if !limits.streams_lone_answers || !is_alone {
            return AnswerSink::Spool(Spool::new(limits.answer_bytes_max));
        }
        let (sink, message) = AnswerSink::live();
        self.send(message).await;
        sink
    }

    async fn send_error(&self, id: &RequestId, error: &RpcError) {
        self.send(OutgoingMessage::Whole(error.to_bytes(Some(id)))).await;
    }

    fn revalidator(&self) -> CallerRevalidator {
        CallerRevalidator::new(self.resolver.clone(), self.connection.service.registry())
    }

    fn spool_error(&self, error: &SpoolError) -> RpcError {
        let error = error.to_error();
        self.connection.service.registry().events().emit_error_detail(&error, Uuid::new_v4());
        match error.kind() {
            // The code of answers over the limit is older than the codes of kinds.
            ErrorKind::TooLarge => RpcError::new(RpcError::INTERNAL_ERROR, error.to_string()),
            kind => RpcError::new(RpcError::code_of(kind), error.to_string()),
        }
    }

    async fn answer_rpc_batch(&self, messages: Vec<DecodedMessage>) {
        let messages = with_callers(messages, self.resolver.clone(), self.context.caller.clone());
        let answering = self.connection.service.answer_rpc_batch(messages, &self.context);
        let answered = self.revalidator().run_while_valid(answering).await;
        match answered.unwrap_or_else(|Revoked| Err(revoked_error())) {
            Ok(Some(answers)) => self.send(OutgoingMessage::Whole(answers)).await,
            Ok(None) => {}
            Err(error) => self.send(OutgoingMessage::Whole(error.to_bytes(None))).await,
        }
    }

    async fn send(&self, message: OutgoingMessage) {
        self.connection.send(message).await;
    }
}

/// Maximum number of notification streams of one connection. They do not count as requests.
const STREAMS_MAX: usize = 16;
/// Delay before a caller that cannot be resolved now is resolved again. The connection itself decides whether to end.
const RESOLVE_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Forwards the notifications of `stream` until its client cancels it or `input_closed` fires. Then sends its result.
async fn forward_subscription(
    mut stream: ListenStream,
    resolver: &Arc<dyn CallerResolver>,
    outgoing: &mpsc::Sender<OutgoingMessage>,
    input_closed: &CancellationToken,
) {
    let cancelled = stream.cancellation();
    let forwarding = async {
        // The acknowledgement comes first, even if the stream ends immediately.
        forward_pending(stream.feed(), outgoing).await;
        input_closed.run_until_cancelled(forward_feed(stream.feed(), resolver, outgoing)).await;
        let _ = outgoing.send(OutgoingMessage::Whole(stream.end().bytes)).await;
    };
    cancelled.run_until_cancelled(forwarding).await;
}

async fn forward_feed(
    feed: &mut NotificationFeed,
    resolver: &Arc<dyn CallerResolver>,
    outgoing: &mpsc::Sender<OutgoingMessage>,
) {
    loop {
        forward_pending(feed, outgoing).await;
        tokio::select! {
            () = outgoing.closed() => return,
            () = feed.changed() => {}
        }
        match resolver.resolve_caller().await {
            Ok(caller) => feed.update_caller(&caller).await,
            Err(_) => tokio::time::sleep(RESOLVE_AGAIN_AFTER).await,
        }
    }
}

async fn forward_pending(feed: &mut NotificationFeed, outgoing: &mpsc::Sender<OutgoingMessage>) {
    // Reserves room first: a change that occurs while this waits is part of the same message.
    while let Ok(room) = outgoing.reserve().await
        && let Some(message) = feed.next_message()
    {
        room.send(OutgoingMessage::Whole(message));
    }
}
