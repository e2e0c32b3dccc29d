//! POSTs and the event stream of HTTP+SSE.

use async_trait::async_trait;
use serde_json::{Value, json};
use tidegate_mcp::Revision;
use tokio::time::timeout;

use super::super::fixture::{TestServer, bearer};
use super::super::mcp::{McpAnswer, Wire};
use super::super::outcome::StepResult;
use super::super::step::StepRequest;
use super::{AnswerCollector, expect_answer, path};
use crate::http::TEST_TIMEOUT;
use crate::http::http_sse::Stream;

pub(in super::super) struct SseWire {
    stream: Stream,
    requested: usize,
}

impl SseWire {
    pub(in super::super) async fn open(
        world: &TestServer,
        revision: Revision,
        by: Option<&str>,
        through: Option<&str>,
    ) -> Result<Self, StepResult> {
        let bearer = by.map(bearer);
        let headers: Vec<(&str, &str)> = bearer.iter().map(|bearer| ("Authorization", bearer.as_str())).collect();
        match Stream::opened(world.server.address, &path(through, "/sse"), &headers).await {
            Ok(mut stream) => {
                stream.shake_hands(revision).await;
                Ok(Self { stream, requested: 0 })
            }
            Err(answer) => {
                let mcp_answer = McpAnswer::message(answer.message(), Some(answer.head.status));
                Err(mcp_answer.into_step_result(&StepRequest::Bytes(String::new())))
            }
        }
    }

    async fn post(&mut self, bytes: &[u8]) -> McpAnswer {
        let answer = self.stream.post(bytes).await;
        if answer.head.status == 202 {
            return self.answer().await;
        }
        let message = answer.message();
        if !message["id"].is_null() {
            // The answer with this id is sent on the stream.
            let mcp_answer = self.answer().await;
            assert_eq!(format!("{:?}", mcp_answer.end), format!("{:?}", McpAnswer::message(message.clone(), None).end));
        }
        McpAnswer::message(message, Some(answer.head.status))
    }

    async fn answer(&mut self) -> McpAnswer {
        let mut listening = AnswerCollector::default();
        loop {
            let message = timeout(TEST_TIMEOUT, self.stream.hear()).await.unwrap().unwrap();
            if let Some(mcp_answer) = listening.hear(message) {
                return mcp_answer;
            }
        }
    }
}

#[async_trait]
impl Wire for SseWire {
    async fn ask(&mut self, method: &str, params: Value) -> McpAnswer {
        self.requested += 1;
        let request = self.stream.ledger.request(&json!(self.requested), method, params);
        self.post(request.as_bytes()).await
    }

    async fn say(&mut self, bytes: &[u8]) -> McpAnswer {
        expect_answer(&mut self.stream.ledger, bytes);
        self.post(bytes).await
    }
}
