//! A write: the rows of its tables, in one transaction of a connection of its own, whose thread is that of the write.
//!
//! The keys of writes are stored, so that a repeated write stores nothing.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Schema};
use parking_lot::Mutex;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::types::ToSqlOutput;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, params};
use tidegate_core::{Error, ErrorKind, HmacSigner};
use tidegate_query::{
    StepWriter, TargetColumn, WriteMode, WritePlan, WriteReceipt, WriteRequest, WriteStart, WriteStep, WriteSteps,
};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::table::{ColumnValues, TargetTable, ValueForm, is_fitting, missing_table_error};
use super::{DIALECT, SqliteIngestOptions};
use crate::tables::{DatabaseFile, DatabaseFiles, MAIN_SCHEMA, quote_identifier};
use crate::work_error::{OpenFileError, WorkError, sqlite_message};

/// A table of a write, and how the columns of its batches are stored.
struct TablePlan {
    table: TargetTable,
    plan: WritePlan,
    rows: u64,
}

impl TablePlan {
    fn new(name: &str, table: TargetTable, schema: &Schema) -> Result<Self, Error> {
        let fits = |data_type: &DataType, column: &TargetColumn<ValueForm>| is_fitting(data_type, column.form);
        let plan = WritePlan::new(name, &table.columns, schema, fits)?;
        Ok(Self { table, plan, rows: 0 })
    }

    /// The columns of `batch` that are stored, with their names.
    fn stored_columns(&mut self, batch: &RecordBatch) -> Result<Vec<(String, ColumnValues)>, Error> {
        let stored = self.plan.stored_columns(batch)?;
        let values = stored.into_iter().filter_map(|stored| {
            let column = self.table.columns.get(stored.target)?;
            let values = ColumnValues::new(batch.columns().get(stored.position)?, column.form);
            Some(values.map(|values| (column.field.name().clone(), values)))
        });
        values.collect()
    }
}

/// How a write begins.
pub(super) enum Beginning<'a> {
    Write(Write<'a>),
    Repeated(WriteReceipt),
}

/// A write in its open transaction. If it is not committed, closing the connection rolls back.
pub(super) struct Write<'a> {
    connection: &'a Connection,
    context: &'a WriteContext,
    plans: Vec<TablePlan>,
    key: Option<String>,
}

