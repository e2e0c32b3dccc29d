//! Lines over standard input and output, of the server itself or of a bridge to it.

use async_trait::async_trait;
use serde_json::{Value, json};
use tidegate_client::BearerToken;
use tidegate_client::bridge::{self, BridgeOptions, ServerAddress};
use tidegate_mcp::Revision;
use tidegate_transport::stdio::StdioOptions;
use tokio::time::timeout;

use super::super::fixture::{MESSAGE_BYTES_MAX, TestServer, key};
use super::super::mcp::{McpAnswer, Wire};
use super::{AnswerCollector, expect_answer, path};
use crate::http::TEST_TIMEOUT;
use crate::stdio::Pipe;

pub(in super::super) struct PipeWire {
    pipe: Pipe,
    requested: usize,
}

impl PipeWire {
    /// A server that this person started.
    pub(in super::super) async fn of_process(
        world: &TestServer,
        revision: Revision,
        by: Option<&str>,
        through: Option<&str>,
    ) -> Self {
        let options = StdioOptions {
            authenticator: world.process_of(by.expect("a process has a user")),
            toolset: through.map(str::to_owned),
            message_bytes_max: MESSAGE_BYTES_MAX,
            ..StdioOptions::default()
        };
        Self::greeted(Pipe::with(&world.server.host, options), revision).await
    }

    /// A bridge that this person started, to the server's URL with this scheme.
    pub(in super::super) async fn bridged(
        world: &TestServer,
        revision: Revision,
        by: Option<&str>,
        through: Option<&str>,
        scheme: &str,
    ) -> Self {
        let last = if scheme == "ws" { "/ws" } else { "" };
        let address = format!("{scheme}://{}{}", world.server.address, path(through, last));
        let options = BridgeOptions {
            bearer: by.map(|by| BearerToken::parse(&key(by)).unwrap()),
            message_bytes_max: MESSAGE_BYTES_MAX,
            ..BridgeOptions::new(ServerAddress::parse(&address).unwrap())
        };
        let pipe =
            Pipe::served(|reader, writer, shutdown| tokio::spawn(bridge::serve(reader, writer, options, shutdown)));
        Self::greeted(pipe, revision).await
    }

    async fn greeted(mut pipe: Pipe, revision: Revision) -> Self {
        if revision.is_legacy() {
            timeout(TEST_TIMEOUT, pipe.shake_hands(revision)).await.unwrap();
        }
        Self { pipe, requested: 0 }
    }

    async fn answer(&mut self) -> McpAnswer {
        let mut listening = AnswerCollector::default();
        loop {
            let message = timeout(TEST_TIMEOUT, self.pipe.hear()).await.unwrap().unwrap();
            if let Some(mcp_answer) = listening.hear(message) {
                return mcp_answer;
            }
        }
    }
}

#[async_trait]
impl Wire for PipeWire {
    async fn ask(&mut self, method: &str, params: Value) -> McpAnswer {
        self.requested += 1;
        self.pipe.send(json!(self.requested), method, params).await;
        self.answer().await
    }

    async fn say(&mut self, bytes: &[u8]) -> McpAnswer {
        expect_answer(&mut self.pipe.ledger, bytes);
        self.pipe.line(bytes).await;
        self.answer().await
    }
}
