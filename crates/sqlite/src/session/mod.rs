//! A connection and what is done on it: each piece of work in a read transaction of its own, so that it sees one
//! snapshot of the files.

mod functions;
mod opening;
mod running;
mod wall;

use std::collections::BTreeSet;
use std::sync::Arc;

use rusqlite::{Connection, ErrorCode, Statement};

pub(crate) use opening::OpeningError;
pub(crate) use running::{Running, StopOnDrop};

use crate::failure::Failure;
use crate::files::{Files, Stamp};
use crate::options::SqliteOptions;
use crate::tables::quoted;
use opening::{Open, Slot, is_log, look_at};
use wall::Wall;

/// A connection that is opened when it is needed, and again when its files were replaced.
pub(crate) struct Session {
    files: Arc<Files>,
    options: Arc<SqliteOptions>,
    open: Option<Open>,
    slot: Slot,
}

impl Session {
    /// A session on `files`; nothing is opened yet.
    pub(crate) fn new(files: Arc<Files>, options: Arc<SqliteOptions>) -> Self {
        Self { files, options, open: None, slot: Slot::default() }
    }

    /// Closes the connection.
    pub(crate) fn close(&mut self) {
        self.open = None;
    }

    /// Does `work` in a read transaction, until `running` must end.
    ///
    /// # Errors
    /// What keeps the files from being read, and what `work` returns.
    pub(crate) fn read<T>(
        &mut self,
        running: &Arc<Running>,
        work: impl FnOnce(&Reading<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        *self.slot.lock() = Some(running.clone());
        let outcome = self.in_transaction(running, work);
        running.leave();
        *self.slot.lock() = None;
        let is_left_open = self.open.as_ref().is_some_and(|open| !open.connection.is_autocommit());
        if is_left_open || outcome.as_ref().is_err_and(Failure::is_of_the_connection) {
            self.close();
        }
        match outcome {
            Err(failure) if running.must_end() && failure.is_interruption() => Err(Failure::Stopped),
            outcome => outcome,
        }
    }

    fn in_transaction<T>(
        &mut self,
        running: &Running,
        work: impl FnOnce(&Reading<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        if self.open.as_ref().is_some_and(|open| !is_unchanged(&self.files, open)) {
            tracing::debug!("a file of SQLite was changed or replaced; it is opened again");
            self.close();
        }
        let open = match &mut self.open {
            Some(open) => open,
            closed => closed.insert(opening::open(&self.files, &self.options, &self.slot)?),
        };
        running.enter(open.connection.get_interrupt_handle());
        // Who stopped the work before had no handle to interrupt it with.
        if running.must_end() {
            return Err(Failure::Stopped);
        }
        let reading = Reading { connection: &open.connection, wall: &open.wall, files: &self.files };
        reading.begin()?;
        let outcome = work(&reading);
        let ended = reading.end();
        let outcome = outcome?;
        ended?;
        if !open.logs_excluded.is_empty() && !is_unchanged(&self.files, open) {
            return Err(Failure::Changed);
        }
        Ok(outcome)
    }
}

fn is_unchanged(files: &Files, open: &Open) -> bool {
    let now = files.all.iter().map(|file| Stamp::of(&file.path).ok());
    now.eq(open.stamps.iter().cloned().map(Some)) && !open.logs_excluded.iter().any(|log| is_log(log))
}

/// A read transaction.
pub(crate) struct Reading<'a> {
    connection: &'a Connection,
    wall: &'a Wall,
    /// The files that are read.
    pub(crate) files: &'a Files,
}

impl Reading<'_> {
    fn begin(&self) -> Result<(), Failure> {
        self.ours(|connection| {
            connection.execute_batch("BEGIN DEFERRED")?;
            // Each file is looked at now, or its snapshot would be that of the moment when it is first read.
            self.files.all.iter().try_for_each(|file| look_at(connection, &file.schema))
        })
        .inspect_err(|_| drop(self.end()))
        .map_err(Failure::Sqlite)
    }

    fn end(&self) -> Result<(), Failure> {
        if self.connection.is_autocommit() {
            // SQLite has ended it by itself, as it does after grave errors.
            return Ok(());
        }
        self.ours(|connection| connection.execute_batch("ROLLBACK")).map_err(Failure::Sqlite)
    }

    /// Runs SQL of our own, which the wall lets through.
    pub(crate) fn ours<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> rusqlite::Result<T> {
        let _opened = self.wall.open();
        work(self.connection)
    }

    /// Prepares SQL of a caller.
    ///
    /// # Errors
    /// What SQLite says of it, and what the wall refuses.
    pub(crate) fn prepare(&self, sql: &str) -> Result<Statement<'_>, Failure> {
        if sql.contains('\0') {
            // SQLite would read no further.
            return Err(Failure::Refused("a NUL character".to_owned()));
        }
        let statement = match self.prepare_once(sql) {
            // Some modules prepare what they would write when one of their tables is first named, whatever for.
            Err(Failure::Refused(what)) => match self.connect_virtual_tables() {
                true => self.prepare_once(sql)?,
                false => return Err(Failure::Refused(what)),
            },
            prepared => prepared?,
        };
        if statement.column_count() == 0 || !statement.readonly() || statement.is_explain() != 0 {
            return Err(Failure::NoQuery);
        }
        Ok(statement)
    }

    fn prepare_once(&self, sql: &str) -> Result<Statement<'_>, Failure> {
        self.wall.begin();
        self.connection.prepare(sql).map_err(|error| self.failed(error))
    }

    /// Lets the modules of all virtual tables prepare what they need; false when there are none.
    fn connect_virtual_tables(&self) -> bool {
        let connected = self.ours(|connection| {
            let mut statement =
                connection.prepare("SELECT schema, name FROM pragma_table_list WHERE type = 'virtual'")?;
            let names = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            let names = names.collect::<rusqlite::Result<Vec<(String, String)>>>()?;
            for (schema, name) in &names {
                // A table whose module is missing is only a fault of those who ask for it.
                let _ = connection.prepare(&format!("SELECT 1 FROM {}.{}", quoted(schema), quoted(name)));
            }
            Ok(!names.is_empty())
        });
        connected.unwrap_or(false)
    }

    /// The plan of a caller's SQL: number, number of the parent, text.
    ///
    /// # Errors
    /// As [`Reading::prepare`].
    pub(crate) fn explain(&self, sql: &str) -> Result<Vec<(i64, i64, String)>, Failure> {
        let rows = || {
            let mut statement = self.connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
            let mut rows = statement.raw_query();
            let mut steps = Vec::new();
            while let Some(row) = rows.next()? {
                steps.push((row.get(0)?, row.get(1)?, row.get(3)?));
            }
            Ok(steps)
        };
        rows().map_err(|error| self.failed(error))
    }

    /// The schemas and names of the tables and views that the last prepared statement reads.
    pub(crate) fn reads(&self) -> BTreeSet<(String, String)> {
        self.wall.reads()
    }

    /// What `error` of a caller's statement is: a refusal of the wall says what it refused.
    pub(crate) fn failed(&self, error: rusqlite::Error) -> Failure {
        match self.wall.refused() {
            Some(what) if error.sqlite_error_code() != Some(ErrorCode::OperationInterrupted) => Failure::Refused(what),
            _ => Failure::Sqlite(error),
        }
    }
}
