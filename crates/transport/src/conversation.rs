//! One conversation: what a connection that many requests share knows of its client, and how each request is answered.
//!
//! Messages come in one by one and go out through a bounded queue, in the order in which they are ready. Lines, frames
//! and events are the affair of the transports.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tidegate_core::event::Event;
use tidegate_core::{Budget, Caller, Error, Origin, Unauthenticated};
use tidegate_mcp::{
    Answer, AnswerStream, Feed, Frame, InFlight, Incoming, Message, Peer, Request, RequestId, RpcError, Service,
    Session,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::batch::{Identity, Read, with_callers};
use crate::listening;
use crate::outbox::{Outbox, Outgoing};
use crate::spool::{Spool, SpoolError};
use crate::standing::{Lapsed, Standing};

/// What bounds one conversation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Requests that are answered at the same time; nothing more is heard beyond them.
    pub(crate) requests_max: usize,
    /// Messages that wait to be written; more of them make their calls wait.
    pub(crate) outgoing_max: usize,
    /// What an answer may hold inline where answers are bounded, in bytes before they are escaped.
    pub(crate) carried_bytes_max: usize,
    /// Longer answers are refused, in bytes; they wait on disk until they are complete.
    pub(crate) answer_bytes_max: u64,
}

/// One conversation with a client.
pub(crate) struct Conversation {
    service: Arc<Service>,
    origin: Origin,
    bounds: Bounds,
    session: Mutex<Option<Arc<Session>>>,
    /// Ends what the session is told when another handshake takes its place.
    telling: Mutex<CancellationToken>,
    in_flight: Arc<InFlight>,
    outgoing: mpsc::Sender<Outgoing>,
    places: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    tasks: TaskTracker,
    /// Fires when nothing more is heard: who listens is told so.
    ending: CancellationToken,
    abandoned: CancellationToken,
}

impl Conversation {
    /// A conversation with whoever is at `origin`, and where its messages come out.
    pub(crate) fn open(service: Arc<Service>, origin: Origin, bounds: Bounds) -> (Self, Outbox) {
        let (outgoing, messages) = mpsc::channel(bounds.outgoing_max);
        let tasks = TaskTracker::new();
        let outbox = Outbox::new(messages, tasks.clone());
        let conversation = Self {
            service,
            origin,
            bounds,
            session: Mutex::default(),
            telling: Mutex::default(),
            in_flight: Arc::default(),
            outgoing,
            places: Arc::new(Semaphore::new(bounds.requests_max)),
            streams: Arc::new(Semaphore::new(listening::STREAMS_MAX)),
            tasks,
            ending: CancellationToken::new(),
            abandoned: CancellationToken::new(),
        };
        (conversation, outbox)
    }

    /// Hears a message of `caller`, who is asked for again by `identity` when the message had to wait. Waits while too
    /// many requests are open, and while what must be said at once does not leave.
    pub(crate) async fn hear(&self, incoming: Incoming, caller: Caller, identity: &Arc<dyn Identity>) {
        match incoming {
            Incoming::Request(request) if is_handshake(&request) => self.shake_hands(&request, &caller, identity).await,
            Incoming::Request(request) if is_listening(&request) => self.take_stream(request, caller, identity).await,
            Incoming::Request(request) => self.take(request, caller, identity).await,
            Incoming::Notification(notification) => self.service.notified(&notification, &self.peer(caller)),
            Incoming::Response(response) => self.service.answered(&response, &self.peer(caller)),
            Incoming::Batch(messages) => self.take_batch(messages, caller, identity.clone()).await,
        }
    }

    /// Hears what was read, unless it cannot be told now who sent it: what wants an answer is told so.
    pub(crate) async fn hear_read(&self, read: Read, caller: Result<Caller, RpcError>, identity: &Arc<dyn Identity>) {
        match (read, caller) {
            (Ok(incoming), Ok(caller)) => self.hear(incoming, caller, identity).await,
            (Ok(Incoming::Request(request)), Err(error)) => self.refuse(Some(&request.id), &error).await,
            (Ok(Incoming::Batch(_)), Err(error)) => self.refuse(None, &error).await,
            (Ok(Incoming::Notification(_) | Incoming::Response(_)), Err(_)) => {}
            (Err(rejection), _) => self.refuse(rejection.id.as_ref(), &rejection.error).await,
        }
    }

    /// Refuses a message, under its id if it could be read.
    pub(crate) async fn refuse(&self, id: Option<&RequestId>, error: &RpcError) {
        self.tell_of_refusal(&error.message);
        self.send(Outgoing::Whole(error.to_bytes(id))).await;
    }

