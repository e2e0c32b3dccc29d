//! POSTs and the event stream of HTTP+SSE.

use async_trait::async_trait;
use serde_json::{Value, json};
use tidegate_mcp::Revision;
use tokio::time::timeout;

use super::super::mcp::{Said, Wire};
use super::super::outcome::Heard;
use super::super::step::Ask;
use super::super::world::{World, bearer};
use super::{Listening, foresee, path};
use crate::http::PATIENCE;
use crate::http::http_sse::Stream;

pub(in super::super) struct SseWire {
    stream: Stream,
    asked: usize,
}

impl SseWire {
    pub(in super::super) async fn open(
        world: &World,
        revision: Revision,
        by: Option<&str>,
        through: Option<&str>,
    ) -> Result<Self, Heard> {
        let bearer = by.map(bearer);
        let headers: Vec<(&str, &str)> = bearer.iter().map(|bearer| ("Authorization", bearer.as_str())).collect();
        match Stream::opened(world.server.address, &path(through, "/sse"), &headers).await {
            Ok(mut stream) => {
                stream.shake_hands(revision).await;
                Ok(Self { stream, asked: 0 })
            }
            Err(answer) => {
                let said = Said::message(answer.message(), Some(answer.head.status));
                Err(said.heard(&Ask::Bytes(String::new())))
            }
        }
    }

    async fn post(&mut self, bytes: &[u8]) -> Said {
        let answer = self.stream.post(bytes).await;
        if answer.head.status == 202 {
            return self.answer().await;
        }
        let message = answer.message();
        if !message["id"].is_null() {
            // Who waits for an answer of that id waits for it on the stream.
            let said = self.answer().await;
            assert_eq!(format!("{:?}", said.end), format!("{:?}", Said::message(message.clone(), None).end));
        }
        Said::message(message, Some(answer.head.status))
    }

    async fn answer(&mut self) -> Said {
        let mut listening = Listening::default();
        loop {
            let message = timeout(PATIENCE, self.stream.hear()).await.unwrap().unwrap();
            if let Some(said) = listening.hear(message) {
                return said;
            }
        }
    }
}

#[async_trait]
impl Wire for SseWire {
    async fn ask(&mut self, method: &str, params: Value) -> Said {
        self.asked += 1;
        let request = self.stream.ledger.request(&json!(self.asked), method, params);
        self.post(request.as_bytes()).await
    }

    async fn say(&mut self, bytes: &[u8]) -> Said {
        foresee(&mut self.stream.ledger, bytes);
        self.post(bytes).await
    }
}
