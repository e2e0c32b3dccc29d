//! Streamable HTTP to the server: each message is a POST, and a legacy session has a GET that listens.
//!
//! HTTP has no permanent connection; only requests can be lost. A request whose connection was never established was
//! not sent and is sent again, with one attempt at a time for all waiting calls. For any other lost request, it is unknown
//! whether it ran. A legacy session may end, and is then opened again.
//!
//! [MCP 2026-07-28, Streamable HTTP](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http)

mod answer;
mod headers;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Client, Response, StatusCode};
use tidegate_core::Backoff;
use tidegate_http_client::innermost_cause;
use tidegate_mcp::{IncomingMessage, decode};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::Instant;

use self::headers::{SESSION_ID, ToolHeaders, ToolLookup};
use super::request::{
    BridgeError, ClientRequest, Handshake, ModernMetadata, NegotiatedProtocol, RequestState, ServerTransport,
};
use super::server_message::{Output, ReceivedMessage};
use super::{BridgeNotice, BridgeOptions, reconnection_backoff};
use crate::server::{http_client, permanent_request_error, permanent_tls_error};

/// Shorter than that of servers: a call on a connection that was just closed fails, because it may have run.
const IDLE_WITHIN: Duration = Duration::from_secs(2);
const END_WITHIN: Duration = Duration::from_secs(2);

const PAGES_MAX: usize = 100;

pub(super) struct HttpTransport {
    client: Client,
    options: Arc<BridgeOptions>,
    output: Output,
    reachability: Reachability,
    session: UpstreamSession,
    tool_headers: ToolHeaders,
}

#[async_trait]
impl ServerTransport for HttpTransport {
    async fn run_background(&self) {
        self.listen().await;
    }

    async fn send(&self, request: &ClientRequest) -> Result<(), BridgeError> {
        let deadline = self.deadline();
        let answer = match &request.modern {
            Some(modern) => self.send_modern(request, modern, deadline).await?,
            None => {
                let response = self.post_legacy(&request.line, deadline, &request.state).await?;
                self.read_answer(response, request).await?
            }
        };
        self.output.send(answer.line).await;
        Ok(())
    }

    async fn initialize(&self, request: &ClientRequest) -> Result<(), BridgeError> {
        let previous = self.session.negotiated().ok().flatten();
        self.session.set_state(HandshakeState::None);
        let (answer, session) = self.send_initialize(request, self.deadline()).await?;
        // An answer without them is an error for the client.
        let negotiated = NegotiatedProtocol::parse(answer.bytes()).ok();
        if let Some(handshake) = negotiated.and_then(|negotiated| Handshake::new(request, negotiated)) {
            self.session.set_negotiated(handshake, session);
        }
        self.output.send(answer.line).await;
        if let Some(previous) = previous {
            self.end_session(&previous).await;
        }
        Ok(())
    }

    async fn initialized(&self, line: Bytes) {
        self.notify(&line, None).await;
        if let Ok(Some(session)) = self.session.negotiated() {
            let handshake = Handshake { initialized: Some(line), ..session.handshake.clone() };
            self.session.set_negotiated(handshake, session.id.clone());
        }
    }

    async fn notify(&self, line: &Bytes, modern: Option<&ModernMetadata>) {
        let (deadline, state) = (self.deadline(), RequestState::default());
        let sent = match modern {
            Some(modern) => self.post(line, self.modern_headers(modern), deadline, &state).await,
            None => self.post_legacy(line, deadline, &state).await,
        };
        let message = match sent {
            Ok(response) if response.status().is_success() => return,
            Ok(response) => format!("the server rejected a notification ({})", response.status()),
            Err(failure) => format!("a notification was not delivered: {failure}"),
        };
        self.options.notify(&BridgeNotice::Ignored(message));
    }

    fn cancels_by_dropping(&self, is_modern: bool) -> bool {
        is_modern
    }

    async fn end(&self) {
        if let Ok(Some(session)) = self.session.negotiated() {
            self.end_session(&session).await;
        }
    }
}

