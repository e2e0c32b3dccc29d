//! Answers that are not tables: content blocks as JSON, or as text.

use bytes::Bytes;
use serde_json::Value;
use serde_json::value::RawValue;
use tidegate_core::{Content, Error, Format, ResourceBody};
use tidegate_mcp::ContentBlocks;
use tidegate_runtime::{AnswerMeta, ReplyPart};

pub(in crate::http) enum ContentWriter {
    /// `{"content":[…],"structured":…}`.
    Json { blocks: ContentBlocks, structured: Option<Box<RawValue>> },
    /// The text of each block, one below the other.
    Text(TextContentWriter),
}

#[derive(Default)]
pub(in crate::http) struct TextContentWriter {
    /// Whether a line break is due before the next block.
    is_within_line: bool,
}

impl ContentWriter {
    /// The media type and the writer of `format`, which [writes content](Format::writes_content).
    pub(in crate::http) fn for_format(format: Format) -> (&'static str, Self) {
        if format == Format::Json {
            let blocks = ContentBlocks::new("{\"content\":[".to_owned());
            return (format.media_type(), Self::Json { blocks, structured: None });
        }
        (format.content_type(false), Self::Text(TextContentWriter::default()))
    }

    pub(in crate::http) fn write_part(&mut self, part: ReplyPart) -> Bytes {
        let (blocks, structured) = match self {
            Self::Json { blocks, structured } => (blocks, structured),
            Self::Text(writer) => return writer.write_part(part).into(),
        };
        match part {
            ReplyPart::Text(text) => blocks.push_text(&text),
            ReplyPart::EndOfText => blocks.end_text().into(),
            ReplyPart::Block(content) | ReplyPart::PromptMessage(_, content) => {
                blocks.push_block(&tidegate_mcp::content_json(&content)).into()
            }
            ReplyPart::Structured(value) => {
                *structured = Some(value);
                Bytes::new()
            }
            _ => Bytes::new(),
        }
    }

    pub(in crate::http) fn end(&mut self, end: &Result<AnswerMeta, Error>) -> Bytes {
        match (self, end) {
            (Self::Text(writer), Ok(_)) => writer.end_line().into(),
            (Self::Text(writer), Err(error)) => format!("{}{error}\n", writer.end_line()).into(),
            (writer, Ok(metadata)) => {
                let is_truncated = metadata.is_truncated == Some(true);
                writer.close_json(is_truncated.then(|| ("truncated", true.into())))
            }
            (writer, Err(error)) => writer.close_json(Some(("error", error.to_string().into()))),
        }
    }

    fn close_json(&mut self, member: Option<(&str, Value)>) -> Bytes {
        let Self::Json { blocks, structured } = self else { return Bytes::new() };
        let mut piece = blocks.close();
        if let Some(structured) = structured.take() {
            piece.push_str(",\"structured\":");
            piece.push_str(structured.get());
        }
        if let Some((name, value)) = member {
            piece.push_str(&format!(",\"{name}\":{value}"));
        }
        piece.push('}');
        piece.into()
    }
}

impl TextContentWriter {
    fn write_part(&mut self, part: ReplyPart) -> String {
        match part {
            ReplyPart::Text(text) => {
                self.is_within_line = !text.ends_with('\n');
                text
            }
            ReplyPart::EndOfText => self.end_line().to_owned(),
            ReplyPart::Block(content) | ReplyPart::PromptMessage(_, content) => {
                let mut piece = self.end_line().to_owned();
                piece.push_str(&content_text(&content));
                self.is_within_line = !piece.ends_with('\n');
                piece
            }
            _ => String::new(),
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
