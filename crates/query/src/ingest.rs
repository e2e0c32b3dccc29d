//! The interface of tables that take rows. Reading them is the part of [`Database`](crate::Database).
//!
//! A database that keeps the rows it takes in a log first also has its state and the steps of its upkeep here. The write
//! of a [`StepWriter`] runs elsewhere, in a task or on a thread, behind a short channel.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use async_trait::async_trait;
use tidegate_core::{Error, ErrorKind, IngestTotals, Principal, Violation, nearest_names};
use tidegate_sql::SqlDialect;
use tokio::sync::{mpsc, oneshot};

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
    /// The rows replace all rows of the first table, at once.
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
pub trait WriteTarget: Send + Sync + Debug + 'static {
    /// The name of the database.
    fn database(&self) -> &str;

    /// The names of the tables that exist or are declared, sorted, without those of rejected rows.
    fn tables(&self) -> Vec<String>;

    /// The same tables for the rows of `caller`. `None` if they are the same for all callers.
    fn for_caller(&self, _caller: &Principal) -> Option<Arc<dyn WriteTarget>> {
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
    /// `NotFound` as of [`WriteTarget::table`]; `InvalidArguments` if this database does not drop tables.
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

/// An existing table that takes rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredTable {
    /// The name as in the catalog.
    pub name: String,
    /// Columns that get their value from an attribute of the caller.
    pub stamps: Vec<ColumnStamp>,
}

/// The tables of a database that take rows, those of rejected rows among them.
#[derive(Debug, Clone)]
pub struct DeclaredTables {
    database: Arc<str>,
    dialect: SqlDialect,
    /// Sorted by name.
    tables: Vec<DeclaredTable>,
}

impl DeclaredTables {
    /// The declared `tables` of `database`, whose names are those of `dialect`.
    ///
    /// # Errors
    /// `InvalidArguments` if a table is declared twice.
    pub fn new(database: Arc<str>, dialect: SqlDialect, mut tables: Vec<DeclaredTable>) -> Result<Self, Error> {
        tables.sort_by(|one, other| one.name.cmp(&other.name));
        for (position, table) in tables.iter().enumerate() {
            if tables.iter().skip(position + 1).any(|other| is_same_name(dialect, &table.name, &other.name)) {
                let message = format!("the table {:?} of the database {database:?} is declared twice", table.name);
                return Err(Error::new(ErrorKind::InvalidArguments, message));
            }
        }
        Ok(Self { database, dialect, tables })
    }

    /// The names of the tables, sorted, without those of rejected rows.
    pub fn names(&self) -> Vec<String> {
        let names = self.tables.iter().map(|table| table.name.clone());
        names.filter(|name| !is_rejects_table(name)).collect()
    }

    /// The declared table `name`.
    ///
    /// # Errors
    /// `NotFound` with the nearest names, and with how to declare a table.
    pub fn find(&self, name: &str) -> Result<&DeclaredTable, Error> {
        if let Some(table) = self.tables.iter().find(|table| is_same_name(self.dialect, &table.name, name)) {
            return Ok(table);
        }
        let message = format!("the database {:?} has no table {name:?} that takes rows", self.database);
        let names = self.names();
        let near = nearest_names(name, names.iter().map(String::as_str));
        Err(Error::new(ErrorKind::NotFound, message)
            .with_choices(if near.is_empty() { names } else { near })
            .with_hint(format!("The owner of the node adds an existing table under ingest: [{name}].")))
    }

    /// The error of dropping the table `name`, which belongs to the owner of the database.
    ///
    /// # Errors
    /// Always: as [`DeclaredTables::find`], and `InvalidArguments` for a table that is there.
    pub fn refuse_drop(&self, name: &str) -> Result<(), Error> {
        let table = self.find(name)?;
        let message = format!("existing tables, as those of the database {:?}, are not dropped here", self.database);
        Err(Error::new(ErrorKind::InvalidArguments, message)
            .with_hint(format!("Replace the rows of {} with none, or drop it with SQL of its owner.", table.name)))
    }
}

fn is_same_name(dialect: SqlDialect, one: &str, other: &str) -> bool {
    let is_same_part = |(one, other): (&String, &String)| {
        if dialect.ignores_case() { one.eq_ignore_ascii_case(other) } else { one == other }
    };
    let (one, other) = (dialect.table_parts(one), dialect.table_parts(other));
    one.len() == other.len() && one.iter().zip(&other).all(is_same_part)
}

/// A column of an existing table that takes rows. `F` is the form in which the database takes its values.
#[derive(Debug, Clone)]
pub struct TargetColumn<F> {
    /// The field of a body. It is nullable unless each row needs a value.
    pub field: Field,
    /// How its values are stored.
    pub form: F,
    /// Whether a row without a value gets a default.
    pub has_default: bool,
    /// Whether null can be stored.
    pub takes_nulls: bool,
}