impl HttpTransport {
    pub(super) fn new(options: Arc<BridgeOptions>, output: Output) -> std::io::Result<Self> {
        let client = http_client(options.wait_within, IDLE_WITHIN, options.authorities.as_ref())
            .map_err(std::io::Error::other)?;
        let (reachability, session, tool_headers) =
            (Reachability::new(), UpstreamSession::default(), ToolHeaders::default());
        Ok(Self { client, options, output, reachability, session, tool_headers })
    }

    fn deadline(&self) -> Instant {
        Instant::now() + self.options.wait_within
    }

    fn modern_headers(&self, modern: &ModernMetadata) -> HeaderMap {
        headers::modern_headers(self.options.bearer.as_ref(), modern)
    }

    fn legacy_headers(&self, session: &NegotiatedSession) -> HeaderMap {
        headers::legacy_headers(self.options.bearer.as_ref(), session)
    }

    /// Sends a modern request. If the server rejects it for missing tool headers, sends it again with them.
    async fn send_modern(
        &self,
        request: &ClientRequest,
        modern: &ModernMetadata,
        deadline: Instant,
    ) -> Result<ReceivedMessage, BridgeError> {
        let mut headers = self.modern_headers(modern);
        self.tool_headers.add_to(&mut headers, modern, &request.line);
        let response = self.post(&request.line, headers.clone(), deadline, &request.state).await?;
        let is_refused = response.status() == StatusCode::BAD_REQUEST;
        let answer = self.read_answer(response, request).await?;
        let is_mismatch = is_refused && headers::is_mismatch(answer.bytes());
        if !is_mismatch || self.look_up_tool(request, modern, deadline).await.is_none() {
            return Ok(answer);
        }
        self.tool_headers.add_to(&mut headers, modern, &request.line);
        let response = self.post(&request.line, headers, deadline, &request.state).await?;
        self.read_answer(response, request).await
    }

    /// Requests the definition of the tool of `request`; `None` if the server's tool list adds nothing new.
    async fn look_up_tool(&self, request: &ClientRequest, modern: &ModernMetadata, deadline: Instant) -> Option<()> {
        let tool = modern.name.as_deref().filter(|_| modern.method == "tools/call")?;
        let mut cursor = None;
        for _ in 0..PAGES_MAX {
            let line = Bytes::from(headers::tools_list_request(&request.line, cursor.as_deref())?);
            let Ok(IncomingMessage::Request(decoded)) = decode(&line) else { return None };
            let list_request = ClientRequest::new(line, &decoded);
            let headers = self.modern_headers(list_request.modern.as_ref()?);
            let response = self.post(&list_request.line, headers, deadline, &list_request.state).await.ok()?;
            let page = self.read_answer(response, &list_request).await.ok()?;
            match headers::find_tool(page.bytes(), tool) {
                ToolLookup::Headers(headers) => return self.tool_headers.store(tool, headers).then_some(()),
                ToolLookup::NextPage(next) => cursor = Some(next),
                ToolLookup::NotFound => return None,
            }
        }
        None
    }

    async fn end_session(&self, session: &NegotiatedSession) {
        if session.id.is_none() {
            return;
        }
        let headers = headers::listen_headers(self.options.bearer.as_ref(), session);
        let ending = self.client.delete(self.options.address.url().clone()).headers(headers).send();
        // An unreachable server has no session left.
        let _ = tokio::time::timeout(END_WITHIN, ending).await;
    }

    /// Sends a POST of the legacy session. A POST to a lost session did not run, so it is sent again in a new session.
    async fn post_legacy(
        &self,
        line: &Bytes,
        deadline: Instant,
        state: &RequestState,
    ) -> Result<Response, BridgeError> {
        let Some(session) = self.session.negotiated()? else {
            return self.post(line, headers::base_headers(self.options.bearer.as_ref()), deadline, state).await;
        };
        let response = self.post(line, self.legacy_headers(&session), deadline, state).await?;
        if response.status() != StatusCode::NOT_FOUND || session.id.is_none() {
            return Ok(response);
        }
        drop(response);
        state.set_may_have_been_sent(false);
        let session = self.renew_session(&session, deadline).await?;
        self.post(line, self.legacy_headers(&session), deadline, state).await
    }

