//! Encodes `ReadResourceResult` while the resource is read.
//!
//! [MCP 2026-07-28, Reading Resources](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#reading-resources)

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tidegate_core::{Content, ResourceBody, ResourceContents};
use tidegate_runtime::{AnswerMeta, CacheHint, ReplyPart};

use super::content_blocks::ContentBlocks;
use super::envelope::{ReplyEncoder, ResponseEnvelope};
use crate::jsonrpc::RpcError;
use crate::wire::encode_resource_contents;

/// Encodes one `ReadResourceResult`. Texts are the contents of the requested resource.
pub(crate) struct ReadResourceEncoder {
    envelope: ResponseEnvelope,
    uri: String,
    mime_type: Option<String>,
    cache: CacheHint,
    blocks: ContentBlocks,
}

impl ReadResourceEncoder {
    pub(crate) fn new(envelope: ResponseEnvelope, uri: String, mime_type: Option<String>, cache: CacheHint) -> Self {
        let blocks = ContentBlocks::new(envelope.open() + "\"contents\":[");
        Self { envelope, uri, mime_type, cache, blocks }
    }

    fn text_opening(&self) -> String {
        let mime_type = self.mime_type.as_ref().map(|mime| format!("\"mimeType\":{},", Value::from(mime.as_str())));
        format!("{{\"uri\":{},{}\"text\":\"", Value::from(self.uri.as_str()), mime_type.unwrap_or_default())
    }

    fn encode_contents(&self, content: Content) -> Value {
        match content {
            Content::Resource(contents) => encode_resource_contents(&contents),
            Content::Text { text, .. } => self.encode_own_contents(ResourceBody::Text(text), None),
            Content::Image { data, mime_type } | Content::Audio { data, mime_type } => {
                self.encode_own_contents(ResourceBody::Blob(data), Some(mime_type))
            }
            Content::Link(link) => json!({"uri": link.uri, "text": link.name}),
        }
    }

    fn encode_own_contents(&self, body: ResourceBody, mime_type: Option<String>) -> Value {
        let mime_type = mime_type.or_else(|| self.mime_type.clone());
        encode_resource_contents(&ResourceContents { uri: self.uri.clone(), mime_type, body })
    }

    fn finish(&mut self, metadata: &AnswerMeta) -> Bytes {
        let mut piece = self.blocks.close();
        // The missing rows may be back at once.
        let is_partial = metadata.missing_nodes.is_some();
        let cache = if is_partial { CacheHint { time_to_live: Duration::ZERO, public: false } } else { self.cache };
        piece.push_str(&self.envelope.close(metadata, Some(cache), true));
        piece.into()
    }
}

impl ReplyEncoder for ReadResourceEncoder {
    fn encode(&mut self, part: ReplyPart) -> (Bytes, Option<RpcError>) {
        let bytes = match part {
            ReplyPart::Text(text) => {
                let opening = self.text_opening();
                self.blocks.push_text_into(&opening, &text)
            }
            ReplyPart::EndOfText => self.blocks.end_text().into(),
            ReplyPart::Block(content) | ReplyPart::PromptMessage(_, content) => {
                let contents = self.encode_contents(content);
                self.blocks.push_block(&contents).into()
            }
            ReplyPart::End(Ok(metadata)) => self.finish(&metadata),
            ReplyPart::End(Err(error)) if !self.blocks.has_begun() => {
                return self.envelope.fail(&error, Some(&self.uri));
            }
            ReplyPart::End(Err(error)) => {
                // The contents sent so far remain valid. A second text of the same URI contains the error.
                let contents =
                    self.encode_own_contents(ResourceBody::Text(error.to_string()), Some("text/plain".to_owned()));
                let mut piece = self.blocks.push_block(&contents).into_bytes();
                piece.extend_from_slice(&self.finish(&AnswerMeta::default()));
                piece.into()
            }
            _ => Bytes::new(),
        };
        (bytes, None)
    }
}