    /// Tells log and metrics that a message was refused.
    pub(crate) fn tell_of_refusal(&self, reason: &str) {
        let Origin { transport, peer } = self.origin;
        let event = Event::MessageRefused { transport, peer, reason };
        self.service.registry().events().tell(event);
    }

    /// Whether no request is open.
    pub(crate) fn is_idle(&self) -> bool {
        let free = (self.places.available_permits(), self.streams.available_permits());
        free == (self.bounds.requests_max, listening::STREAMS_MAX)
    }

    /// Resolves when nobody takes what is said any more.
    pub(crate) async fn unheard(&self) {
        self.outgoing.closed().await;
    }

    /// Whether nobody takes what is said any more.
    pub(crate) fn is_unheard(&self) -> bool {
        self.outgoing.is_closed()
    }

    /// Says that nothing more is heard: streams of notifications end, and the outbox with the last answer.
    pub(crate) fn finish(&self) {
        self.ending.cancel();
        self.tasks.close();
    }

    /// Hears nothing more and lets open requests end within the bound; those that do not are dropped, and their calls
    /// with them.
    pub(crate) async fn drain(&self, within: Duration) {
        self.finish();
        if tokio::time::timeout(within, self.tasks.wait()).await.is_err() {
            self.abandon();
            self.tasks.wait().await;
        }
    }

    /// Drops all open requests, and their calls with them.
    pub(crate) fn abandon(&self) {
        self.abandoned.cancel();
        self.finish();
    }

    /// Who asks, and what the conversation knows.
    fn peer(&self, caller: Caller) -> Peer {
        let is_bounded = self.service.registry().limits().inline.bytes.is_some();
        Peer {
            caller,
            carries: Budget { rows: None, bytes: is_bounded.then_some(self.bounds.carried_bytes_max) },
            can_be_asked: true,
            session: self.session.lock().clone(),
            in_flight: Some(self.in_flight.clone()),
        }
    }

    async fn shake_hands(&self, request: &Request, caller: &Caller, identity: &Arc<dyn Identity>) {
        match self.service.initialize(request, caller, self.in_flight.clone()).await {
            Ok((session, message)) => {
                let feed = Feed::of_session(&session);
                *self.session.lock() = Some(Arc::new(session));
                self.send(Outgoing::Whole(message.bytes)).await;
                self.tell_session(feed, identity.clone());
            }
            Err(error) => self.refuse(Some(&request.id), &error).await,
        }
    }

    /// Tells the session of changes, beside all requests.
    fn tell_session(&self, mut feed: Feed, identity: Arc<dyn Identity>) {
        let replaced = CancellationToken::new();
        std::mem::replace(&mut *self.telling.lock(), replaced.clone()).cancel();
        let (ending, outgoing) = (self.ending.clone(), self.outgoing.clone());
        self.tasks.spawn(async move {
            tokio::select! {
                biased;
                () = ending.cancelled() => {}
                () = replaced.cancelled() => {}
                () = listening::tell(&mut feed, &identity, &outgoing) => {}
            }
        });
    }

    /// Opens a stream of notifications, which takes no place of other requests.
    async fn take_stream(&self, request: Request, caller: Caller, identity: &Arc<dyn Identity>) {
        let Ok(place) = self.streams.clone().try_acquire_owned() else {
            let message = format!("more than {} streams of notifications are open", listening::STREAMS_MAX);
            return self.refuse(Some(&request.id), &RpcError::invalid_request(message)).await;
        };
        let answering = self.answering(caller, identity);
        self.spawn(place, async move { answering.answer(request).await });
    }

    async fn take(&self, request: Request, mut caller: Caller, identity: &Arc<dyn Identity>) {
        let place = match self.places.clone().try_acquire_owned() {
            Ok(place) => place,
            Err(_) => {
                let Some(place) = self.place().await else { return };
                caller = match identity.caller().await {
                    Ok(caller) => caller,
                    Err(error) => return self.refuse(Some(&request.id), &error).await,
                };
                place
            }
        };
        let answering = self.answering(caller, identity);
        self.spawn(place, async move { answering.answer(request).await });
    }

    async fn take_batch(&self, messages: Vec<Read>, caller: Caller, identity: Arc<dyn Identity>) {
        let Some(place) = self.place().await else { return };
        let answering = self.answering(caller, &identity);
        self.spawn(place, async move { answering.answer_batch(messages).await });
    }

