//! What a call's wish and a tool's argument make together: content for a model, or a body of its own.

use tidegate_core::AnswerFormat;

use super::Format;

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Blocks of text for a model.
    Content(Format),
    /// A body of text.
    Body(Format),
    /// A body of batches.
    Batches(BatchFormat),
}

/// The form of a body that is no text: whole batches are written at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BatchFormat {
    /// A stream of Arrow's IPC format.
    Arrow,
    /// A Parquet file.
    Parquet,
}

impl Form {
    /// The form that `argument` and `wish` make. An argument that was given is of this very question and says more than
    /// the wish of the call around it.
    pub(crate) fn of(argument: Format, wish: Option<AnswerFormat>) -> Self {
        match (wish, argument) {
            (None, format) => Self::Content(format),
            (Some(wish), Format::Mcp) => Self::of_wish(wish),
            (Some(_), format) => Self::Body(format),
        }
    }

    /// The body that `wish` names.
    pub(crate) fn of_wish(wish: AnswerFormat) -> Self {
        Self::Body(match wish {
            AnswerFormat::Arrow => return Self::Batches(BatchFormat::Arrow),
            AnswerFormat::Parquet => return Self::Batches(BatchFormat::Parquet),
            AnswerFormat::Json => Format::Json,
            AnswerFormat::Ndjson => Format::Ndjson,
            AnswerFormat::Csv => Format::Csv,
            AnswerFormat::Table => Format::Table,
            AnswerFormat::Markdown => Format::Markdown,
        })
    }

    /// How its text is written, if it is text.
    pub(crate) fn text(self) -> Option<Format> {
        match self {
            Self::Content(format) | Self::Body(format) => Some(format),
            Self::Batches(_) => None,
        }
    }

    /// The media type of a body. A list of values has no header line.
    pub(crate) fn media_type(self, is_list: bool) -> Option<&'static str> {
        Some(match self {
            Self::Content(_) => return None,
            Self::Batches(BatchFormat::Arrow) => AnswerFormat::Arrow.media_type(),
            Self::Batches(BatchFormat::Parquet) => AnswerFormat::Parquet.media_type(),
            Self::Body(Format::Mcp | Format::Json) => AnswerFormat::Json.media_type(),
            Self::Body(Format::Ndjson) => AnswerFormat::Ndjson.media_type(),
            Self::Body(Format::Csv) if is_list => "text/csv; charset=utf-8; header=absent",
            Self::Body(Format::Csv) => "text/csv; charset=utf-8; header=present",
            Self::Body(Format::Table) => "text/plain; charset=utf-8",
            Self::Body(Format::Markdown) => "text/markdown; charset=utf-8",
            Self::Body(Format::Toon) => "text/toon; charset=utf-8",
        })
    }
}
