//! The thread of a write, with a connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use rusqlite::Connection;
use tidegate_core::{Error, ErrorKind};
use tidegate_query::{StepWriter, WriteReceipt, WriteRequest, WriteStart, WriteStep, WriteSteps};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::keys::{self, KeyInUse, RunningKeys};
use super::session;
use super::table::missing_table_error;
use super::write::{Beginning, Write};
use super::{DIALECT, SqliteIngestOptions};
use crate::files::{DatabaseFile, DatabaseFiles, MAIN_SCHEMA};

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
    pub(super) fn next_sequence(&self) -> u64 {
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
        return Err(keys::unsupported_error(&context.database));
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
        let mut connection = session::open(file, &self.context)?;
        let is_dropped = self.is_dropped.clone();
        let handler = move || is_dropped.load(Ordering::Relaxed);
        let set = connection.progress_handler(PROGRESS_INSTRUCTIONS, Some(handler));
        set.map_err(|error| session::write_error(error, &self.context.database))?;
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
