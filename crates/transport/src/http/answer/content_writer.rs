//! Answers that are not tables: content blocks as JSON, or as text.

use bytes::Bytes;
use serde_json::Value;
use serde_json::value::RawValue;
use tidegate_core::{AnswerFormat, Content, Error, ResourceBody};
use tidegate_runtime::{Chunk, Metadata};

const OPENING: &str = "{\"content\":[";
const TEXT_OPENING: &str = "{\"type\":\"text\",\"text\":\"";
const TEXT_CLOSING: &str = "\"}";

/// Writes blocks as they arrive.
pub(in crate::http) enum ContentWriter {
    /// `{"content":[…],"structured":…}`.
    Json(JsonContentWriter),
    /// The text of each block, one below the other.
    Text(TextContentWriter),
}

#[derive(Default)]
pub(in crate::http) struct JsonContentWriter {
    has_begun: bool,
    has_blocks: bool,
    is_in_text: bool,
    structured: Option<Box<RawValue>>,
}

#[derive(Default)]
pub(in crate::http) struct TextContentWriter {
    /// Whether a line break is due before the next block.
    is_within_line: bool,
}

impl ContentWriter {
    /// The writer for `format`, and its media type.
    pub(in crate::http) fn for_format(format: AnswerFormat) -> (&'static str, Self) {
        match format {
            AnswerFormat::Table => ("text/plain; charset=utf-8", Self::Text(TextContentWriter::default())),
            AnswerFormat::Markdown => ("text/markdown; charset=utf-8", Self::Text(TextContentWriter::default())),
            _ => (AnswerFormat::Json.media_type(), Self::Json(JsonContentWriter::default())),
        }
    }

    pub(in crate::http) fn write_chunk(&mut self, chunk: Chunk) -> Bytes {
        match self {
            Self::Json(blocks) => blocks.write_chunk(chunk).into(),
            Self::Text(blocks) => blocks.write_chunk(chunk).into(),
        }
    }

    /// The text after the last block.
    pub(in crate::http) fn close(&mut self, facts: &Metadata) -> Bytes {
        match self {
            Self::Json(blocks) => {
                let truncated =
                    facts.get("dev.tidegate/truncated").filter(|truncated| truncated.as_bool() == Some(true));
                blocks.close(truncated.map(|truncated| ("truncated", truncated.clone()))).into()
            }
            Self::Text(blocks) => blocks.end_line().into(),
        }
    }

    /// The text after the last block of an answer that failed.
    pub(in crate::http) fn fail(&mut self, error: &Error) -> Bytes {
        match self {
            Self::Json(blocks) => blocks.close(Some(("error", Value::from(error.to_string())))).into(),
            Self::Text(blocks) => format!("{}{error}\n", blocks.end_line()).into(),
        }
    }
}

impl JsonContentWriter {
    fn write_chunk(&mut self, chunk: Chunk) -> String {
        match chunk {
            Chunk::Text(text) => {
                let mut piece = if self.is_in_text { String::new() } else { self.begin_block() };
                if !std::mem::replace(&mut self.is_in_text, true) {
                    piece.push_str(TEXT_OPENING);
                }
                let escaped = Value::from(text).to_string();
                piece.push_str(&escaped[1..escaped.len() - 1]);
                piece
            }
            Chunk::EndOfText => self.end_text().to_owned(),
            Chunk::Block(content) | Chunk::PromptMessage(_, content) => {
                let mut piece = self.begin_block();
                piece.push_str(&tidegate_mcp::content_json(&content).to_string());
                piece
            }
            Chunk::Structured(value) => {
                self.structured = Some(value);
                String::new()
            }
            Chunk::Body(_) | Chunk::Bytes(_) | Chunk::Completion(_) | Chunk::Notification(_) => String::new(),
        }
    }

    /// The text before the next block.
    fn begin_block(&mut self) -> String {
        let mut piece = self.end_text().to_owned();
        piece.push_str(self.begin_document());
        if std::mem::replace(&mut self.has_blocks, true) {
            piece.push(',');
        }
        piece
    }

    fn begin_document(&mut self) -> &'static str {
        if std::mem::replace(&mut self.has_begun, true) { "" } else { OPENING }
    }

    fn end_text(&mut self) -> &'static str {
        if std::mem::take(&mut self.is_in_text) { TEXT_CLOSING } else { "" }
    }

    fn close(&mut self, member: Option<(&str, Value)>) -> String {
        let mut piece = format!("{}{}]", self.end_text(), self.begin_document());
        if let Some(structured) = self.structured.take() {
            piece.push_str(",\"structured\":");
            piece.push_str(structured.get());
        }
        if let Some((name, value)) = member {
            piece.push_str(&format!(",\"{name}\":{value}"));
        }
        piece.push('}');
        piece
    }
}

impl TextContentWriter {
    fn write_chunk(&mut self, chunk: Chunk) -> String {
        match chunk {
            Chunk::Text(text) => {
                self.is_within_line = !text.ends_with('\n');
                text
            }
            Chunk::EndOfText => self.end_line().to_owned(),
            Chunk::Block(content) | Chunk::PromptMessage(_, content) => {
                let mut piece = self.end_line().to_owned();
                piece.push_str(&content_text(&content));
                self.is_within_line = !piece.ends_with('\n');
                piece
            }
            Chunk::Structured(_) | Chunk::Body(_) | Chunk::Bytes(_) | Chunk::Completion(_) | Chunk::Notification(_) => {
                String::new()
            }
        }
    }

    fn end_line(&mut self) -> &'static str {
        if std::mem::take(&mut self.is_within_line) { "\n" } else { "" }
    }
}

/// A block as text; other content is described.
fn content_text(content: &Content) -> String {
    match content {
        Content::Text { text, .. } => text.clone(),
        Content::Image { data, mime_type } | Content::Audio { data, mime_type } => {
            format!("[{} bytes of {mime_type}]", data.len())
        }
        Content::Link(link) => format!("{}: {}", link.name, link.uri),
        Content::Resource(contents) => match &contents.body {
            ResourceBody::Text(text) => text.clone(),
            ResourceBody::Blob(bytes) => format!("[{} bytes of {}]", bytes.len(), contents.uri),
        },
    }
}