/// Which columns of the batches of a write are stored in which columns of its table.
///
/// A column with a default that is null in all rows of the first batch is left out of the write, so that its default
/// applies; rows with a value after that are refused. Where such a column takes no nulls, this is decided batch by batch.
#[derive(Debug)]
pub struct WritePlan {
    table: String,
    columns: Vec<PlannedColumn>,
}

/// A column of the batches.
#[derive(Debug)]
struct PlannedColumn {
    name: String,
    /// The position among the columns of the table.
    target: usize,
    presence: Presence,
}

/// Whether a column is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    Stored,
    /// The first rows decide.
    Undecided,
    /// Its default applies.
    Defaulted,
    /// Its default applies where a batch has only nulls, which it does not take.
    ByBatch,
}

/// A column of a batch that is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredColumn {
    /// The position in the batch.
    pub position: usize,
    /// The position among the columns of the table.
    pub target: usize,
}

impl WritePlan {
    /// Batches with the columns of `schema` for the table `table` with these columns. `fits` says whether a column stores
    /// values of a type.
    ///
    /// # Errors
    /// `InvalidArguments` with each column that does not fit.
    pub fn new<F>(
        table: &str,
        targets: &[TargetColumn<F>],
        schema: &Schema,
        fits: impl Fn(&DataType, &TargetColumn<F>) -> bool,
    ) -> Result<Self, Error> {
        let mut problems = Vec::new();
        let mut columns: Vec<PlannedColumn> = Vec::with_capacity(schema.fields().len());
        for field in schema.fields() {
            let mut problem = |message: String| problems.push(Violation { path: field.name().clone(), message });
            let found = targets.iter().enumerate().find(|(_, column)| column.field.name() == field.name());
            let Some((target, column)) = found else {
                problem("the table has no such column that takes values".to_owned());
                continue;
            };
            if columns.iter().any(|planned| planned.target == target) {
                problem("the rows have the column twice".to_owned());
            } else if !fits(field.data_type(), column) {
                let expected = column.field.data_type();
                problem(format!("the rows have {}, and the column takes {expected}", field.data_type()));
            }
            let presence = match (column.has_default, column.takes_nulls) {
                (false, _) => Presence::Stored,
                (true, true) => Presence::Undecided,
                (true, false) => Presence::ByBatch,
            };
            columns.push(PlannedColumn { name: field.name().clone(), target, presence });
        }
        for (position, column) in targets.iter().enumerate() {
            if !column.field.is_nullable() && !columns.iter().any(|planned| planned.target == position) {
                let message = "each row needs a value, and the rows have no such column".to_owned();
                problems.push(Violation { path: column.field.name().clone(), message });
            }
        }
        if problems.is_empty() {
            return Ok(Self { table: table.to_owned(), columns });
        }
        Err(Error::invalid_arguments(format!("the columns do not fit the table {table:?}"), problems))
    }

    /// The name of the table.
    pub fn table(&self) -> &str {
        &self.table
    }

    /// The columns of `batch`, the next one of the write, that are stored.
    ///
    /// # Errors
    /// `InvalidArguments` if a column has values whose default applied to the rows before.
    pub fn stored_columns(&mut self, batch: &RecordBatch) -> Result<Vec<StoredColumn>, Error> {
        if batch.num_columns() != self.columns.len() {
            let (count, planned) = (batch.num_columns(), self.columns.len());
            return Err(Error::internal(format!("a batch has {count} columns, not {planned}")));
        }
        let mut stored = Vec::with_capacity(self.columns.len());
        for (position, (column, array)) in self.columns.iter_mut().zip(batch.columns()).enumerate() {
            let is_empty = array.logical_null_count() == array.len();
            if column.presence == Presence::Undecided {
                column.presence = if is_empty { Presence::Defaulted } else { Presence::Stored };
            }
            match column.presence {
                Presence::Defaulted if !is_empty => {
                    let message = format!(
                        "the column {:?} of {:?} has a default, which applies to the rows before; later rows have values",
                        column.name, self.table
                    );
                    return Err(Error::new(ErrorKind::InvalidArguments, message)
                        .with_hint("Send the column in all rows, or in none."));
                }
                Presence::Defaulted => {}
                Presence::ByBatch if is_empty => {}
                Presence::Stored | Presence::ByBatch | Presence::Undecided => {
                    stored.push(StoredColumn { position, target: column.target });
                }
            }
        }
        Ok(stored)
    }
}

/// The number of batches that wait for the write.
const BATCHES_MAX: usize = 2;

/// What a write does next.
#[derive(Debug)]
pub enum WriteStep {
    /// It stores rows in the table at this position.
    Rows(usize, RecordBatch),
    /// It commits.
    Commit,
}

/// The steps of a write, for the task or thread that runs it.
#[derive(Debug)]
pub struct WriteSteps {
    steps: mpsc::Receiver<WriteStep>,
    /// How long the write waits for its next rows. It holds locks and a connection.
    timeout: Duration,
}

