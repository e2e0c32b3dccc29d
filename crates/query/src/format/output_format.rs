//! The formats of answers: the format argument of a tool, combined with the format of the call.

use tidegate_core::AnswerFormat;

use crate::named_enum::named_enum;

named_enum! {
    /// The format of an answer.
    #[derive(Default)]
    pub enum OutputFormat parse_as "format" {
        /// Bare rows: `[{…},{…}]`.
        #[default]
        Mcp = "mcp",
        /// Rows with columns and statistics: `{"Query":[…],"columns":[…],…}`.
        Json = "json",
        /// Aligned text for people.
        Table = "table",
        /// RFC 4180.
        Csv = "csv",
        /// A Markdown table.
        Markdown = "markdown",
        /// One JSON object per line.
        Ndjson = "ndjson",
        /// Token-Oriented Object Notation.
        Toon = "toon",
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerForm {
    /// Blocks of text for a model.
    Content(OutputFormat),
    /// A body of text.
    Body(OutputFormat),
    /// A body of batches.
    Batches(BatchFormat),
}

/// The format of a binary body, which is written in whole batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BatchFormat {
    Arrow,
    Parquet,
}

impl AnswerForm {
    /// Combines `argument` and `answer_format`. An explicit argument takes precedence over the format of the call.
    pub(crate) fn resolve(argument: OutputFormat, answer_format: Option<AnswerFormat>) -> Self {
        match (answer_format, argument) {
            (None, format) => Self::Content(format),
            (Some(answer_format), OutputFormat::Mcp) => Self::from_answer_format(answer_format),
            (Some(_), format) => Self::Body(format),
        }
    }

    pub(crate) fn from_answer_format(answer_format: AnswerFormat) -> Self {
        Self::Body(match answer_format {
            AnswerFormat::Arrow => return Self::Batches(BatchFormat::Arrow),
            AnswerFormat::Parquet => return Self::Batches(BatchFormat::Parquet),
            AnswerFormat::Json => OutputFormat::Json,
            AnswerFormat::Ndjson => OutputFormat::Ndjson,
            AnswerFormat::Csv => OutputFormat::Csv,
            AnswerFormat::Table => OutputFormat::Table,
            AnswerFormat::Markdown => OutputFormat::Markdown,
        })
    }

    pub(crate) fn text_format(self) -> Option<OutputFormat> {
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
            Self::Body(OutputFormat::Mcp | OutputFormat::Json) => AnswerFormat::Json.media_type(),
            Self::Body(OutputFormat::Ndjson) => AnswerFormat::Ndjson.media_type(),
            Self::Body(OutputFormat::Csv) if is_list => "text/csv; charset=utf-8; header=absent",
            Self::Body(OutputFormat::Csv) => "text/csv; charset=utf-8; header=present",
            Self::Body(OutputFormat::Table) => "text/plain; charset=utf-8",
            Self::Body(OutputFormat::Markdown) => "text/markdown; charset=utf-8",
            Self::Body(OutputFormat::Toon) => "text/toon; charset=utf-8",
        })
    }
}
