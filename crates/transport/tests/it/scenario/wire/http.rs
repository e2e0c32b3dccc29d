//! One POST of Streamable HTTP for each message.

use async_trait::async_trait;
use serde_json::{Value, json};
use tidegate_mcp::Revision;

use super::super::fixture::{TestServer, bearer};
use super::super::mcp::{AnswerEnd, McpAnswer, Wire};
use super::super::outcome::StepResult;
use super::super::step::StepRequest;
use super::{AnswerCollector, path};
use crate::http::request::Post;
use crate::http::wire::{Answer, Connection, request};
use tidegate_testkit::schema::{check_notification, check_response};

pub(in super::super) struct HttpWire {
    connection: Connection,
    path: String,
    bearer: Option<String>,
    revision: Revision,
    /// The session of a legacy client.
    session: Option<String>,
}

impl HttpWire {
    pub(in super::super) async fn open(
        world: &TestServer,
        revision: Revision,
        by: Option<&str>,
        through: Option<&str>,
    ) -> Result<Self, StepResult> {
        let connection = Connection::open(world.server.address).await;
        let (path, bearer) = (path(through, ""), by.map(bearer));
        let mut wire = Self { connection, path, bearer, revision, session: None };
        if revision.is_legacy() {
            let client = json!({"name": "test", "version": "1"});
            let params = json!({"protocolVersion": revision.name(), "capabilities": {}, "clientInfo": client});
            let answer = wire.post(Post::message("initialize", params)).await;
            if answer.head.status != 200 {
                return Err(wire.received("", &answer).into_step_result(&StepRequest::Bytes(String::new())));
            }
            wire.received("initialize", &answer);
            wire.session = answer.header("mcp-session-id").map(str::to_owned);
        }
        Ok(wire)
    }

    async fn post(&mut self, mut post: Post) -> Answer {
        if let Some(bearer) = &self.bearer {
            post = post.with("Authorization", bearer);
        }
        if let Some(session) = &self.session {
            post = post.with("Mcp-Session-Id", session).with("MCP-Protocol-Version", self.revision.name());
        }
        let headers: Vec<_> = post.headers().collect();
        self.connection.ask(&request("POST", &self.path, &headers, &post.body)).await
    }

    /// The messages of a response, each of which is checked.
    fn received(&self, method: &str, answer: &Answer) -> McpAnswer {
        let mut listening = AnswerCollector::default();
        let mut mcp_answer = None;
        for message in messages(answer) {
            match message.get("method") {
                Some(_) => check_notification(self.revision, &message),
                None => check_response(self.revision, method, &message),
            }
            assert!(mcp_answer.is_none(), "something follows the answer: {message}");
            mcp_answer = listening.hear(message);
        }
        let McpAnswer { notices, end } = mcp_answer.unwrap_or_else(|| panic!("{answer:?}"));
        match end {
            AnswerEnd::Message(message, _) => {
                McpAnswer { notices, ..McpAnswer::message(message, Some(answer.head.status)) }
            }
            closed => McpAnswer { notices, end: closed },
        }
    }
}

fn messages(answer: &Answer) -> Vec<Value> {
    if answer.header("content-type") != Some("text/event-stream") {
        return vec![answer.message()];
    }
    let data = answer.text().lines().filter_map(|line| line.strip_prefix("data:"));
    // The first event of a resumable stream has no data.
    data.filter(|data| !data.trim().is_empty()).map(|data| serde_json::from_str(data).unwrap()).collect()
}

#[async_trait]
impl Wire for HttpWire {
    async fn ask(&mut self, method: &str, params: Value) -> McpAnswer {
        let post = match self.session {
            Some(_) => Post::message(method, params),
            None => Post::modern(method, params),
        };
        let answer = self.post(post).await;
        self.received(method, &answer)
    }

    async fn say(&mut self, bytes: &[u8]) -> McpAnswer {
        let answer = self.post(Post::raw(bytes)).await;
        self.received("", &answer)
    }
}
