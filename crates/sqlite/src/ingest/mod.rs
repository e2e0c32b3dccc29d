//! Tables that take rows: each write is one transaction, on a connection and a thread of its own.
//!
//! # Locks
//!
//! A write begins with `BEGIN IMMEDIATE`, so it is the only one of its file until it ends; others wait for as long as
//! `busy_timeout`. In WAL mode, readers are not affected. In the other modes, a large write keeps readers waiting as soon
//! as its pages exceed the cache. The mode of a file is not changed. The connections that read stay read-only.
//!
//! # Columns
//!
//! | declared | body | stored |
//! |---|---|---|
//! | with `INT` | `Int64` | integer |
//! | with `CHAR`, `CLOB`, `TEXT`; none; `ANY` | `Utf8` | text |
//! | with `BLOB` | `Binary` | blob |
//! | with `REAL`, `FLOA`, `DOUB` | `Float64`, without NaN | real |
//! | `BOOL…` | `Boolean` | 0 or 1 |
//! | `DATE`, `TIME`, `DATETIME`, `TIMESTAMP…` | `Date32`, `Time64(µs)`, `Timestamp(µs)` | text of ISO 8601 |
//! | `DECIMAL(p,s)`, `NUMERIC(p,s)` | `Decimal128(p, s)` | integer, or real with at most 15 digits |
//! | `JSON`, and any other | `Utf8` | text that SQLite does not take for a number |
//!
//! A value that SQLite would store as another one is refused. Generated columns are not in a body. A column with a
//! default that is null in all rows of the first batch is left out of the write, so that its default applies; rows with a
//! value after that are refused. Where such a column takes no nulls, this is decided batch by batch.
//!
//! Foreign keys are checked, and triggers run. Conflicts are errors, also where the table declares to ignore or replace.
//!
//! # Sequence and keys
//!
//! The sequence of a receipt is the time of the commit in microseconds since 1970, and grows with each write of this
//! process. Digests of keys are in the table `tidegate_ingest_keys` of the same file for 24 hours. It is created only if
//! [`SqliteIngestOptions::stores_keys`] is set; without it, a write with a key is refused.

mod column;
mod keys;
mod session;
mod table;
mod values;
mod write;
mod writer;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arrow::datatypes::Schema;
use async_trait::async_trait;
use tidegate_core::{Error, ErrorKind, nearest_names};
use tidegate_query::{ColumnStamp, IngestTable, IngestTarget, WriteRequest, WriteStart, is_rejects_table};
use tidegate_sql::SqlDialect;
use tokio::sync::Semaphore;

use crate::files::DatabaseFiles;
use keys::RunningKeys;
use table::TargetTable;
use writer::WriteContext;

const DIALECT: SqlDialect = SqlDialect::Sqlite;

/// The tables of SQLite files that take rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqliteIngestOptions {
    /// The tables, with those of rejected rows.
    pub tables: Vec<SqliteIngestTable>,
    /// How long a write waits for another one, of this process or of another program.
    pub busy_timeout: Duration,
    /// The maximum size of one text or blob, and of one row, in bytes.
    pub value_bytes_max: usize,
    /// Whether the keys of writes are stored, in a table that is created in the file.
    pub stores_keys: bool,
}

impl Default for SqliteIngestOptions {
    fn default() -> Self {
        Self { tables: Vec::new(), busy_timeout: Duration::from_secs(5), value_bytes_max: 16 << 20, stores_keys: false }
    }
}

/// A table that takes rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqliteIngestTable {
    /// The name as in the catalog: with the name of its file if the database has several.
    pub name: String,
    /// Columns that get their value from an attribute of the caller.
    pub stamps: Vec<ColumnStamp>,
}

/// Tables of SQLite files that take rows.
pub struct SqliteIngest {
    context: Arc<WriteContext>,
    /// Sorted by name.
    tables: Vec<SqliteIngestTable>,
}

impl fmt::Debug for SqliteIngest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { context, tables } = self;
        f.debug_struct("SqliteIngest")
            .field("database", &context.database)
            .field("tables", tables)
            .finish_non_exhaustive()
    }
}

