//! Requests of queries, and how their rows are answered.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use tidegate_core::{Error, ErrorKind, Format};
use tidegate_results::RequiredAccess;
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

/// A statement for a database, and how its rows are answered.
pub struct QueryRequest {
    /// The database.
    pub database: Arc<dyn Database>,
    /// The statement.
    pub statement: Statement,
    /// How its rows are answered.
    pub output: OutputOptions,
}

/// How rows are answered: those of a query, those that a tool has, or a page of a stored result.
#[derive(Debug, Clone, Default)]
pub struct OutputOptions {
    /// The format of the answer. Without one, the format of the call applies, or else [`Format::Mcp`].
    pub format: Option<Format>,
    /// The column whose distinct values are returned instead of rows. A page of a stored result has them already.
    pub extract: Option<String>,
    /// The maximum number of rows; metadata say whether more exist.
    pub rows_max: Option<u64>,
    /// When the rows of a query are sent.
    pub mode: AnswerMode,
    /// The columns of the output schema, if the answer has structured content beside its text.
    pub structured: Option<SchemaRef>,
    /// A sentence that says how to get more when the answer ends at the maximum, with the names of the tool's arguments.
    /// Without it, as where the caller asked for so many rows, the answer has no notice.
    pub limit_hint: Option<&'static str>,
    /// A sentence that says how to get more when the budget ends the answer, such as `Narrow the list with pattern.`
    pub overflow_hint: &'static str,
    /// What happens to the rows of a query that do not fit inline.
    pub overflow: OverflowPolicy,
    /// How a stored result of a query becomes a table, if the caller requested one.
    pub table: Option<TableOptions>,
    /// What a stored answer depends on, if the query reads stored results.
    pub required_access: Vec<RequiredAccess>,
}

/// How a stored result becomes a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableOptions {
    /// The name that the caller chose.
    pub alias: Option<String>,
}

impl OutputOptions {
    /// Rejects an answer whose `columns` do not match its output schema, as after a change of a table.
    pub(crate) fn check_columns(&self, columns: &SchemaRef) -> Result<(), Error> {
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
        /// In a stored result that is used as a table; the answer is its name and a preview of it.
        Table = "table",
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

impl OverflowPolicy {
    /// Whether the answer links to the stored result.
    pub(crate) fn is_linked(self) -> bool {
        matches!(self, Self::Store { linked: true, .. })
    }
}