    /// Repeats the handshake of the session `lost`, and returns the current session.
    async fn renew_session(
        &self,
        lost: &NegotiatedSession,
        deadline: Instant,
    ) -> Result<Arc<NegotiatedSession>, BridgeError> {
        let _renewing = self.session.renewal_lock.lock().await;
        let refused = |reason: &str| BridgeError::HandshakeRefused { reason: reason.to_owned() };
        match self.session.negotiated()? {
            Some(current) if current.id == lost.id => {}
            Some(current) => return Ok(current),
            None => return Err(refused("the client is performing another handshake")),
        }
        let before = &lost.handshake;
        let request = ClientRequest::legacy(before.initialize.clone(), before.id.clone());
        let opening = tokio::time::timeout(self.options.handshake_within, self.send_initialize(&request, deadline));
        let (answer, id) = opening.await.map_err(|_| refused("it does not answer"))??;
        let negotiated = NegotiatedProtocol::parse(answer.bytes()).map_err(|message| refused(message.text()))?;
        let compatible = negotiated.check_compatible(&before.negotiated);
        let renewed = NegotiatedSession { handshake: Handshake { negotiated, ..before.clone() }, id };
        if let Err(failure) = compatible {
            self.session.set_state(HandshakeState::Broken(failure.clone()));
            self.end_session(&renewed).await;
            return Err(failure);
        }
        if let Some(line) = &renewed.handshake.initialized {
            self.post(line, self.legacy_headers(&renewed), deadline, &request.state).await?;
            self.notify_lists_changed(&renewed).await;
        }
        self.options.notify(&BridgeNotice::HandshakeRenewed);
        // Set last, because listeners of the old session switch to the new one now.
        Ok(self.session.set_negotiated(renewed.handshake, renewed.id))
    }

    /// Announces changes that the client may have missed: its lists may differ.
    async fn notify_lists_changed(&self, session: &NegotiatedSession) {
        for notification in session.handshake.negotiated.list_changed_notifications() {
            self.output.send_line(notification).await;
        }
    }

    async fn send_initialize(
        &self,
        request: &ClientRequest,
        deadline: Instant,
    ) -> Result<(ReceivedMessage, Option<HeaderValue>), BridgeError> {
        let headers = headers::base_headers(self.options.bearer.as_ref());
        let response = self.post(&request.line, headers, deadline, &request.state).await?;
        let session = response.headers().get(SESSION_ID).cloned();
        Ok((self.read_answer(response, request).await?, session))
    }

    /// Sends `body` once. Sends it again only while no connection was established, until `deadline`.
    async fn post(
        &self,
        body: &Bytes,
        headers: HeaderMap,
        deadline: Instant,
        state: &RequestState,
    ) -> Result<Response, BridgeError> {
        loop {
            state.set_may_have_been_sent(true);
            let epoch = self.reachability.epoch();
            let url = self.options.address.url().clone();
            let error = match self.client.post(url).headers(headers.clone()).body(body.clone()).send().await {
                Ok(response) => {
                    self.reachability.mark_reachable(&self.options);
                    return Ok(response);
                }
                Err(error) if error.is_connect() => error,
                Err(error) => {
                    return Err(match permanent_request_error(&error, self.reachability.has_answered()) {
                        Some(reason) => BridgeError::NoHttp { reason },
                        None => BridgeError::ConnectionLost { reason: innermost_cause(&error) },
                    });
                }
            };
            state.set_may_have_been_sent(false);
            if let Some(reason) = permanent_tls_error(&error) {
                return Err(BridgeError::Tls { reason });
            }
            let reason = innermost_cause(&error);
            let waiting = self.reachability.wait_until_reachable(epoch, &reason, &self.options);
            if tokio::time::timeout_at(deadline, waiting).await.is_err() {
                return Err(BridgeError::Unreachable { waited: self.options.wait_within, reason });
            }
        }
    }
}