impl<'a> Write<'a> {
    /// Begins `request`, whose tables are in the file of `connection`.
    pub(super) fn begin(
        connection: &'a Connection,
        context: &'a WriteContext,
        request: &WriteRequest,
    ) -> Result<Beginning<'a>, Error> {
        let database = &context.database;
        let failed = |error| write_error(error, database);
        connection.execute_batch("BEGIN IMMEDIATE").map_err(failed)?;
        if let Some(key) = &request.key
            && let Some(receipt) = find_key(connection, key, context.now(), database)?
        {
            return Ok(Beginning::Repeated(receipt));
        }
        let mut plans = Vec::with_capacity(request.tables.len());
        for (position, write) in request.tables.iter().enumerate() {
            let (_, name) = context.locate(&write.table)?;
            let table = TargetTable::look_up(connection, &write.table, &name, database)?;
            let plan = TablePlan::new(&write.table, table, &write.schema)?;
            if position == 0 && request.mode == WriteMode::Replace {
                connection.execute(&format!("DELETE FROM {}", plan.table.sql_name), []).map_err(failed)?;
            }
            plans.push(plan);
        }
        Ok(Beginning::Write(Self { connection, context, plans, key: request.key.clone() }))
    }

    /// Inserts the rows of `batch` into the table at this position.
    pub(super) fn insert(&mut self, table: usize, batch: &RecordBatch) -> Result<(), Error> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let database = &self.context.database;
        let plan = self.plans.get_mut(table).ok_or_else(|| Error::internal("the write has no such table"))?;
        let columns = plan.stored_columns(batch)?;
        let sql = insert_sql(&plan.table.sql_name, columns.iter().map(|(name, _)| name.as_str()));
        let mut statement = self.connection.prepare(&sql).map_err(|error| write_error(error, database))?;
        let mut scratch = String::new();
        for row in 0..batch.num_rows() {
            // The table of rejected rows has rows of its own.
            let refused_row = (table == 0).then_some(plan.rows);
            let failed = |error| in_row(write_error(error, database), refused_row);
            for (position, (name, values)) in columns.iter().enumerate() {
                let value = values.value(row, &mut scratch).map_err(|misfit| {
                    let message = format!("{} (column {name})", misfit.0);
                    in_row(Error::new(ErrorKind::InvalidArguments, message), refused_row)
                })?;
                statement.raw_bind_parameter(position + 1, ToSqlOutput::Borrowed(value)).map_err(failed)?;
            }
            if statement.raw_execute().map_err(failed)? != 1 {
                let message = format!("a trigger of {:?} ignored a row, so nothing was stored", plan.plan.table());
                return Err(in_row(Error::new(ErrorKind::InvalidArguments, message), refused_row));
            }
            plan.rows += 1;
        }
        Ok(())
    }

    /// Commits the transaction.
    fn commit(self) -> Result<WriteReceipt, Error> {
        let database = &self.context.database;
        let rows = self.plans.iter().map(|plan| plan.rows).collect();
        let receipt = WriteReceipt { sequence: self.context.next_sequence(), rows };
        let stored = match &self.key {
            Some(key) => store_key(self.connection, key, &receipt, self.context.now()),
            None => Ok(()),
        };
        let committed = stored.and_then(|()| self.connection.execute_batch("COMMIT"));
        committed.map_err(|error| write_error(error, database))?;
        Ok(receipt)
    }
}

/// A conflict is an error, also where a constraint of the table declares to ignore or to replace rows.
fn insert_sql<'a>(table: &str, columns: impl Iterator<Item = &'a str> + Clone) -> String {
    let names: Vec<String> = columns.clone().map(quote_identifier).collect();
    if names.is_empty() {
        return format!("INSERT OR ABORT INTO {table} DEFAULT VALUES");
    }
    let mut sql = format!("INSERT OR ABORT INTO {table} ({}) VALUES (?1", names.join(", "));
    for number in 2..=names.len() {
        // Writing to a String cannot fail.
        let _ = write!(sql, ", ?{number}");
    }
    sql.push(')');
    sql
}

/// The error with its row, if it is about a row.
fn in_row(error: Error, row: Option<u64>) -> Error {
    match (error.kind(), row) {
        (ErrorKind::InvalidArguments | ErrorKind::TooLarge, Some(row)) => error.with_refused_row(row),
        _ => error,
    }
}

/// How long a write waits for its next rows. It keeps other writers of its file waiting.
const ROWS_TIMEOUT: Duration = Duration::from_secs(60);
/// Reserved, not allocated; for triggers that start others.
const STACK_BYTES: usize = 16 << 20;
/// The number of virtual machine instructions between two checks whether the writer was dropped.
const PROGRESS_INSTRUCTIONS: i32 = 10_000;

/// What all writes of a database share.
pub(super) struct WriteContext {
    pub(super) database: Arc<str>,
    pub(super) files: DatabaseFiles,
    pub(super) options: SqliteIngestOptions,
    /// One permit: SQLite has one writer, and its own waiting is not fair.
    pub(super) writes: Arc<Semaphore>,
    pub(super) keys: RunningKeys,
    pub(super) last_sequence: Mutex<u64>,
}

impl WriteContext {
    /// The file and the bare name of the table `name`.
    pub(super) fn locate(&self, name: &str) -> Result<(&DatabaseFile, String), Error> {
        let parts = DIALECT.table_parts(name);
        let (schema, table) = match parts.as_slice() {
            [table] if self.files.is_single() => (MAIN_SCHEMA, table),
            [schema, table] => (schema.as_str(), table),
            _ => return Err(missing_table_error(name, &self.database)),
        };
        let file = self.files.files.iter().find(|file| file.schema.eq_ignore_ascii_case(schema));
        let file = file.ok_or_else(|| missing_table_error(name, &self.database))?;
        Ok((file, table.clone()))
    }

