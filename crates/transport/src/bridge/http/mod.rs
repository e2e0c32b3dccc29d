//! Streamable HTTP to the server: each message a POST, and for a legacy session a GET that listens.
//!
//! HTTP knows no connection that stands. What is lost is a request: one whose connection never stood was
//! not sent and may be sent again; of any other nobody knows whether it ran.
//!
//! [MCP 2026-07-28, Streamable HTTP](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http)

mod answer;
mod event;
mod head;
mod listen;
mod parameter;
mod reach;
mod session;

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Client, Response, StatusCode, redirect, retry};
use tidegate_mcp::{Incoming, decode};
use tokio::time::Instant;

use self::answer::Receiver;
use self::head::SESSION_ID;
use self::parameter::{Found, Marks};
use self::reach::Reach;
use self::session::{Agreed, Session, Standing};
use super::BridgeOptions;
use super::arriving::Arrived;
use super::calls::OpenCall;
use super::failure::Failure;
use super::handshake::{Handshake, Terms};
use super::notice::Notice;
use super::output::Output;
use super::request::{Call, Modern};
use crate::outbox::Outgoing;

/// Idle connections are given up before a server does it: a call that meets one which was just closed may have run,
/// for all that is known, and fails.
const IDLE_WITHIN: Duration = Duration::from_secs(2);
/// A silent connection is asked for a sign of life this often, and lost after so many that did not come.
const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(15);
const KEEP_ALIVE_TRIES: u32 = 3;
/// How long the end of a session may take.
const END_WITHIN: Duration = Duration::from_secs(2);

/// Pages of a list of tools that are read for one of them.
const PAGES_MAX: usize = 100;

/// The way to a server over HTTP.
pub(super) struct HttpLink {
    client: Client,
    options: Arc<BridgeOptions>,
    output: Output,
    reach: Reach,
    session: Session,
    marks: Marks,
}

impl HttpLink {
    /// # Errors
    /// When TLS cannot be set up.
    pub(super) fn new(options: Arc<BridgeOptions>, output: Output) -> std::io::Result<Self> {
        let client = Client::builder()
            .user_agent(concat!("tidegate/", env!("CARGO_PKG_VERSION")))
            // Whether the server can be reached is found out by asking it directly.
            .no_proxy()
            // The token is for one server, and calls are for the one that was named.
            .redirect(redirect::Policy::none())
            .retry(retry::never())
            .referer(false)
            .connect_timeout(options.wait_within)
            .tcp_keepalive(KEEP_ALIVE_EVERY)
            .tcp_keepalive_interval(KEEP_ALIVE_EVERY)
            .tcp_keepalive_retries(KEEP_ALIVE_TRIES)
            .pool_idle_timeout(IDLE_WITHIN)
            .build()
            .map_err(std::io::Error::other)?;
        Ok(Self { client, options, output, reach: Reach::default(), session: Session::new(), marks: Marks::default() })
    }

