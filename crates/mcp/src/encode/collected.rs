//! Encodes `GetPromptResult` and `CompleteResult`, which are small and collected until the reply ends.
//!
//! [MCP 2026-07-28, Getting a Prompt](https://modelcontextprotocol.io/specification/2026-07-28/server/prompts#getting-a-prompt),
//! [MCP 2026-07-28, Completion](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/completion)

use bytes::Bytes;
use serde_json::{Value, json};
use tidegate_core::{Completion, Content, ContentRole};
use tidegate_runtime::{Chunk, Outcome};

use super::envelope::{ReplyEncoder, ResponseEnvelope};
use crate::jsonrpc::RpcError;
use crate::wire::encode_prompt_message;

/// Collects the messages of one prompt; there are only a few.
pub(crate) struct GetPromptEncoder {
    envelope: ResponseEnvelope,
    description: Option<String>,
    messages: Vec<Value>,
}

impl GetPromptEncoder {
    pub(crate) fn new(envelope: ResponseEnvelope, description: Option<String>) -> Self {
        Self { envelope, description, messages: Vec::new() }
    }

    fn push_message(&mut self, speaker: ContentRole, content: &Content) {
        self.messages.push(encode_prompt_message(speaker, content, self.envelope.dialect));
    }
}

impl ReplyEncoder for GetPromptEncoder {
    fn encode_chunk(&mut self, chunk: Chunk) -> Bytes {
        match chunk {
            Chunk::PromptMessage(speaker, content) => self.push_message(speaker, &content),
            Chunk::Block(content) => self.push_message(ContentRole::User, &content),
            Chunk::Text(text) => self.push_message(ContentRole::User, &Content::text(text)),
            Chunk::EndOfText
            | Chunk::Structured(_)
            | Chunk::Body(_)
            | Chunk::Bytes(_)
            | Chunk::Completion(_)
            | Chunk::Notification(_) => {}
        }
        Bytes::new()
    }

    fn encode_outcome(&mut self, outcome: Outcome) -> (Bytes, Option<RpcError>) {
        match outcome {
            Outcome::Done(metadata) => {
                let messages = Value::Array(std::mem::take(&mut self.messages));
                let mut members = format!("\"messages\":{messages}");
                if let Some(description) = &self.description {
                    members.push_str(&format!(",\"description\":{}", json!(description)));
                }
                (self.envelope.encode_response(&members, &metadata, None), None)
            }
            Outcome::Failed(error) => self.envelope.fail(&error, None),
        }
    }
}

/// Stores the completion until the end of the reply.
pub(crate) struct CompleteEncoder {
    envelope: ResponseEnvelope,
    completion: Completion,
}

impl CompleteEncoder {
    pub(crate) fn new(envelope: ResponseEnvelope) -> Self {
        Self { envelope, completion: Completion::default() }
    }
}

impl ReplyEncoder for CompleteEncoder {
    fn encode_chunk(&mut self, chunk: Chunk) -> Bytes {
        if let Chunk::Completion(completion) = chunk {
            self.completion = completion;
        }
        Bytes::new()
    }

    fn encode_outcome(&mut self, outcome: Outcome) -> (Bytes, Option<RpcError>) {
        match outcome {
            Outcome::Done(metadata) => {
                let Completion { values, total, has_more } = std::mem::take(&mut self.completion);
                let visible = &values[..values.len().min(Completion::VALUES_MAX)];
                let mut completion = json!({"values": visible, "hasMore": has_more});
                if let Some(total) = total {
                    completion["total"] = total.into();
                }
                (self.envelope.encode_response(&format!("\"completion\":{completion}"), &metadata, None), None)
            }
            Outcome::Failed(error) => self.envelope.fail(&error, None),
        }
    }
}