impl SqliteIngest {
    /// The tables of `options` in the database `name` over `files`. Reads nothing, but checks that the files exist.
    ///
    /// # Errors
    /// As of [`SqliteDatabase::open`](crate::SqliteDatabase::open); `InvalidArguments` if a table is declared twice.
    pub fn open(name: impl Into<String>, files: Vec<PathBuf>, options: SqliteIngestOptions) -> Result<Self, Error> {
        let database: Arc<str> = name.into().into();
        let files = DatabaseFiles::new(&database, files)?;
        let mut tables = options.tables.clone();
        tables.sort_by(|one, other| one.name.cmp(&other.name));
        if let Some([table, _]) = tables.array_windows().find(|[one, other]| is_same_name(&one.name, &other.name)) {
            let message = format!("the table {:?} of the database {database:?} is declared twice", table.name);
            return Err(Error::new(ErrorKind::InvalidArguments, message));
        }
        let context = WriteContext {
            database,
            files,
            options,
            writes: Arc::new(Semaphore::new(1)),
            keys: RunningKeys::default(),
            last_sequence: parking_lot::Mutex::new(0),
        };
        Ok(Self { context: Arc::new(context), tables })
    }

    /// The declared table `name`.
    fn declared(&self, name: &str) -> Result<&SqliteIngestTable, Error> {
        if let Some(table) = self.tables.iter().find(|table| is_same_name(&table.name, name)) {
            return Ok(table);
        }
        let message = format!("the database {:?} has no table {name:?} that takes rows", self.context.database);
        let names = self.tables();
        let near = nearest_names(name, names.iter().map(String::as_str));
        Err(Error::new(ErrorKind::NotFound, message)
            .with_choices(if near.is_empty() { names } else { near })
            .with_hint(format!("The owner of the node adds an existing table under ingest: [{name}].")))
    }

    async fn look_up(&self, name: String) -> Result<TargetTable, Error> {
        let context = self.context.clone();
        let work = move || {
            let (file, table) = context.locate(&name)?;
            let session = session::open(file, &context)?;
            TargetTable::look_up(&session, &name, &table, &context.database)
        };
        let found = tokio::task::spawn_blocking(work).await;
        found.unwrap_or_else(|error| Err(Error::internal(format!("looking up a table: {error}"))))
    }
}

fn is_same_name(one: &str, other: &str) -> bool {
    let (one, other) = (DIALECT.table_parts(one), DIALECT.table_parts(other));
    one.len() == other.len() && one.iter().zip(&other).all(|(one, other)| one.eq_ignore_ascii_case(other))
}

#[async_trait]
impl IngestTarget for SqliteIngest {
    fn database(&self) -> &str {
        &self.context.database
    }

    fn tables(&self) -> Vec<String> {
        let names = self.tables.iter().map(|table| table.name.clone());
        names.filter(|name| !is_rejects_table(name)).collect()
    }

    async fn table(&self, table: &str) -> Result<IngestTable, Error> {
        let declared = self.declared(table)?;
        let target = self.look_up(declared.name.clone()).await?;
        let fields: Vec<_> = target.columns.iter().map(|column| column.field.clone()).collect();
        Ok(IngestTable {
            name: declared.name.clone(),
            schema: Some(Arc::new(Schema::new(fields))),
            adds_columns: false,
            stamps: declared.stamps.clone(),
        })
    }

    async fn begin(&self, mut request: WriteRequest) -> Result<WriteStart, Error> {
        for write in &mut request.tables {
            write.table.clone_from(&self.declared(&write.table)?.name);
        }
        writer::begin(&self.context, request).await
    }

    async fn drop_table(&self, table: &str) -> Result<(), Error> {
        let declared = self.declared(table)?;
        let message = format!("tables of the SQLite database {:?} are not dropped here", self.context.database);
        Err(Error::new(ErrorKind::InvalidArguments, message)
            .with_hint(format!("Replace the rows of {} with none, or drop it with SQL of its owner.", declared.name)))
    }
}