    /// The time in microseconds since 1970.
    pub(super) fn now(&self) -> i64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(now.as_micros()).unwrap_or(i64::MAX)
    }

    /// The time, or more if the last write was in the same microsecond.
    fn next_sequence(&self) -> u64 {
        let mut last = self.last_sequence.lock();
        *last = self.now().cast_unsigned().max(last.saturating_add(1));
        *last
    }

    /// The file of all tables of `request`.
    fn file_of(&self, request: &WriteRequest) -> Result<usize, Error> {
        let mut found = None;
        for write in &request.tables {
            let (file, _) = self.locate(&write.table)?;
            let position = self.files.files.iter().position(|other| other.schema == file.schema);
            if found.is_some() && found != position {
                let message = "the tables of a write are in one file".to_owned();
                return Err(Error::new(ErrorKind::InvalidArguments, message));
            }
            found = position;
        }
        found.ok_or_else(|| Error::internal("a write without a table"))
    }
}

/// Interrupts the statement of a write whose writer was dropped; it then rolls back.
#[derive(Debug)]
struct InterruptOnDrop(Arc<AtomicBool>);

impl Drop for InterruptOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What the thread of a write needs.
struct WriteThread {
    context: Arc<WriteContext>,
    request: WriteRequest,
    runtime: Handle,
    is_dropped: Arc<AtomicBool>,
    steps: WriteSteps,
    /// Released when the write has ended.
    _permit: OwnedSemaphorePermit,
    _key: Option<KeyInUse>,
}

/// Begins `request` on a new thread.
pub(super) async fn begin(context: &Arc<WriteContext>, request: WriteRequest) -> Result<WriteStart, Error> {
    if request.key.is_some() && !context.options.stores_keys {
        return Err(unsupported_error(&context.database));
    }
    context.file_of(&request)?;
    let key = request.key.as_deref().map(|key| context.keys.take(key)).transpose()?;
    let permit = tokio::time::timeout(context.options.busy_timeout, context.writes.clone().acquire_owned()).await;
    let Ok(Ok(permit)) = permit else {
        let message = format!("another write to the database {:?} is running", context.database);
        return Err(Error::new(ErrorKind::Unavailable, message).with_hint("Try again when it has ended."));
    };
    let is_dropped: Arc<AtomicBool> = Arc::default();
    let (writer, steps, finished) = StepWriter::new(ROWS_TIMEOUT, InterruptOnDrop(is_dropped.clone()));
    let (started, start) = oneshot::channel();
    let thread = WriteThread {
        context: context.clone(),
        request,
        runtime: Handle::current(),
        is_dropped,
        steps,
        _permit: permit,
        _key: key,
    };
    let spawned =
        thread::Builder::new().name("tidegate-sqlite-write".to_owned()).stack_size(STACK_BYTES).spawn(move || {
            let outcome = thread.run(started);
            // Nobody waits if the writer was dropped.
            let _ = outcome.map(|outcome| finished.send(outcome));
        });
    spawned.map_err(|error| {
        Error::new(ErrorKind::Unavailable, "cannot start a thread for SQLite").with_detail(error.to_string())
    })?;
    match start.await {
        Ok(Ok(None)) => Ok(WriteStart::Writer(Box::new(writer))),
        Ok(Ok(Some(receipt))) => Ok(WriteStart::Repeated(receipt)),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(Error::internal("the thread of a write panicked")),
    }
}

type Start = Result<Option<WriteReceipt>, Error>;

