//! The interface of tables that take rows. Reading them is the part of [`Database`](crate::Database).

mod declared_tables;
mod step_writer;
mod write_plan;

use std::fmt::Debug;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use async_trait::async_trait;
use tidegate_core::{Error, Principal};

pub use declared_tables::{DeclaredTable, DeclaredTables};
pub use step_writer::{StepWriter, WriteStep, WriteSteps};
pub use write_plan::{StoredColumn, TargetColumn, WritePlan};

/// The name of the table with the rejected rows of `sensors` is `sensors__rejects`.
pub const REJECTS_SUFFIX: &str = "__rejects";

/// Whether `name` is that of a table with rejected rows, with or without quotes.
pub fn is_rejects_table(name: &str) -> bool {
    name.trim_end_matches('"').ends_with(REJECTS_SUFFIX)
}

/// The columns of a table of rejected rows. The columns that the caller's attributes stamp follow, so that the rows of a
/// tenant are its own there as well.
///
/// - `time`: when the row was rejected.
/// - `subject`: who sent it.
/// - `line`: the line in which it begins, from 1 (NDJSON, CSV).
/// - `row`: its number, from 0 (JSON, Arrow, Parquet).
/// - `column`: the column that does not fit, if it is a single one.
/// - `reason`: why.
/// - `text`: the beginning of the row as it was sent; empty in Arrow and Parquet.
pub fn rejected_rows_schema<'a>(stamped: impl IntoIterator<Item = &'a str>) -> SchemaRef {
    let own = [
        ("time", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))),
        ("subject", DataType::Utf8),
        ("line", DataType::Int64),
        ("row", DataType::Int64),
        ("column", DataType::Utf8),
        ("reason", DataType::Utf8),
        ("text", DataType::Utf8),
    ];
    let mut fields: Vec<Field> = own.map(|(name, data_type)| Field::new(name, data_type, true)).into();
    for name in stamped {
        let is_taken = fields.iter().any(|field| field.name().eq_ignore_ascii_case(name));
        // The attribute is then only in the rows of the table itself.
        let name = if is_taken { format!("{name}{REJECTS_SUFFIX}") } else { name.to_owned() };
        fields.push(Field::new(name, DataType::Utf8, true));
    }
    Arc::new(Schema::new(fields))
}

/// A table as it takes rows now.
#[derive(Debug, Clone)]
pub struct IngestTable {
    /// The name in its own spelling.
    pub name: String,
    /// The columns of a body. `None` if they are inferred from the body: the table does not exist yet and declares no
    /// columns, or its rows pass a transform.
    pub schema: Option<SchemaRef>,
    /// Whether a body may add nullable columns.
    pub adds_columns: bool,
    /// Columns that get their value from an attribute of the caller, whatever the body has: `tenant`, or the name of a
    /// claim.
    pub stamps: Vec<ColumnStamp>,
}

/// A column whose value is an attribute of the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnStamp {
    /// The name of the column; its type is text.
    pub column: String,
    /// `tenant`, `subject`, or `claims.` with the name of a claim.
    pub attribute: String,
}

/// What a write does with the rows that are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode {
    /// The rows are added.
    Append,
    /// The rows take the place of all rows of the first table, at once.
    Replace,
}

/// A write that begins: all of its rows become visible together, or none.
#[derive(Debug, Clone)]
pub struct WriteRequest {
    /// The tables that get rows. Further tables, such as that of rejected rows, are always appended to.
    pub tables: Vec<TableWrite>,
    /// What happens to the rows of the first table.
    pub mode: WriteMode,
    /// Makes a repeat safe: the second write with the same key stores nothing and returns the first receipt. It
    /// includes the caller, so that callers cannot see the keys of others.
    pub key: Option<String>,
}

/// A table of a write.
#[derive(Debug, Clone)]
pub struct TableWrite {
    /// The name.
    pub table: String,
    /// The columns of the batches. Batches may have further nullable columns at their end, if the table adds columns.
    pub schema: SchemaRef,
}

/// What a write stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteReceipt {
    /// The position of the write in the log of its database. A query at a higher position sees the rows.
    pub sequence: u64,
    /// Rows of each table of the write.
    pub rows: Vec<u64>,
}

/// The beginning of a write.
#[derive(Debug)]
pub enum WriteStart {
    /// Rows can be written.
    Writer(Box<dyn RowWriter>),
    /// A write with this key was stored before.
    Repeated(WriteReceipt),
}

/// A write. Dropping it abandons it: nothing was stored.
#[async_trait]
pub trait RowWriter: Send + Debug {
    /// Adds rows to the table at this position of the request. Waits while the rows before are written, so that memory
    /// is bounded whatever the number of rows.
    ///
    /// # Errors
    /// `InvalidArguments` when the rows do not fit; `Unavailable` when there is no room or the storage fails. The write
    /// is over, unless [`RowWriter::takes_parts`].
    async fn write(&mut self, table: usize, rows: RecordBatch) -> Result<(), Error>;

    /// Whether rows of this table that were refused as `InvalidArguments` added nothing, and parts of them can be
    /// written, to find the rows that do not fit.
    fn takes_parts(&self, _table: usize) -> bool {
        false
    }

    /// The memory of the rows that were written and are not on disk yet.
    fn memory_bytes(&self) -> usize {
        0
    }

    /// Stores all rows. When it returns, they are on disk and visible.
    ///
    /// # Errors
    /// As [`RowWriter::write`]. Nothing was stored, unless the storage failed in this step, which the message says.
    async fn commit(self: Box<Self>) -> Result<WriteReceipt, Error>;
}

/// The tables of a database that take rows.
#[async_trait]
pub trait IngestTarget: Send + Sync + Debug + 'static {
    /// The name of the database.
    fn database(&self) -> &str;

    /// The names of the tables that exist or are declared, sorted, without those of rejected rows.
    fn tables(&self) -> Vec<String>;

    /// The same tables for the rows of `caller`. `None` if they are the same for all callers.
    fn for_caller(&self, _caller: &Principal) -> Option<Arc<dyn IngestTarget>> {
        None
    }

    /// How `table` takes rows. Of a table that does not exist, if it would be created.
    ///
    /// # Errors
    /// `NotFound` with the nearest names, and with how to declare a table.
    async fn table(&self, table: &str) -> Result<IngestTable, Error>;

    /// Begins a write.
    ///
    /// # Errors
    /// `InvalidArguments` when the columns do not fit, column by column; `Conflict` when a write with the same key is
    /// running; `Unavailable` when there is no room.
    async fn begin(&self, request: WriteRequest) -> Result<WriteStart, Error>;

    /// Counts rows that were sent and are stored nowhere, not even as rejected rows. For the metrics only.
    fn count_rejected(&self, _rows: u64) {}

    /// Removes the table with its rows.
    ///
    /// # Errors
    /// `NotFound` as of [`IngestTarget::table`]; `InvalidArguments` if this database does not drop tables.
    async fn drop_table(&self, table: &str) -> Result<(), Error>;
}

/// Computes the rows of a table from those of a body.
#[async_trait]
pub trait RowTransform: Send + Sync + Debug {
    /// The rows of the table for `rows`. Each batch of a body is transformed by itself.
    ///
    /// # Errors
    /// `InvalidArguments` when the rows do not fit the transform.
    async fn transform(&self, rows: RecordBatch) -> Result<Vec<RecordBatch>, Error>;
}