#[derive(Debug)]
struct Reachability {
    epoch: AtomicU64,
    is_lost: AtomicBool,
    has_answered: AtomicBool,
    backoff: Mutex<Backoff>,
    retry_lock: tokio::sync::Mutex<()>,
}

impl Reachability {
    /// A server that is reachable until an attempt fails.
    fn new() -> Self {
        Self {
            epoch: AtomicU64::default(),
            is_lost: AtomicBool::default(),
            has_answered: AtomicBool::default(),
            backoff: Mutex::new(reconnection_backoff()),
            retry_lock: tokio::sync::Mutex::default(),
        }
    }

    /// Read before an attempt, and passed to [`Reachability::wait_until_reachable`] after it failed.
    fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Whether the server has answered in HTTP.
    fn has_answered(&self) -> bool {
        self.has_answered.load(Ordering::Acquire)
    }

    fn mark_reachable(&self, options: &BridgeOptions) {
        self.has_answered.store(true, Ordering::Release);
        if self.is_lost.swap(false, Ordering::AcqRel) {
            self.backoff.lock().reset();
            options.notify(&BridgeNotice::Reconnected);
        }
    }

    /// Waits after a failed attempt in `epoch`; the delay grows until [`Reachability::mark_reachable`] is called.
    async fn wait_until_reachable(&self, epoch: u64, reason: &str, options: &BridgeOptions) {
        if !self.is_lost.swap(true, Ordering::AcqRel) {
            options.notify(&BridgeNotice::Disconnected(reason.to_owned()));
        }
        let _attempt = self.retry_lock.lock().await;
        while self.epoch() == epoch {
            let delay = self.backoff.lock().next_delay();
            tokio::time::sleep(delay).await;
            // A bare connection runs no call.
            let connecting = TcpStream::connect((options.address.host(), options.address.port()));
            if let Ok(Ok(_)) = tokio::time::timeout(options.wait_within, connecting).await {
                self.epoch.fetch_add(1, Ordering::AcqRel);
            }
        }
    }
}

#[derive(Debug)]
struct NegotiatedSession {
    handshake: Handshake,
    /// `None` for servers without sessions.
    id: Option<HeaderValue>,
}

#[derive(Debug, Clone, Default)]
enum HandshakeState {
    /// The client has not made a handshake.
    #[default]
    None,
    Negotiated(Arc<NegotiatedSession>),
    /// The handshake could not be repeated; the client has to make a new one.
    Broken(BridgeError),
}

#[derive(Debug, Default)]
struct UpstreamSession {
    state: watch::Sender<HandshakeState>,
    /// Held while the handshake is repeated, so that it is repeated once for all calls.
    renewal_lock: tokio::sync::Mutex<()>,
}

impl UpstreamSession {
    /// The session for calls; `None` before a handshake, an error when it is broken.
    fn negotiated(&self) -> Result<Option<Arc<NegotiatedSession>>, BridgeError> {
        match &*self.state.borrow() {
            HandshakeState::None => Ok(None),
            HandshakeState::Negotiated(session) => Ok(Some(session.clone())),
            HandshakeState::Broken(failure) => Err(failure.clone()),
        }
    }

    fn set_negotiated(&self, handshake: Handshake, id: Option<HeaderValue>) -> Arc<NegotiatedSession> {
        let session = Arc::new(NegotiatedSession { handshake, id });
        self.set_state(HandshakeState::Negotiated(session.clone()));
        session
    }

    fn set_state(&self, state: HandshakeState) {
        self.state.send_replace(state);
    }

    fn subscribe(&self) -> watch::Receiver<HandshakeState> {
        self.state.subscribe()
    }
}
