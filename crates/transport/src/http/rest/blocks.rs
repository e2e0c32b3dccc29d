//! Answers that are no table: blocks of content as JSON, or their text.

use bytes::Bytes;
use serde_json::Value;
use serde_json::value::RawValue;
use tidegate_core::{AnswerFormat, Chunk, Content, Error, Metadata, ResourceBody};

const OPENING: &str = "{\"content\":[";
const TEXT_OPENING: &str = "{\"type\":\"text\",\"text\":\"";
const TEXT_CLOSING: &str = "\"}";

/// Writes blocks while they come.
pub(in super::super) enum Blocks {
    /// `{"content":[…],"structured":…}`.
    Json(JsonBlocks),
    /// The text of each, one below the other.
    Text(TextBlocks),
}

#[derive(Default)]
pub(in super::super) struct JsonBlocks {
    has_begun: bool,
    has_blocks: bool,
    is_in_text: bool,
    structured: Option<Box<RawValue>>,
}

#[derive(Default)]
pub(in super::super) struct TextBlocks {
    /// Whether a line end is due before the next block.
    is_within_line: bool,
}

impl Blocks {
    /// What writes blocks in `format`, and its media type.
    pub(super) fn of(format: AnswerFormat) -> (&'static str, Self) {
        match format {
            AnswerFormat::Table => ("text/plain; charset=utf-8", Self::Text(TextBlocks::default())),
            AnswerFormat::Markdown => ("text/markdown; charset=utf-8", Self::Text(TextBlocks::default())),
            _ => (AnswerFormat::Json.media_type(), Self::Json(JsonBlocks::default())),
        }
    }

    pub(super) fn chunk(&mut self, chunk: Chunk) -> Bytes {
        match self {
            Self::Json(blocks) => blocks.chunk(chunk).into(),
            Self::Text(blocks) => blocks.chunk(chunk).into(),
        }
    }

    /// What stands after the last block.
    pub(super) fn close(&mut self, facts: &Metadata) -> Bytes {
        match self {
            Self::Json(blocks) => {
                let truncated =
                    facts.get("dev.tidegate/truncated").filter(|truncated| truncated.as_bool() == Some(true));
                blocks.close(truncated.map(|truncated| ("truncated", truncated.clone()))).into()
            }
            Self::Text(blocks) => blocks.end_of_line().into(),
        }
    }

    /// What stands after the last block of an answer that broke off.
    pub(super) fn fail(&mut self, error: &Error) -> Bytes {
        match self {
            Self::Json(blocks) => blocks.close(Some(("error", Value::from(error.to_string())))).into(),
            Self::Text(blocks) => format!("{}{error}\n", blocks.end_of_line()).into(),
        }
    }
}

impl JsonBlocks {
    fn chunk(&mut self, chunk: Chunk) -> String {
        match chunk {
            Chunk::Text(text) => {
                let mut piece = if self.is_in_text { String::new() } else { self.next() };
                if !std::mem::replace(&mut self.is_in_text, true) {
                    piece.push_str(TEXT_OPENING);
                }
                let escaped = Value::from(text).to_string();
                piece.push_str(&escaped[1..escaped.len() - 1]);
                piece
            }
            Chunk::EndOfText => self.end_text().to_owned(),
            Chunk::Block(content) | Chunk::Message(_, content) => {
                let mut piece = self.next();
                piece.push_str(&tidegate_mcp::content_json(&content).to_string());
                piece
            }
            Chunk::Structured(value) => {
                self.structured = Some(value);
                String::new()
            }
            Chunk::Body(_) | Chunk::Bytes(_) | Chunk::Completion(_) | Chunk::Notice(_) => String::new(),
        }
    }

    /// What stands before the next block.
    fn next(&mut self) -> String {
        let mut piece = self.end_text().to_owned();
        piece.push_str(self.begin());
        if std::mem::replace(&mut self.has_blocks, true) {
            piece.push(',');
        }
        piece
    }

    fn begin(&mut self) -> &'static str {
        if std::mem::replace(&mut self.has_begun, true) { "" } else { OPENING }
    }

    fn end_text(&mut self) -> &'static str {
        if std::mem::take(&mut self.is_in_text) { TEXT_CLOSING } else { "" }
    }

    fn close(&mut self, member: Option<(&str, Value)>) -> String {
        let mut piece = format!("{}{}]", self.end_text(), self.begin());
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

impl TextBlocks {
    fn chunk(&mut self, chunk: Chunk) -> String {
        match chunk {
            Chunk::Text(text) => {
                self.is_within_line = !text.ends_with('\n');
                text
            }
            Chunk::EndOfText => self.end_of_line().to_owned(),
            Chunk::Block(content) | Chunk::Message(_, content) => {
                let mut piece = self.end_of_line().to_owned();
                piece.push_str(&shown(&content));
                self.is_within_line = !piece.ends_with('\n');
                piece
            }
            Chunk::Structured(_) | Chunk::Body(_) | Chunk::Bytes(_) | Chunk::Completion(_) | Chunk::Notice(_) => {
                String::new()
            }
        }
    }

    fn end_of_line(&mut self) -> &'static str {
        if std::mem::take(&mut self.is_within_line) { "\n" } else { "" }
    }
}

/// A block as text: what is none is named.
fn shown(content: &Content) -> String {
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
