//! The formats of answers: the format argument of a tool, combined with the format of the call.

use tidegate_core::AnswerFormat;

use crate::named_enum::named_enum;

named_enum! {
    /// The format of rows as text, which the format argument of a tool names. [`AnswerFormat`] is the format that a
    /// client of the transport requests.
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

/// How the rows of an answer are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerEncoding {
    /// Blocks of text for a model.
    Content(OutputFormat),
    /// A body of text.
    Text(OutputFormat),
    /// A binary body.
    Binary(BinaryFormat),
}

/// The format of a binary body, which is written in whole batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BinaryFormat {
    /// A stream of Arrow's IPC format.
    Arrow,
    /// A file of Arrow's IPC format. No answer has it, because its index is at the end.
    ArrowFile,
    Parquet,
}

impl AnswerEncoding {
    /// Combines `argument` and `answer_format`. An explicit argument takes precedence over the format of the call.
    pub(crate) fn resolve(argument: OutputFormat, answer_format: Option<AnswerFormat>) -> Self {
        match (answer_format, argument) {
            (None, format) => Self::Content(format),
            (Some(answer_format), OutputFormat::Mcp) => Self::from_answer_format(answer_format),
            (Some(_), format) => Self::Text(format),
        }
    }

    pub(crate) fn from_answer_format(answer_format: AnswerFormat) -> Self {
        Self::Text(match answer_format {
            AnswerFormat::Arrow => return Self::Binary(BinaryFormat::Arrow),
            AnswerFormat::Parquet => return Self::Binary(BinaryFormat::Parquet),
            AnswerFormat::Json => OutputFormat::Json,
            AnswerFormat::Ndjson => OutputFormat::Ndjson,
            AnswerFormat::Csv => OutputFormat::Csv,
            AnswerFormat::Table => OutputFormat::Table,
            AnswerFormat::Markdown => OutputFormat::Markdown,
        })
    }

    pub(crate) fn text_format(self) -> Option<OutputFormat> {
        match self {
            Self::Content(format) | Self::Text(format) => Some(format),
            Self::Binary(_) => None,
        }
    }

    /// The media type of a body. A list of values has no header line.
    pub(crate) fn media_type(self, is_list: bool) -> Option<&'static str> {
        Some(match self {
            Self::Content(_) => return None,
            Self::Binary(BinaryFormat::Arrow) => AnswerFormat::Arrow.media_type(),
            Self::Binary(BinaryFormat::ArrowFile) => "application/vnd.apache.arrow.file",
            Self::Binary(BinaryFormat::Parquet) => AnswerFormat::Parquet.media_type(),
            Self::Text(OutputFormat::Mcp | OutputFormat::Json) => AnswerFormat::Json.media_type(),
            Self::Text(OutputFormat::Ndjson) => AnswerFormat::Ndjson.media_type(),
            Self::Text(OutputFormat::Csv) if is_list => "text/csv; charset=utf-8; header=absent",
            Self::Text(OutputFormat::Csv) => "text/csv; charset=utf-8; header=present",
            Self::Text(OutputFormat::Table) => "text/plain; charset=utf-8",
            Self::Text(OutputFormat::Markdown) => "text/markdown; charset=utf-8",
            Self::Text(OutputFormat::Toon) => "text/toon; charset=utf-8",
        })
    }
}
