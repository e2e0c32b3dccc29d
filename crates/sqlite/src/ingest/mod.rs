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
//! A value that SQLite would store as another one is refused. Generated columns are not in a body.
//! [`WritePlan`](tidegate_query::WritePlan) says when the default of a column applies.
//!
//! Foreign keys are checked, and triggers run. Conflicts are errors, also where the table declares to ignore or replace.
//!
//! # Sequence and keys
//!
//! The sequence of a receipt is the time of the commit in microseconds since 1970, and grows with each write of this
//! process. Digests of keys are in the table `tidegate_ingest_keys` of the same file for 24 hours. It is created only if
//! [`SqliteIngestOptions::stores_keys`] is set; without it, a write with a key is refused.

mod table;
mod write;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arrow::datatypes::Schema;
use async_trait::async_trait;
use tidegate_core::Error;
use tidegate_query::{DeclaredTable, DeclaredTables, IngestTable, WriteRequest, WriteStart, WriteTarget};
use tidegate_sql::SqlDialect;
use tokio::sync::Semaphore;

use crate::tables::DatabaseFiles;
use table::TargetTable;
use write::{RunningKeys, WriteContext};

const DIALECT: SqlDialect = SqlDialect::Sqlite;

/// The tables of SQLite files that take rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqliteIngestOptions {
    /// The tables, with those of rejected rows. A name has that of its file if the database has several.
    pub tables: Vec<DeclaredTable>,
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

/// Tables of SQLite files that take rows.
pub struct SqliteIngest {
    context: Arc<WriteContext>,
    tables: DeclaredTables,
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
        let tables = DeclaredTables::new(database.clone(), DIALECT, options.tables.clone())?;
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

    async fn look_up(&self, name: String) -> Result<TargetTable, Error> {
        let context = self.context.clone();
        let work = move || {
            let (file, table) = context.locate(&name)?;
            let session = write::open_session(file, &context)?;
            TargetTable::look_up(&session, &name, &table, &context.database)
        };
        let found = tokio::task::spawn_blocking(work).await;
        found.unwrap_or_else(|error| Err(Error::internal(format!("looking up a table: {error}"))))
    }
}

#[async_trait]
impl WriteTarget for SqliteIngest {
    fn database(&self) -> &str {
        &self.context.database
    }

    fn tables(&self) -> Vec<String> {
        self.tables.names()
    }

    async fn table(&self, table: &str) -> Result<IngestTable, Error> {
        let declared = self.tables.find(table)?;
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
            write.table.clone_from(&self.tables.find(&write.table)?.name);
        }
        write::begin(&self.context, request).await
    }

    async fn drop_table(&self, table: &str) -> Result<(), Error> {
        self.tables.refuse_drop(table)
    }
}
