//! The formats of an answer that is a body of its own. This crate has only their names; the handlers render them.

/// The format of an answer that is a body of its own: only the rows, for programs and files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AnswerFormat {
    /// One JSON object: rows, columns, statistics.
    Json,
    /// One JSON object per line.
    Ndjson,
    /// RFC 4180, with a header line.
    Csv,
    /// A stream of Arrow's IPC format.
    Arrow,
    /// A Parquet file.
    Parquet,
    /// Aligned text for people.
    Table,
    /// A Markdown table.
    Markdown,
}

impl AnswerFormat {
    /// Every format, in order of preference for callers that state none.
    pub const ALL: [Self; 7] =
        [Self::Json, Self::Ndjson, Self::Csv, Self::Arrow, Self::Parquet, Self::Table, Self::Markdown];

    /// The name that callers use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Ndjson => "ndjson",
            Self::Csv => "csv",
            Self::Arrow => "arrow",
            Self::Parquet => "parquet",
            Self::Table => "table",
            Self::Markdown => "markdown",
        }
    }

    /// The format with that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// The media type, without parameters.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Ndjson => "application/x-ndjson",
            Self::Csv => "text/csv",
            Self::Arrow => "application/vnd.apache.arrow.stream",
            Self::Parquet => "application/vnd.apache.parquet",
            Self::Table => "text/plain",
            Self::Markdown => "text/markdown",
        }
    }
}
