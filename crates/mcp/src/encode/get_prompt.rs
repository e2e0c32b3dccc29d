//! `GetPromptResult`.
//!
//! [MCP 2026-07-28, Getting a Prompt](https://modelcontextprotocol.io/specification/2026-07-28/server/prompts#getting-a-prompt)

use bytes::Bytes;
use serde_json::{Value, json};
use tidegate_core::{Chunk, Content, Outcome, Role};

use super::ReplyEncoder;
use super::envelope::Envelope;
use crate::jsonrpc::RpcError;
use crate::wire::prompt_message;

/// Gathers the messages of one prompt, which are few.
pub(crate) struct GetPromptEncoder {
    envelope: Envelope,
    description: Option<String>,
    messages: Vec<Value>,
}

impl GetPromptEncoder {
    pub(crate) fn new(envelope: Envelope, description: Option<String>) -> Self {
        Self { envelope, description, messages: Vec::new() }
    }

    fn message(&mut self, speaker: Role, content: &Content) {
        self.messages.push(prompt_message(speaker, content, self.envelope.dialect));
    }
}

impl ReplyEncoder for GetPromptEncoder {
    fn chunk(&mut self, chunk: Chunk) -> Bytes {
        match chunk {
            Chunk::Message(speaker, content) => self.message(speaker, &content),
            Chunk::Block(content) => self.message(Role::User, &content),
            Chunk::Text(text) => self.message(Role::User, &Content::text(text)),
            Chunk::EndOfText
            | Chunk::Structured(_)
            | Chunk::Body(_)
            | Chunk::Bytes(_)
            | Chunk::Completion(_)
            | Chunk::Notice(_) => {}
        }
        Bytes::new()
    }

    fn end(&mut self, outcome: Outcome) -> (Bytes, Option<RpcError>) {
        match outcome {
            Outcome::Done(metadata) => {
                let messages = Value::Array(std::mem::take(&mut self.messages));
                let mut members = format!("\"messages\":{messages}");
                if let Some(description) = &self.description {
                    members.push_str(&format!(",\"description\":{}", json!(description)));
                }
                (self.envelope.whole(&members, &metadata, None), None)
            }
            Outcome::Failed(error) => {
                let error = RpcError::from_error(&error, None, self.envelope.dialect);
                (self.envelope.error(&error), Some(error))
            }
        }
    }
}
