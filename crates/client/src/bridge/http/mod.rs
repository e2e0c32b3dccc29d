//! Streamable HTTP to the server: each message is a POST, and a legacy session has a GET that listens.
//!
//! HTTP has no permanent connection; only requests can be lost. A request whose connection was never established was
//! not sent and is sent again. For any other lost request, it is unknown whether it ran.
//!
//! [MCP 2026-07-28, Streamable HTTP](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http)

mod answer;
mod headers;
mod listen;
mod reachability;
mod session;
mod tool_headers;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Client, Response, StatusCode};
use tidegate_mcp::{IncomingMessage, decode};
use tokio::time::Instant;

use self::answer::AnswerReceiver;
use self::headers::SESSION_ID;
use self::reachability::Reachability;
use self::session::{HandshakeState, NegotiatedSession, UpstreamSession};
use self::tool_headers::{ToolHeaders, ToolLookup};
use super::BridgeOptions;
use super::call::OpenCall;
use super::error::BridgeError;
use super::handshake::{Handshake, NegotiatedProtocol};
use super::incoming::ReceivedMessage;
use super::link::ServerLink;
use super::output::Output;
use crate::bridge::BridgeNotice;
use crate::bridge::call::{ClientCall, ModernMetadata};
use crate::http_client::{http_client, innermost_cause};

/// Idle connections are closed before a server does it. A call on a connection that was just closed fails, because it
/// may have run.
const IDLE_WITHIN: Duration = Duration::from_secs(2);
/// Time limit for ending a session.
const END_WITHIN: Duration = Duration::from_secs(2);

/// Maximum number of pages of a tool list that are read to find one tool.
const PAGES_MAX: usize = 100;

/// The connection to a server over HTTP.
pub(super) struct HttpLink {
    client: Client,
    options: Arc<BridgeOptions>,
    output: Output,
    reachability: Reachability,
    session: UpstreamSession,
    tool_headers: ToolHeaders,
}

#[async_trait]
impl ServerLink for HttpLink {
    async fn run_background(&self) {
        self.listen().await;
    }

    async fn call(&self, call: &ClientCall) -> Result<(), BridgeError> {
        let deadline = self.deadline();
        let answer = match &call.modern {
            Some(modern) => self.call_modern(call, modern, deadline).await?,
            None => {
                let response = self.post_legacy(&call.line, deadline, &call.open).await?;
                self.receiver().receive(response, call).await?
            }
        };
        self.output.send(answer.line).await;
        Ok(())
    }

    async fn initialize(&self, call: &ClientCall) -> Result<(), BridgeError> {
        let before = self.session.negotiated().ok().flatten();
        self.session.set_state(HandshakeState::None);
        let (answer, session) = self.send_initialize(call, self.deadline()).await?;
        // An answer without them is an error for the client.
        if let Ok(terms) = NegotiatedProtocol::parse(answer.bytes())
            && let [id] = call.ids.as_slice()
        {
            let handshake =
                Handshake { initialize: call.line.clone(), id: id.clone(), initialized: None, negotiated: terms };
            self.session.set_negotiated(handshake, session);
        }
        self.output.send(answer.line).await;
        if let Some(before) = before {
            self.end_session(&before).await;
        }
        Ok(())
    }

    async fn initialized(&self, line: Bytes) {
        self.notify(&line, None).await;
        if let Ok(Some(agreed)) = self.session.negotiated() {
            let handshake = Handshake { initialized: Some(line), ..agreed.handshake.clone() };
            self.session.set_negotiated(handshake, agreed.session.clone());
        }
    }

