//! Encodes `CallToolResult` while the tool answers.
//!
//! [MCP 2026-07-28, Calling Tools](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#calling-tools)

use bytes::Bytes;
use serde_json::value::RawValue;
use tidegate_core::{Content, Error, ErrorKind};
use tidegate_runtime::{AnswerMeta, ReplyPart};

use super::answer_meta::failure_meta;
use super::content_blocks::ContentBlocks;
use super::envelope::{ReplyEncoder, ResponseEnvelope};
use crate::jsonrpc::RpcError;
use crate::wire::encode_content;

/// Content comes first, and members that are known last come last: the order of JSON members is free.
pub(crate) struct CallToolEncoder {
    pub(crate) envelope: ResponseEnvelope,
    blocks: ContentBlocks,
    structured: Option<Box<RawValue>>,
}

impl CallToolEncoder {
    pub(crate) fn new(envelope: ResponseEnvelope) -> Self {
        let blocks = ContentBlocks::new(envelope.open() + "\"content\":[");
        Self { envelope, blocks, structured: None }
    }

    /// The complete result for a call that failed before its handler ran.
    pub(crate) fn encode_failure(envelope: ResponseEnvelope, error: &Error) -> Bytes {
        Self::new(envelope).finish(Some(error), &failure_meta(error))
    }

    fn encode_block(&mut self, content: &Content) -> String {
        self.blocks.push_block(&encode_content(content, self.envelope.dialect))
    }

    fn finish(&mut self, failure: Option<&Error>, metadata: &AnswerMeta) -> Bytes {
        let closing = self.envelope.close(metadata, None, true);
        let mut piece = String::with_capacity(64 + closing.len());
        let structured = self.structured.take();
        if let (Some(value), false) = (&structured, self.blocks.has_begun()) {
            // Clients that do not read structured content receive it as text.
            piece.push_str(&self.encode_block(&Content::text(value.get())));
        }
        if let Some(error) = failure.filter(|error| !error.is_reported()) {
            piece.push_str(&self.encode_block(&Content::text(error.to_string())));
        }
        piece.push_str(&self.blocks.close());
        piece.push(',');
        if let Some(value) = structured.filter(|value| self.supports_structured(value.get())) {
            piece.push_str(&format!("\"structuredContent\":{},", value.get()));
        }
        piece.push_str(if failure.is_some() { "\"isError\":true" } else { "\"isError\":false" });
        piece.push_str(&closing);
        piece.into()
    }

    /// Whether the client must correct the problem itself: missing capabilities, credentials or scopes.
    fn is_client_error(&self, error: &Error) -> bool {
        let is_for_client = match error.kind() {
            ErrorKind::MissingClientCapability => self.envelope.dialect.stateless,
            kind => kind == ErrorKind::Unauthenticated || !error.scopes().is_empty(),
        };
        is_for_client && !self.blocks.has_begun()
    }

    fn supports_structured(&self, structured: &str) -> bool {
        let dialect = self.envelope.dialect;
        dialect.titles && (structured.starts_with('{') || dialect.structured_content_is_any_value)
    }
}

impl ReplyEncoder for CallToolEncoder {
    fn encode(&mut self, part: ReplyPart) -> (Bytes, Option<RpcError>) {
        let bytes = match part {
            ReplyPart::Text(text) => self.blocks.push_text(&text),
            ReplyPart::EndOfText => self.blocks.end_text().into(),
            ReplyPart::Block(Content::Text { text, annotations: None }) => self.blocks.push_whole_text(&text),
            ReplyPart::Block(content) | ReplyPart::PromptMessage(_, content) => self.encode_block(&content).into(),
            ReplyPart::Structured(value) => {
                self.structured = Some(value);
                Bytes::new()
            }
            ReplyPart::End(Ok(metadata)) => self.finish(None, &metadata),
            ReplyPart::End(Err(error)) if self.is_client_error(&error) => return self.envelope.fail(&error, None),
            ReplyPart::End(Err(error)) => self.finish(Some(&error), &AnswerMeta::default()),
            // MCP calls request content, never a body.
            _ => Bytes::new(),
        };
        (bytes, None)
    }
}
