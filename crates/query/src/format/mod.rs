//! Text formats of answers, one per file.

mod answer_form;
mod columns;
mod csv;
mod extension_type;
mod json;
mod list;
mod markdown;
mod mcp;
mod ndjson;
mod row_writer;
mod table;
mod toon;
mod value;

pub(crate) use answer_form::{AnswerForm, BatchFormat};
pub(crate) use columns::unique_names;
pub use columns::{field_type_name, type_name};
pub use extension_type::{ExtensionType, declared_type_name, with_type_name};
pub(crate) use mcp::JsonRows;
pub(crate) use row_writer::{AnswerStatistics, RowWriter, batch_cells, new_list_writer, new_row_writer};
use tidegate_core::{Error, ErrorKind};
pub use value::ColumnFormatter;
pub(crate) use value::{BoxedCells, field_cells};

/// The format of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OutputFormat {
    /// Bare rows: `[{…},{…}]`.
    #[default]
    Mcp,
    /// Rows with columns and statistics: `{"Query":[…],"columns":[…],…}`.
    Json,
    /// Aligned text for people.
    Table,
    /// RFC 4180.
    Csv,
    /// A Markdown table.
    Markdown,
    /// One JSON object per line.
    Ndjson,
    /// Token-Oriented Object Notation.
    Toon,
}

impl OutputFormat {
    /// Every format.
    pub const ALL: [Self; 7] =
        [Self::Mcp, Self::Json, Self::Table, Self::Csv, Self::Markdown, Self::Ndjson, Self::Toon];

    /// The name in arguments.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mcp => "mcp",
            Self::Json => "json",
            Self::Table => "table",
            Self::Csv => "csv",
            Self::Markdown => "markdown",
            Self::Ndjson => "ndjson",
            Self::Toon => "toon",
        }
    }

    /// Parses the name of a format.
    ///
    /// # Errors
    /// `InvalidArguments` with the valid names.
    pub fn parse(name: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|format| format.name() == name).ok_or_else(|| {
            Error::new(ErrorKind::InvalidArguments, format!("there is no format {name:?}"))
                .with_choices(Self::ALL.map(|format| format.name().to_owned()))
        })
    }
}