impl WriteSteps {
    /// The next step. `None` if the writer was dropped.
    ///
    /// # Errors
    /// `TimedOut` when no rows came for too long.
    pub async fn next(&mut self) -> Result<Option<WriteStep>, Error> {
        tokio::time::timeout(self.timeout, self.steps.recv()).await.map_err(|_| {
            let seconds = self.timeout.as_secs();
            let message = format!("no rows came for {seconds} s, so the write was abandoned");
            Error::new(ErrorKind::TimedOut, message).with_hint("Send the rows faster.")
        })
    }
}

/// The writer of a write that runs elsewhere. Dropping it drops `G`, which may interrupt a statement, and ends the steps.
#[derive(Debug)]
pub struct StepWriter<G> {
    steps: mpsc::Sender<WriteStep>,
    outcome: oneshot::Receiver<Result<WriteReceipt, Error>>,
    /// Whether an error was returned.
    is_over: bool,
    _guard: G,
}

impl<G> StepWriter<G> {
    /// A writer, the steps that it takes, and the sender of the outcome. A write waits `timeout` for its next rows.
    pub fn new(timeout: Duration, guard: G) -> (Self, WriteSteps, oneshot::Sender<Result<WriteReceipt, Error>>) {
        let (steps, received) = mpsc::channel(BATCHES_MAX);
        let (finished, outcome) = oneshot::channel();
        let writer = Self { steps, outcome, is_over: false, _guard: guard };
        (writer, WriteSteps { steps: received, timeout }, finished)
    }

    async fn send(&mut self, step: WriteStep) -> Result<(), Error> {
        if !self.is_over && self.steps.send(step).await.is_ok() {
            return Ok(());
        }
        if self.is_over {
            return Err(Error::internal("the write is over"));
        }
        self.is_over = true;
        match (&mut self.outcome).await {
            Ok(Err(error)) => Err(error),
            _ => Err(ended_error()),
        }
    }
}

#[async_trait]
impl<G: Debug + Send> RowWriter for StepWriter<G> {
    async fn write(&mut self, table: usize, rows: RecordBatch) -> Result<(), Error> {
        self.send(WriteStep::Rows(table, rows)).await
    }

    async fn commit(mut self: Box<Self>) -> Result<WriteReceipt, Error> {
        self.send(WriteStep::Commit).await?;
        let outcome = (&mut self.outcome).await;
        outcome.unwrap_or_else(|_| Err(ended_error()))
    }
}

fn ended_error() -> Error {
    Error::internal("the task of a write has ended")
}

/// A table that takes rows, in numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IngestStatus {
    /// The name.
    pub table: String,
    /// Rows that are in the log only.
    pub waiting_rows: u64,
    /// Bytes of these rows in memory.
    pub waiting_bytes: u64,
    /// The age of the oldest of these rows.
    pub oldest_age: Option<Duration>,
    /// Data files of the table.
    pub files: u64,
    /// Rows in these files.
    pub rows: u64,
    /// Bytes of these files.
    pub bytes: u64,
    /// The sequence number of the last write with rows of the table, as in its receipt; 0 if the log has had none.
    pub sequence: u64,
    /// The sequence number of the last write whose rows are in files. They then have all rows of writes before it.
    pub flushed_sequence: u64,
    /// Moves of rows from the log to files since the database was opened.
    pub flushes: u64,
    /// Groups of files that were joined since the database was opened.
    pub compactions: u64,
    /// Why the table is closed, or the last error of a step until it succeeds, or what is wrong with the database.
    pub last_error: Option<String>,
}

/// What was found when the files of a table were compared with what was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IngestVerification {
    /// Rows that were read from files.
    pub file_rows: u64,
    /// Files that were read.
    pub files: u64,
    /// Rows that are in the log only.
    pub log_rows: u64,
    /// What is wrong, file by file. Nothing if everything is as it was written.
    pub problems: Vec<String>,
}

/// The upkeep of a database whose tables take rows. An operator uses it.
#[async_trait]
pub trait IngestMaintenance: Send + Sync + Debug + 'static {
    /// The name of the database.
    fn database(&self) -> &str;

    /// The tables with columns, also those of rejected rows, by name.
    fn status(&self) -> Vec<IngestStatus>;

    /// What happened since the database was opened.
    fn totals(&self) -> IngestTotals;

    /// The bytes of its log.
    fn log_bytes(&self) -> u64;

    /// Moves the rows of `table` that are in the log only to files.
    ///
    /// # Errors
    /// `NotFound`; `Unavailable` when the storage fails. The rows stay in the log, and visible.
    async fn flush(&self, table: &str) -> Result<(), Error>;

    /// Joins small files of `table`, and returns how many.
    ///
    /// # Errors
    /// As [`IngestMaintenance::flush`]. The files stay as they are.
    async fn compact(&self, table: &str) -> Result<u64, Error>;

    /// Reads all files of `table`, and compares their checksums and rows with what was written.
    ///
    /// # Errors
    /// As [`IngestMaintenance::flush`].
    async fn verify(&self, table: &str) -> Result<IngestVerification, Error>;
}
