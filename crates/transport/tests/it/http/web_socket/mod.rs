//! MCP over WebSocket: a client that checks all messages.
//!
//! - `revisions`: handshakes, batches, changed lists, modern requests between them, toolsets.
//! - `order`: a slow answer does not delay others; long ones are whole.
//! - `handshake`: requests that open no WebSocket, and why.
//! - `input`: invalid input of a client, and the close code.
//! - `identity`: the caller is resolved at each message and while it is quiet.
//! - `timeouts`: pings and idle timeouts, with paused time.
//! - `elicitation`: requests of the server, and their answers.
//! - `listening`: notification streams, and the resources that a legacy session subscribes to.
//! - `end`: clients that disconnect or do not read, and shutdown.

mod elicitation;
mod end;
mod handshake;
mod identity;
mod input;
mod listening;
mod order;
mod revisions;
mod timeouts;

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tidegate_mcp::Revision;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{ClientRequestBuilder, Error as WebSocketError, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use super::{Server, TEST_TIMEOUT};
use tidegate_testkit::message_checker::{MessageChecker, script};

/// A client.
pub(crate) struct Socket<S = TcpStream> {
    stream: WebSocketStream<S>,
    pub(crate) ledger: MessageChecker,
    /// Pings and pongs that arrived between messages.
    pings: usize,
}

impl Socket {
    pub(crate) async fn open(server: &Server) -> Self {
        Self::at(server, "/mcp/ws", &[]).await
    }

    /// A socket at another path or with further headers.
    async fn at(server: &Server, path: &str, headers: &[(&str, &str)]) -> Self {
        let stream = TcpStream::connect(server.address).await.unwrap();
        Self::over(stream, path, headers).await
    }

    /// A socket with a handshake of `revision`.
    async fn agreed(server: &Server, revision: Revision) -> Self {
        let mut socket = Self::open(server).await;
        socket.shake_hands(revision).await;
        socket
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Socket<S> {
    async fn over(stream: S, path: &str, headers: &[(&str, &str)]) -> Self {
        Self::opened(stream, path, headers).await.unwrap()
    }

    /// A socket that the server may refuse to open.
    pub(crate) async fn opened(stream: S, path: &str, headers: &[(&str, &str)]) -> Result<Self, WebSocketError> {
        let request = ClientRequestBuilder::new(format!("ws://127.0.0.1{path}").parse().unwrap());
        let request = headers
            .iter()
            .fold(request.with_sub_protocol("mcp"), |request, (name, value)| request.with_header(*name, *value));
        let (stream, response) = timeout(TEST_TIMEOUT, client_async(request, stream)).await.unwrap()?;
        assert_eq!(response.headers()["sec-websocket-protocol"], "mcp");
        Ok(Self { stream, ledger: MessageChecker::default(), pings: 0 })
    }

    pub(crate) async fn shake_hands(&mut self, revision: Revision) {
        let handshake = self.ledger.handshake(revision);
        self.say(&handshake).await;
        assert_eq!(self.hear().await.unwrap()["result"]["protocolVersion"], revision.name());
        self.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    }

    /// Sends a text unchanged.
    pub(crate) async fn say(&mut self, text: &str) {
        self.put(Message::text(text)).await;
    }

    async fn put(&mut self, message: Message) {
        timeout(TEST_TIMEOUT, self.stream.send(message)).await.unwrap().unwrap();
    }

    pub(crate) async fn send(&mut self, id: Value, method: &str, params: Value) {
        let request = self.ledger.request(&id, method, params);
        self.say(&request).await;
    }

    /// Calls the tool `script`.
    async fn call(&mut self, id: Value, steps: Value) {
        self.send(id, "tools/call", script(&steps)).await;
    }

    /// The next message, or the code and reason of the close frame; 1006 if the connection just ends.
    pub(crate) async fn hear(&mut self) -> Result<Value, (u16, String)> {
        loop {
            match self.stream.next().await {
                Some(Ok(Message::Text(text))) => {
                    let message = serde_json::from_str(&text).unwrap();
                    self.ledger.check(&message);
                    return Ok(message);
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => self.pings += 1,
                Some(Ok(Message::Close(Some(frame)))) => return Err((frame.code.into(), frame.reason.to_string())),
                Some(Ok(other)) => panic!("what is this: {other:?}"),
                Some(Err(_)) | None => return Err((CloseCode::Abnormal.into(), String::new())),
            }
        }
    }

    /// Sends a request and returns the answer, which must be the next message.
    async fn ask(&mut self, id: Value, method: &str, params: Value) -> Value {
        self.send(id.clone(), method, params).await;
        let answer = timeout(TEST_TIMEOUT, self.hear()).await.unwrap().unwrap();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Checks that the connection still answers.
    pub(crate) async fn lives(&mut self) {
        let method = if self.ledger.agreed.is_some() { "ping" } else { "server/discover" };
        let answer = self.ask(json!("alive?"), method, json!({})).await;
        assert!(answer.get("result").is_some(), "{answer}");
    }

    /// The code and reason of the close frame, with no message before that.
    async fn closed(&mut self) -> (u16, String) {
        timeout(TEST_TIMEOUT, self.hear()).await.unwrap().unwrap_err()
    }

    /// Closes the client side; the server answers with a close frame.
    async fn close(mut self) {
        // An error means that the server has already closed the connection.
        let _ = timeout(TEST_TIMEOUT, self.stream.close(None)).await.unwrap();
        while let Some(Ok(_)) = timeout(TEST_TIMEOUT, self.stream.next()).await.unwrap() {}
    }
}
