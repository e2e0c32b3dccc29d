//! Requests of queries, and the output options of their answers.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use tidegate_core::{Error, ErrorKind, Format};
use tidegate_sql::Statement;

use crate::database::Database;
use crate::named_enum::named_enum;
use crate::structured::find_undescribed_column;

named_enum! {
    /// When rows are sent.
    #[derive(Default)]
    pub enum AnswerMode parse_as "mode" {
        /// As they arrive.
        Streaming = "streaming",
        /// When all rows are available.
        Batch = "batch",
        /// `Batch` when the format or the plan needs all rows before the first byte, else `Streaming`.
        #[default]
        Auto = "auto",
    }
}

/// A statement for a database, and the output options of its answer.
pub struct QueryRequest {
    /// The database.
    pub database: Arc<dyn Database>,
    /// The statement.
    pub statement: Statement,
    /// The maximum number of rows; metadata say whether more exist.
    pub max_rows: Option<u64>,
    /// A sentence that says how to get more when the answer ends at that number, with the names of the tool's arguments.
    /// Without it, as where the caller asked for so many rows, the answer has no notice.
    pub limit_hint: Option<String>,
    /// The format of the answer; with [`Format::Mcp`], the format of the call applies, if it names one.
    pub format: Format,
    /// The column whose distinct values are returned instead of rows.
    pub extract: Option<String>,
    /// When rows are sent.
    pub mode: AnswerMode,
    /// The columns of the output schema, if the answer has structured content beside its text.
    pub structured: Option<SchemaRef>,
    /// A sentence that says how to get more when the budget ends the answer. By default it names the arguments of `query`.
    pub overflow_hint: Option<String>,
    /// What happens to rows that do not fit inline.
    pub overflow: OverflowPolicy,
}

impl QueryRequest {
    /// Rejects an answer whose `columns` do not match its output schema, as after a change of a table.
    pub(crate) fn check_output_schema(&self, columns: &SchemaRef) -> Result<(), Error> {
        let promised = self.structured.as_ref();
        let Some(name) = promised.and_then(|promised| find_undescribed_column(promised, columns)) else {
            return Ok(());
        };
        let message =
            format!("the output schema does not describe the column {name:?} of the answer: a table has changed");
        Err(Error::new(ErrorKind::Unavailable, message)
            .with_hint("An administrator must reload the configuration; until then, query the table directly."))
    }
}

named_enum! {
    /// How the rows are delivered.
    #[derive(Default)]
    pub enum Delivery parse_as "delivery" {
        /// In the answer, as far as they fit.
        #[default]
        Inline = "inline",
        /// In a stored result; the answer is a preview of it.
        Blocks = "blocks",
    }
}

/// What happens to the rows of an answer that do not fit inline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OverflowPolicy {
    /// They are discarded: the caller must request them with another query.
    #[default]
    Discard,
    /// They are stored, and can be read page by page with a cursor.
    Store {
        /// Whether the answer links to the stored result, because the caller may read it.
        linked: bool,
        /// Whether an earlier answer that is still valid may be reused.
        cached: bool,
    },
}

/// The output options of rows that need no query.
#[derive(Debug, Clone, Default)]
pub struct OutputOptions {
    /// The format of the answer.
    pub format: Format,
    /// The column whose distinct values are returned instead of rows.
    pub extract: Option<String>,
    /// A sentence that says how to get more when not all rows fit, such as `Ask for less with the argument "pattern".`
    pub overflow_hint: String,
}

/// The output options of a page.
#[derive(Debug, Clone, Copy)]
pub struct PageOptions {
    /// The format of the answer.
    pub format: Format,
    /// Whether the answer is a list of the values of one column, without its name.
    pub is_list: bool,
    /// The maximum number of rows.
    pub rows_max: Option<u64>,
    /// Whether the answer has structured content beside its text.
    pub is_structured: bool,
}
