//! Frames of a WebSocket.

use async_trait::async_trait;
use serde_json::{Value, json};
use tidegate_mcp::Revision;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Error;

use super::super::fixture::{TestServer, bearer};
use super::super::mcp::{AnswerEnd, McpAnswer, Wire};
use super::super::outcome::StepResult;
use super::super::step::StepRequest;
use super::{AnswerCollector, expect_answer, path};
use crate::http::TEST_TIMEOUT;
use crate::http::web_socket::Socket;

pub(in super::super) struct SocketWire {
    socket: Socket,
    requested: usize,
    is_open: bool,
}

impl SocketWire {
    pub(in super::super) async fn open(
        world: &TestServer,
        revision: Revision,
        by: Option<&str>,
        through: Option<&str>,
    ) -> Result<Self, StepResult> {
        let stream = TcpStream::connect(world.server.address).await.unwrap();
        let bearer = by.map(bearer);
        let headers: Vec<(&str, &str)> = bearer.iter().map(|bearer| ("Authorization", bearer.as_str())).collect();
        let mut socket = match Socket::opened(stream, &path(through, "/ws"), &headers).await {
            Ok(socket) => socket,
            Err(Error::Http(response)) => {
                let message = serde_json::from_slice(response.body().as_deref().unwrap()).unwrap();
                let mcp_answer = McpAnswer::message(message, Some(response.status().as_u16()));
                return Err(mcp_answer.into_step_result(&StepRequest::Bytes(String::new())));
            }
            Err(error) => panic!("{error}"),
        };
        if revision.is_legacy() {
            socket.shake_hands(revision).await;
        }
        Ok(Self { socket, requested: 0, is_open: true })
    }

    async fn answer(&mut self) -> McpAnswer {
        let mut listening = AnswerCollector::default();
        loop {
            match timeout(TEST_TIMEOUT, self.socket.hear()).await.unwrap() {
                Ok(message) => {
                    if let Some(mcp_answer) = listening.hear(message) {
                        return mcp_answer;
                    }
                }
                Err((code, reason)) => {
                    self.is_open = false;
                    return McpAnswer { notices: Vec::new(), end: AnswerEnd::Closed(code, reason) };
                }
            }
        }
    }
}

#[async_trait]
impl Wire for SocketWire {
    async fn ask(&mut self, method: &str, params: Value) -> McpAnswer {
        self.requested += 1;
        self.socket.send(json!(self.requested), method, params).await;
        self.answer().await
    }

    async fn say(&mut self, bytes: &[u8]) -> McpAnswer {
        expect_answer(&mut self.socket.ledger, bytes);
        self.socket.say(std::str::from_utf8(bytes).unwrap()).await;
        self.answer().await
    }

    fn is_open(&self) -> bool {
        self.is_open
    }
}
