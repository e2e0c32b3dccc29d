//! Encodes `GetPromptResult` and `CompleteResult`, which are small and collected until the reply ends.
//!
//! [MCP 2026-07-28, Getting a Prompt](https://modelcontextprotocol.io/specification/2026-07-28/server/prompts#getting-a-prompt),
//! [MCP 2026-07-28, Completion](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/completion)

use bytes::Bytes;
use serde_json::{Value, json};
use tidegate_core::{Completion, Content, ContentRole};
use tidegate_runtime::ReplyPart;

use super::envelope::{ReplyEncoder, ResponseEnvelope};
use crate::jsonrpc::RpcError;
use crate::wire::encode_prompt_message;

/// Encodes one prompt or one completion at the end of its reply.
pub(crate) struct CollectingEncoder {
    envelope: ResponseEnvelope,
    description: Option<String>,
    messages: Vec<Value>,
    /// `None` for a prompt.
    completion: Option<Completion>,
}

impl CollectingEncoder {
    pub(crate) fn for_prompt(envelope: ResponseEnvelope, description: Option<String>) -> Self {
        Self { envelope, description, messages: Vec::new(), completion: None }
    }

    pub(crate) fn for_completion(envelope: ResponseEnvelope) -> Self {
        Self { completion: Some(Completion::default()), ..Self::for_prompt(envelope, None) }
    }

    fn push_message(&mut self, speaker: ContentRole, content: &Content) {
        self.messages.push(encode_prompt_message(speaker, content, self.envelope.dialect));
    }

    fn members(&mut self) -> String {
        let Some(Completion { values, total, has_more }) = self.completion.take() else {
            let description = self.description.as_ref().map(|text| format!(",\"description\":{}", json!(text)));
            let messages = Value::Array(std::mem::take(&mut self.messages));
            return format!("\"messages\":{messages}{}", description.unwrap_or_default());
        };
        let mut completion =
            json!({"values": &values[..values.len().min(Completion::VALUES_MAX)], "hasMore": has_more});
        if let Some(total) = total {
            completion["total"] = total.into();
        }
        format!("\"completion\":{completion}")
    }
}

impl ReplyEncoder for CollectingEncoder {
    fn encode(&mut self, part: ReplyPart) -> (Bytes, Option<RpcError>) {
        match part {
            ReplyPart::PromptMessage(speaker, content) => self.push_message(speaker, &content),
            ReplyPart::Block(content) => self.push_message(ContentRole::User, &content),
            ReplyPart::Text(text) => self.push_message(ContentRole::User, &Content::text(text)),
            ReplyPart::Completion(completion) if self.completion.is_some() => self.completion = Some(completion),
            ReplyPart::End(Ok(metadata)) => {
                let members = self.members();
                return (self.envelope.encode_response(&members, &metadata, None), None);
            }
            ReplyPart::End(Err(error)) => return self.envelope.fail(&error, None),
            _ => {}
        }
        (Bytes::new(), None)
    }
}