    /// Sends `call` once, and gives its answer to the client.
    pub(super) async fn call(&self, call: &Call) -> Result<(), Failure> {
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

    /// Sends a modern call, and again with the headers that its tool wants if the server refused it for lack of them.
    async fn call_modern(&self, call: &Call, modern: &Modern, deadline: Instant) -> Result<Arrived, Failure> {
        let mut headers = head::modern(self.options.bearer.as_ref(), modern);
        self.marks.add(&mut headers, modern, &call.line);
        let response = self.post(&call.line, headers.clone(), deadline, &call.open).await?;
        let is_refused = response.status() == StatusCode::BAD_REQUEST;
        let answer = self.receiver().receive(response, call).await?;
        let is_mismatch = is_refused && answer.bytes().is_some_and(|bytes| parameter::is_mismatch(bytes));
        if !is_mismatch || !self.look_up(call, modern, deadline).await {
            return Ok(answer);
        }
        self.marks.add(&mut headers, modern, &call.line);
        let response = self.post(&call.line, headers, deadline, &call.open).await?;
        self.receiver().receive(response, call).await
    }

    /// Asks the server how the tool of `call` wants to be called; false when it says nothing of it.
    async fn look_up(&self, call: &Call, modern: &Modern, deadline: Instant) -> bool {
        let Some(tool) = modern.name.as_deref().filter(|_| modern.method == "tools/call") else { return false };
        let mut cursor = None;
        for _ in 0..PAGES_MAX {
            let Some(line) = parameter::list_of_tools(&call.line, cursor.as_deref()).map(Bytes::from) else { break };
            let Ok(Incoming::Request(request)) = decode(&line) else { break };
            let asking = Call::of_request(line, &request);
            let Some(modern) = &asking.modern else { break };
            let headers = head::modern(self.options.bearer.as_ref(), modern);
            let Ok(response) = self.post(&asking.line, headers, deadline, &asking.open).await else { break };
            let Ok(page) = self.receiver().receive(response, &asking).await else { break };
            match page.bytes().map(|bytes| parameter::find(bytes, tool)) {
                Some(Found::Marks(marks)) => return self.marks.keep(tool, marks),
                Some(Found::Next(next)) => cursor = Some(next),
                Some(Found::Nothing) | None => break,
            }
        }
        false
    }

    /// Sends the client's handshake, and keeps what it settles.
    pub(super) async fn shake_hands(&self, call: &Call) -> Result<(), Failure> {
        let before = self.session.agreed().ok().flatten();
        self.session.set(Standing::None);
        let (answer, session) = self.open(call, self.deadline()).await?;
        // An answer that settles nothing is a refusal, which is for the client to read.
        if let Some(terms) = answer.bytes().and_then(|bytes| Terms::read(bytes).ok())
            && let [id] = call.ids.as_slice()
        {
            let handshake = Handshake { initialize: call.line.clone(), id: id.clone(), initialized: None, terms };
            self.session.agree(handshake, session);
        }
        self.output.send(answer.line).await;
        if let Some(before) = before {
            self.end_session(&before).await;
        }
        Ok(())
    }

    /// Passes on the notification that ends the client's handshake.
    pub(super) async fn initialized(&self, line: Bytes) {
        self.notify(&line, None).await;
        if let Ok(Some(agreed)) = self.session.agreed() {
            let handshake = Handshake { initialized: Some(line), ..agreed.handshake.clone() };
            self.session.agree(handshake, agreed.session.clone());
        }
    }

    /// Passes on what wants no answer.
    pub(super) async fn notify(&self, line: &Bytes, modern: Option<&Modern>) {
        let deadline = self.deadline();
        let open = OpenCall::default();
        let sent = match modern {
            Some(modern) => self.post(line, head::modern(self.options.bearer.as_ref(), modern), deadline, &open).await,
            None => self.post_legacy(line, deadline, &open).await,
        };
        let told = match sent {
            Ok(response) if response.status().is_success() => return,
            Ok(response) => format!("a notification was refused ({})", response.status()),
            Err(failure) => format!("a notification did not arrive: {failure}"),
        };
        self.options.tell(&Notice::Ignored(told));
    }

    /// Ends the session, if there is one.
    pub(super) async fn end(&self) {
        if let Ok(Some(agreed)) = self.session.agreed() {
            self.end_session(&agreed).await;
        }
    }

    async fn end_session(&self, agreed: &Agreed) {
        if agreed.session.is_none() {
            return;
        }
        let headers = head::listening(self.options.bearer.as_ref(), agreed);
        let ending = self.client.delete(self.options.address.url().clone()).headers(headers).send();
        // A server that is gone has no session left.
        let _ = tokio::time::timeout(END_WITHIN, ending).await;
    }

    fn deadline(&self) -> Instant {
        Instant::now() + self.options.wait_within
    }

    fn receiver(&self) -> Receiver<'_> {
        Receiver { options: &self.options, output: &self.output }
    }

    /// A POST of the legacy session. One to a session that is gone did not run: it is sent again in a new one.
    async fn post_legacy(&self, line: &Bytes, deadline: Instant, open: &OpenCall) -> Result<Response, Failure> {
        let bearer = self.options.bearer.as_ref();
        let Some(agreed) = self.session.agreed()? else {
            return self.post(line, head::plain(bearer), deadline, open).await;
        };
        let response = self.post(line, head::legacy(bearer, &agreed), deadline, open).await?;
        if response.status() != StatusCode::NOT_FOUND || agreed.session.is_none() {
            return Ok(response);
        }
        drop(response);
        open.set_under_way(false);
        let agreed = self.renew(&agreed, deadline).await?;
        self.post(line, head::legacy(bearer, &agreed), deadline, open).await
    }