    async fn notify(&self, line: &Bytes, modern: Option<&ModernMetadata>) {
        let deadline = self.deadline();
        let open = OpenCall::default();
        let sent = match modern {
            Some(modern) => {
                self.post(line, headers::modern_headers(self.options.bearer.as_ref(), modern), deadline, &open).await
            }
            None => self.post_legacy(line, deadline, &open).await,
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
        if let Ok(Some(agreed)) = self.session.negotiated() {
            self.end_session(&agreed).await;
        }
    }
}

impl HttpLink {
    /// # Errors
    /// When TLS cannot be set up.
    pub(super) fn new(options: Arc<BridgeOptions>, output: Output) -> std::io::Result<Self> {
        let client = http_client(options.wait_within, IDLE_WITHIN).map_err(std::io::Error::other)?;
        Ok(Self {
            client,
            options,
            output,
            reachability: Reachability::new(),
            session: UpstreamSession::new(),
            tool_headers: ToolHeaders::default(),
        })
    }

    /// Sends a modern call. If the server rejects it for missing tool headers, sends it again with them.
    async fn call_modern(
        &self,
        call: &ClientCall,
        modern: &ModernMetadata,
        deadline: Instant,
    ) -> Result<ReceivedMessage, BridgeError> {
        let mut headers = headers::modern_headers(self.options.bearer.as_ref(), modern);
        self.tool_headers.add_to(&mut headers, modern, &call.line);
        let response = self.post(&call.line, headers.clone(), deadline, &call.open).await?;
        let is_refused = response.status() == StatusCode::BAD_REQUEST;
        let answer = self.receiver().receive(response, call).await?;
        let is_mismatch = is_refused && tool_headers::is_mismatch(answer.bytes());
        if !is_mismatch || !self.look_up_tool(call, modern, deadline).await {
            return Ok(answer);
        }
        self.tool_headers.add_to(&mut headers, modern, &call.line);
        let response = self.post(&call.line, headers, deadline, &call.open).await?;
        self.receiver().receive(response, call).await
    }

    /// Requests the definition of the tool of `call`; false if the server's tool list adds nothing new.
    async fn look_up_tool(&self, call: &ClientCall, modern: &ModernMetadata, deadline: Instant) -> bool {
        let Some(tool) = modern.name.as_deref().filter(|_| modern.method == "tools/call") else { return false };
        let mut cursor = None;
        for _ in 0..PAGES_MAX {
            let Some(line) = tool_headers::tools_list_request(&call.line, cursor.as_deref()).map(Bytes::from) else {
                break;
            };
            let Ok(IncomingMessage::Request(request)) = decode(&line) else { break };
            let asking = ClientCall::from_request(line, &request);
            let Some(modern) = &asking.modern else { break };
            let headers = headers::modern_headers(self.options.bearer.as_ref(), modern);
            let Ok(response) = self.post(&asking.line, headers, deadline, &asking.open).await else { break };
            let Ok(page) = self.receiver().receive(response, &asking).await else { break };
            match tool_headers::find_tool(page.bytes(), tool) {
                ToolLookup::Headers(marks) => return self.tool_headers.store(tool, marks),
                ToolLookup::NextPage(next) => cursor = Some(next),
                ToolLookup::NotFound => break,
            }
        }
        false
    }

    async fn end_session(&self, agreed: &NegotiatedSession) {
        if agreed.session.is_none() {
            return;
        }
        let headers = headers::listen_headers(self.options.bearer.as_ref(), agreed);
        let ending = self.client.delete(self.options.address.url().clone()).headers(headers).send();
        // An unreachable server has no session left.
        let _ = tokio::time::timeout(END_WITHIN, ending).await;
    }

    fn deadline(&self) -> Instant {
        Instant::now() + self.options.wait_within
    }

    fn receiver(&self) -> AnswerReceiver<'_> {
        AnswerReceiver { options: &self.options, output: &self.output }
    }

    /// Sends a POST of the legacy session. A POST to a lost session did not run, so it is sent again in a new session.
    async fn post_legacy(&self, line: &Bytes, deadline: Instant, open: &OpenCall) -> Result<Response, BridgeError> {
        let bearer = self.options.bearer.as_ref();
        let Some(agreed) = self.session.negotiated()? else {
            return self.post(line, headers::base_headers(bearer), deadline, open).await;
        };
        let response = self.post(line, headers::legacy_headers(bearer, &agreed), deadline, open).await?;
        if response.status() != StatusCode::NOT_FOUND || agreed.session.is_none() {
            return Ok(response);
        }
        drop(response);
        open.set_may_have_been_sent(false);
        let agreed = self.renew_session(&agreed, deadline).await?;
        self.post(line, headers::legacy_headers(bearer, &agreed), deadline, open).await
    }