impl WriteThread {
    /// Reports the start, and returns the outcome: `None` if it did not start or was dropped. The connection is closed
    /// before, and the permit and the key are free.
    fn run(mut self, started: oneshot::Sender<Start>) -> Option<Result<WriteReceipt, Error>> {
        let context = self.context.clone();
        let connection = match self.open() {
            Ok(connection) => connection,
            Err(error) => {
                drop(self);
                let _ = started.send(Err(error));
                return None;
            }
        };
        let start = match Write::begin(&connection, &context, &self.request) {
            Ok(Beginning::Write(write)) => {
                if started.send(Ok(None)).is_err() {
                    return None;
                }
                return self.receive(write).transpose();
            }
            Ok(Beginning::Repeated(receipt)) => Ok(Some(receipt)),
            Err(error) => Err(error),
        };
        drop((connection, self));
        let _ = started.send(start);
        None
    }

    fn open(&self) -> Result<Connection, Error> {
        let position = self.context.file_of(&self.request)?;
        let file = self.context.files.files.get(position);
        let file = file.ok_or_else(|| Error::internal("a write without a file"))?;
        let mut connection = open_session(file, &self.context)?;
        let is_dropped = self.is_dropped.clone();
        let handler = move || is_dropped.load(Ordering::Relaxed);
        let set = connection.progress_handler(PROGRESS_INSTRUCTIONS, Some(handler));
        set.map_err(|error| write_error(error, &self.context.database))?;
        Ok(connection)
    }

    /// Inserts until the commit; `None` if the writer was dropped before.
    fn receive(&mut self, mut write: Write<'_>) -> Result<Option<WriteReceipt>, Error> {
        loop {
            match self.runtime.block_on(self.steps.next())? {
                Some(WriteStep::Rows(table, batch)) => write.insert(table, &batch)?,
                Some(WriteStep::Commit) => return write.commit().map(Some),
                None => return Ok(None),
            }
        }
    }
}

/// The page cache, in KiB.
const CACHE_KIB: u32 = 16 << 10;

/// Opens the file for writing. It must exist.
pub(super) fn open_session(file: &DatabaseFile, context: &WriteContext) -> Result<Connection, Error> {
    let opened = || {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&file.path, flags)?;
        connection.busy_timeout(context.options.busy_timeout)?;
        let switches = [
            (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
            (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
            (DbConfig::SQLITE_DBCONFIG_WRITABLE_SCHEMA, false),
            (DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true),
            (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, true),
        ];
        for (switch, on) in switches {
            connection.set_db_config(switch, on)?;
        }
        let length = i32::try_from(context.options.value_bytes_max).unwrap_or(i32::MAX);
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, length)?;
        connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
        // If a mapped file is truncated, the process is killed.
        let pragmas = format!("PRAGMA synchronous = FULL; PRAGMA mmap_size = 0; PRAGMA cache_size = -{CACHE_KIB};");
        connection.execute_batch(&pragmas)?;
        // SQLite opens a file at the first read.
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok(connection)
    };
    opened().map_err(|error| {
        let error = OpenFileError::RejectedBySqlite(file.schema.clone(), error);
        WorkError::Open(error).into_error(&context.database)
    })
}

/// The error of a statement that writes.
pub(super) fn write_error(error: rusqlite::Error, database: &str) -> Error {
    let unavailable = |message: String| Error::new(ErrorKind::Unavailable, message).with_detail(error.to_string());
    match error.sqlite_error_code() {
        Some(ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch) => {
            Error::new(ErrorKind::InvalidArguments, sqlite_message(&error))
        }
        Some(ErrorCode::DiskFull) => unavailable(format!("the disk of the database {database:?} is full")),
        Some(ErrorCode::ReadOnly) => unavailable(format!("the file of the database {database:?} cannot be written"))
            .with_hint("Grant the node write access to the file and to its folder."),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            unavailable(format!("another program writes to the database {database:?}"))
                .with_hint("Try again in a few seconds.")
        }
        Some(ErrorCode::TooBig) => {
            Error::new(ErrorKind::TooLarge, "a text, a blob or a row exceeds the size limit of the database")
        }
        _ => WorkError::Sqlite(error).into_error(database),
    }
}