    /// Makes the handshake again that was made with a session which is gone, and gives what holds now.
    async fn renew(&self, gone: &Agreed, deadline: Instant) -> Result<Arc<Agreed>, Failure> {
        let _renewing = self.session.renewing.lock().await;
        let refused = |reason: &str| Failure::NoHandshake { reason: reason.to_owned() };
        match self.session.agreed()? {
            Some(agreed) if agreed.session == gone.session => {}
            Some(agreed) => return Ok(agreed),
            None => return Err(refused("the client is making another one")),
        }
        let Handshake { initialize, id, initialized, terms: before } = gone.handshake.clone();
        let (line, ids) = (initialize.clone(), vec![id.clone()]);
        let call = Call { line, ids, is_batch: false, modern: None, open: Arc::default() };
        let opening = tokio::time::timeout(self.options.handshake_within, self.open(&call, deadline));
        let (answer, session) = opening.await.map_err(|_| refused("it does not answer"))??;
        let bytes = answer.bytes().ok_or_else(|| refused("its answer is too long"))?;
        let terms = Terms::read(bytes).map_err(|words| refused(words.text()))?;
        let gone_on = terms.go_on_from(&before);
        let handshake = Handshake { initialize, id, initialized: initialized.clone(), terms };
        let opened = Agreed { handshake, session };
        if let Err(failure) = gone_on {
            self.session.set(Standing::Broken(failure.clone()));
            self.end_session(&opened).await;
            return Err(failure);
        }
        if let Some(line) = initialized {
            let headers = head::legacy(self.options.bearer.as_ref(), &opened);
            self.post(&line, headers, deadline, &call.open).await?;
            self.tell_of_lists(&opened).await;
        }
        self.options.tell(&Notice::Renewed);
        // Last, since who listens to the old session goes over to the new one now.
        Ok(self.session.agree(opened.handshake, opened.session))
    }

    /// What a client did not hear while nobody listened: its lists may have changed.
    async fn tell_of_lists(&self, agreed: &Agreed) {
        for notification in agreed.handshake.terms.list_changes() {
            self.output.send(Outgoing::Whole(notification)).await;
        }
    }

    async fn open(&self, call: &Call, deadline: Instant) -> Result<(Arrived, Option<HeaderValue>), Failure> {
        let response = self.post(&call.line, head::plain(self.options.bearer.as_ref()), deadline, &call.open).await?;
        let session = response.headers().get(SESSION_ID).cloned();
        Ok((self.receiver().receive(response, call).await?, session))
    }

    /// Sends `body` once; again only while no connection stood, until `deadline`.
    async fn post(
        &self,
        body: &Bytes,
        headers: HeaderMap,
        deadline: Instant,
        open: &OpenCall,
    ) -> Result<Response, Failure> {
        loop {
            open.set_under_way(true);
            let epoch = self.reach.epoch();
            let url = self.options.address.url().clone();
            let error = match self.client.post(url).headers(headers.clone()).body(body.clone()).send().await {
                Ok(response) => {
                    self.reach.found(&self.options);
                    return Ok(response);
                }
                Err(error) if error.is_connect() => error,
                Err(error) => return Err(Failure::Lost { reason: reason(&error) }),
            };
            open.set_under_way(false);
            let reason = reason(&error);
            let waiting = self.reach.until_back(epoch, &reason, &self.options);
            if tokio::time::timeout_at(deadline, waiting).await.is_err() {
                return Err(Failure::Unreachable { waited: self.options.wait_within, reason });
            }
        }
    }
}

/// The innermost cause, which says most, without the URL.
fn reason(error: &reqwest::Error) -> String {
    let mut cause = error.source();
    while let Some(inner) = cause.and_then(std::error::Error::source) {
        cause = Some(inner);
    }
    cause.map_or_else(|| "no cause is known".to_owned(), ToString::to_string)
}