    /// A place among the open requests; `None` when they were dropped meanwhile.
    async fn place(&self) -> Option<OwnedSemaphorePermit> {
        tokio::select! {
            biased;
            () = self.abandoned.cancelled() => None,
            // The semaphore is never closed.
            place = self.places.clone().acquire_owned() => place.ok(),
        }
    }

    fn spawn(&self, place: OwnedSemaphorePermit, answering: impl Future<Output = ()> + Send + 'static) {
        let abandoned = self.abandoned.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                biased;
                () = abandoned.cancelled() => {}
                () = answering => {}
            }
            drop(place);
        });
    }

    fn answering(&self, caller: Caller, identity: &Arc<dyn Identity>) -> Answering {
        Answering {
            identity: identity.clone(),
            ending: self.ending.clone(),
            service: self.service.clone(),
            peer: self.peer(caller),
            outgoing: self.outgoing.clone(),
            answer_bytes_max: self.bounds.answer_bytes_max,
        }
    }

    async fn send(&self, message: Outgoing) {
        // An error means that the client hung up; who reads from it notices by itself.
        let _ = self.outgoing.send(message).await;
    }
}

fn is_handshake(request: &Request) -> bool {
    request.method == "initialize" && request.meta.protocol_version.is_none()
}

fn is_listening(request: &Request) -> bool {
    request.method == "subscriptions/listen" && request.meta.protocol_version.is_some()
}

/// What the caller of the request of `id` is told who is let in no longer.
fn lapsed(id: &RequestId) -> Bytes {
    no_longer_let_in().to_bytes(Some(id))
}

fn no_longer_let_in() -> RpcError {
    RpcError::invalid_request(Unauthenticated::Invalid.to_string())
}

/// What the task of one request needs.
struct Answering {
    identity: Arc<dyn Identity>,
    ending: CancellationToken,
    service: Arc<Service>,
    peer: Peer,
    outgoing: mpsc::Sender<Outgoing>,
    answer_bytes_max: u64,
}

impl Answering {
    async fn answer(&self, request: Request) {
        let id = request.id.clone();
        // A short answer is over before anything is asked.
        let answer = self.standing().during(self.service.answer(request, &self.peer)).await;
        let Ok(answer) = answer else { return self.send(Outgoing::Whole(lapsed(&id))).await };
        match answer {
            Answer::Silence => {}
            Answer::Whole(message) => self.send(Outgoing::Whole(message.bytes)).await,
            Answer::Stream(stream) => self.keep(&id, stream).await,
            Answer::Listen(stream) => {
                listening::tell_stream(stream, &self.identity, &self.outgoing, &self.ending).await;
            }
        }
    }

    /// Keeps the answer until it is complete; its notifications go out at once.
    async fn keep(&self, id: &RequestId, mut stream: Box<AnswerStream>) {
        let mut spool = Spool::new(self.answer_bytes_max);
        let mut standing = self.standing();
        loop {
            let frame = match standing.next(&mut stream).await {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(Lapsed) => return self.send(Outgoing::Whole(lapsed(id))).await,
            };
            match frame {
                Frame::Notification(notification) => self.send(Outgoing::Whole(notification)).await,
                Frame::Piece(piece) => {
                    if let Err(error) = spool.push(piece).await {
                        let error = RpcError::new(RpcError::INTERNAL_ERROR, self.told(&error));
                        return self.send(Outgoing::Whole(Message::error(Some(id), &error).bytes)).await;
                    }
                }
            }
        }
        let is_complete = stream.is_complete();
        // Before the answer leaves: whoever reads it may use the id again.
        drop(stream);
        if is_complete {
            self.send(Outgoing::Spooled(spool)).await;
        }
    }

    fn standing(&self) -> Standing {
        Standing::new(self.identity.clone(), self.service.registry())
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

    async fn answer_batch(&self, messages: Vec<Read>) {
        let messages = with_callers(messages, self.identity.clone(), self.peer.caller.clone());
        let answering = self.service.answer_batch(messages, &self.peer);
        let answered = self.standing().during(answering).await;
        match answered.unwrap_or_else(|Lapsed| Err(no_longer_let_in())) {
            Ok(Some(answers)) => self.send(Outgoing::Whole(answers)).await,
            Ok(None) => {}
            Err(error) => self.send(Outgoing::Whole(error.to_bytes(None))).await,
        }
    }

    async fn send(&self, message: Outgoing) {
        let _ = self.outgoing.send(message).await;
    }
}