const CREATE_SQL: &str = "CREATE TABLE IF NOT EXISTS main.tidegate_ingest_keys \
    (key TEXT PRIMARY KEY, sequence INTEGER NOT NULL, rows TEXT NOT NULL, at INTEGER NOT NULL) STRICT, WITHOUT ROWID";
const FIND_SQL: &str = "SELECT sequence, rows FROM main.tidegate_ingest_keys WHERE key = ?1 AND at > ?2";
const STORE_SQL: &str =
    "INSERT OR REPLACE INTO main.tidegate_ingest_keys (key, sequence, rows, at) VALUES (?1, ?2, ?3, ?4)";
const CLEAN_SQL: &str = "DELETE FROM main.tidegate_ingest_keys WHERE at <= ?1";
/// How long a key is remembered: 24 hours.
const KEY_AGE_MAX_MICROSECONDS: i64 = 24 * 3600 * 1_000_000;

/// The form in which `key` is stored: callers who may read the table do not learn the keys of others.
fn stored_form(key: &str) -> String {
    hex::encode(HmacSigner::new(b"tidegate_ingest_keys").sign("the key of a write", &[key.as_bytes()]))
}

/// The keys of the writes that run in this process.
#[derive(Debug, Clone, Default)]
pub(super) struct RunningKeys(Arc<Mutex<HashSet<String>>>);

/// A key that is in use until this is dropped.
#[derive(Debug)]
pub(super) struct KeyInUse {
    keys: RunningKeys,
    pub(super) key: String,
}

impl RunningKeys {
    /// Takes `key`; an error if a write with it is running.
    pub(super) fn take(&self, key: &str) -> Result<KeyInUse, Error> {
        match self.0.lock().insert(key.to_owned()) {
            true => Ok(KeyInUse { keys: self.clone(), key: key.to_owned() }),
            false => Err(key_in_use_error()),
        }
    }
}

impl Drop for KeyInUse {
    fn drop(&mut self) {
        self.keys.0.lock().remove(&self.key);
    }
}

fn key_in_use_error() -> Error {
    Error::new(ErrorKind::Conflict, "a write with the same key is running")
        .with_hint("Wait for its end, then send the rows again with the same key.")
}

fn unsupported_error(database: &str) -> Error {
    let message = format!("the database {database:?} does not remember the keys of writes");
    Error::new(ErrorKind::InvalidArguments, message).with_hint(
        "The owner of the node allows the table tidegate_ingest_keys in the file. Or send the rows without a key.",
    )
}

/// The receipt of an earlier write with `key`, in the transaction of the write. `now` is in microseconds since 1970.
fn find_key(connection: &Connection, key: &str, now: i64, database: &str) -> Result<Option<WriteReceipt>, Error> {
    let found = || {
        connection.execute_batch(CREATE_SQL)?;
        let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?));
        connection.query_row(FIND_SQL, params![stored_form(key), now - KEY_AGE_MAX_MICROSECONDS], read).optional()
    };
    let Some((sequence, rows)) = found().map_err(|error| write_error(error, database))? else { return Ok(None) };
    let rows: Result<Vec<u64>, _> = rows.split_terminator(',').map(str::parse).collect();
    let rows = rows.map_err(|_| Error::internal("a stored receipt is damaged"))?;
    Ok(Some(WriteReceipt { sequence: sequence.cast_unsigned(), rows }))
}

/// Stores the receipt, in the transaction of the rows, and removes old ones.
fn store_key(connection: &Connection, key: &str, receipt: &WriteReceipt, now: i64) -> rusqlite::Result<()> {
    let rows: Vec<String> = receipt.rows.iter().map(u64::to_string).collect();
    connection.execute(CLEAN_SQL, [now - KEY_AGE_MAX_MICROSECONDS])?;
    connection.execute(STORE_SQL, params![stored_form(key), receipt.sequence.cast_signed(), rows.join(","), now])?;
    Ok(())
}
