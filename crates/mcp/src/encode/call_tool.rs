//! `CallToolResult`, written while the tool answers.
//!
//! [MCP 2026-07-28, Calling Tools](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#calling-tools)

use bytes::Bytes;
use serde_json::value::RawValue;
use tidegate_core::{Chunk, Content, Error, ErrorKind, Metadata, Outcome};

use super::ReplyEncoder;
use super::envelope::Envelope;
use super::text::Blocks;
use crate::jsonrpc::{RpcError, milliseconds};
use crate::revision::Dialect;
use crate::wire::content_block;

/// After how many milliseconds a call that was one too many may come again, in `_meta`.
const RETRY_AFTER: &str = "dev.tidegate/retry_after_ms";

const TEXT_OPENING: &str = "{\"type\":\"text\",\"text\":\"";
const TEXT_CLOSING: &str = "\"}";

/// The state of one `CallToolResult`: member order is free in JSON, so content comes first and
/// what is known last comes last.
pub(crate) struct CallToolEncoder {
    envelope: Envelope,
    blocks: Blocks,
    has_begun: bool,
    structured: Option<Box<RawValue>>,
}

impl CallToolEncoder {
    pub(crate) fn new(envelope: Envelope) -> Self {
        Self { envelope, blocks: Blocks::default(), has_begun: false, structured: None }
    }

    /// What surrounds it.
    pub(crate) fn envelope(&self) -> Envelope {
        self.envelope.clone()
    }

    /// In which words it speaks.
    pub(crate) fn dialect(&self) -> &'static Dialect {
        self.envelope.dialect
    }

    /// The whole result for a call that failed before its handler ran.
    pub(crate) fn failure(envelope: Envelope, error: &Error) -> Bytes {
        let mut metadata = Metadata::new();
        if let Some(time) = error.retry_after() {
            metadata.insert(RETRY_AFTER.to_owned(), milliseconds(time).into());
        }
        Self::new(envelope).finish(Some(error), &metadata)
    }

    fn beginning(&mut self) -> String {
        if std::mem::replace(&mut self.has_begun, true) {
            return String::new();
        }
        let mut opening = self.envelope.open();
        opening.push_str("\"content\":[");
        opening
    }

    fn block(&mut self, content: &Content) -> String {
        let mut piece = self.beginning();
        piece.push_str(&self.blocks.block(TEXT_CLOSING, &content_block(content, self.envelope.dialect)));
        piece
    }

    fn finish(&mut self, failure: Option<&Error>, metadata: &Metadata) -> Bytes {
        let mut piece = String::new();
        let structured = self.structured.take();
        if let (Some(value), false) = (&structured, self.has_begun) {
            // Clients that do not read structured content get the same as text.
            piece.push_str(&self.block(&Content::text(value.get())));
        }
        if let Some(error) = failure.filter(|error| !error.is_told()) {
            piece.push_str(&self.block(&Content::text(error.to_string())));
        }
        piece.push_str(&self.beginning());
        piece.push_str(&self.blocks.end_text(TEXT_CLOSING));
        piece.push_str("],");
        if let Some(value) = structured.filter(|value| self.may_carry(value.get())) {
            piece.push_str(&format!("\"structuredContent\":{},", value.get()));
        }
        piece.push_str(if failure.is_some() { "\"isError\":true" } else { "\"isError\":false" });
        piece.push_str(&self.envelope.close(metadata, None, true));
        piece.into()
    }

    /// What a client must declare, who it is and what its token is for, it has to mend itself.
    fn is_no_affair_of_the_model(&self, error: &Error) -> bool {
        let is_for_client = match error.kind() {
            ErrorKind::Incapable => self.envelope.dialect.stateless,
            kind => kind == ErrorKind::Unauthenticated || !error.scopes().is_empty(),
        };
        is_for_client && !self.has_begun
    }

    fn may_carry(&self, structured: &str) -> bool {
        let dialect = self.envelope.dialect;
        dialect.titles && (structured.starts_with('{') || dialect.structured_content_is_any_value)
    }
}

impl ReplyEncoder for CallToolEncoder {
    fn chunk(&mut self, chunk: Chunk) -> Bytes {
        match chunk {
            Chunk::Text(text) => {
                let before = self.beginning();
                self.blocks.text(before, TEXT_OPENING, &text)
            }
            Chunk::EndOfText => self.blocks.end_text(TEXT_CLOSING).into(),
            Chunk::Block(content) | Chunk::Message(_, content) => self.block(&content).into(),
            Chunk::Structured(value) => {
                self.structured = Some(value);
                Bytes::new()
            }
            // MCP asks for content, never for a body.
            Chunk::Body(_) | Chunk::Bytes(_) | Chunk::Completion(_) | Chunk::Notice(_) => Bytes::new(),
        }
    }

    fn end(&mut self, outcome: Outcome) -> (Bytes, Option<RpcError>) {
        match outcome {
            Outcome::Done(metadata) => (self.finish(None, &metadata), None),
            Outcome::Failed(error) if self.is_no_affair_of_the_model(&error) => {
                let error = RpcError::from_error(&error, None, self.envelope.dialect);
                (self.envelope.error(&error), Some(error))
            }
            Outcome::Failed(error) => (self.finish(Some(&error), &Metadata::new()), None),
        }
    }
}