    /// Repeats the handshake of the lost session `gone`, and returns the current session.
    async fn renew_session(
        &self,
        gone: &NegotiatedSession,
        deadline: Instant,
    ) -> Result<Arc<NegotiatedSession>, BridgeError> {
        let _renewing = self.session.renewal_lock.lock().await;
        let refused = |reason: &str| BridgeError::HandshakeRefused { reason: reason.to_owned() };
        match self.session.negotiated()? {
            Some(agreed) if agreed.session == gone.session => {}
            Some(agreed) => return Ok(agreed),
            None => return Err(refused("the client is performing another handshake")),
        }
        let Handshake { initialize, id, initialized, negotiated: before } = gone.handshake.clone();
        let (line, ids) = (initialize.clone(), vec![id.clone()]);
        let call = ClientCall { line, ids, is_batch: false, modern: None, open: Arc::default() };
        let opening = tokio::time::timeout(self.options.handshake_within, self.send_initialize(&call, deadline));
        let (answer, session) = opening.await.map_err(|_| refused("it does not answer"))??;
        let terms = NegotiatedProtocol::parse(answer.bytes()).map_err(|words| refused(words.text()))?;
        let gone_on = terms.check_compatible(&before);
        let handshake = Handshake { initialize, id, initialized: initialized.clone(), negotiated: terms };
        let opened = NegotiatedSession { handshake, session };
        if let Err(failure) = gone_on {
            self.session.set_state(HandshakeState::Broken(failure.clone()));
            self.end_session(&opened).await;
            return Err(failure);
        }
        if let Some(line) = initialized {
            let headers = headers::legacy_headers(self.options.bearer.as_ref(), &opened);
            self.post(&line, headers, deadline, &call.open).await?;
            self.notify_lists_changed(&opened).await;
        }
        self.options.notify(&BridgeNotice::HandshakeRenewed);
        // Set last, because listeners of the old session switch to the new one now.
        Ok(self.session.set_negotiated(opened.handshake, opened.session))
    }

    /// Announces changes that the client may have missed: its lists may differ.
    async fn notify_lists_changed(&self, agreed: &NegotiatedSession) {
        for notification in agreed.handshake.negotiated.list_changed_notifications() {
            self.output.send_line(notification).await;
        }
    }

    async fn send_initialize(
        &self,
        call: &ClientCall,
        deadline: Instant,
    ) -> Result<(ReceivedMessage, Option<HeaderValue>), BridgeError> {
        let response =
            self.post(&call.line, headers::base_headers(self.options.bearer.as_ref()), deadline, &call.open).await?;
        let session = response.headers().get(SESSION_ID).cloned();
        Ok((self.receiver().receive(response, call).await?, session))
    }

    /// Sends `body` once. Sends it again only while no connection was established, until `deadline`.
    async fn post(
        &self,
        body: &Bytes,
        headers: HeaderMap,
        deadline: Instant,
        open: &OpenCall,
    ) -> Result<Response, BridgeError> {
        loop {
            open.set_may_have_been_sent(true);
            let epoch = self.reachability.epoch();
            let url = self.options.address.url().clone();
            let error = match self.client.post(url).headers(headers.clone()).body(body.clone()).send().await {
                Ok(response) => {
                    self.reachability.mark_reachable(&self.options);
                    return Ok(response);
                }
                Err(error) if error.is_connect() => error,
                Err(error) => return Err(BridgeError::ConnectionLost { reason: innermost_cause(&error) }),
            };
            open.set_may_have_been_sent(false);
            let reason = innermost_cause(&error);
            let waiting = self.reachability.wait_until_reachable(epoch, &reason, &self.options);
            if tokio::time::timeout_at(deadline, waiting).await.is_err() {
                return Err(BridgeError::Unreachable { waited: self.options.wait_within, reason });
            }
        }
    }
}
