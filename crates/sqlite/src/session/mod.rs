//! A connection and what is done on it: each piece of work in a read transaction of its own, so that it sees one
//! snapshot of the files.

mod functions;
mod opening;
mod running;
mod wall;

use std::collections::BTreeSet;
use std::sync::Arc;

use rusqlite::{Connection, ErrorCode, Statement};
use tidegate_query::Mask;

pub(crate) use opening::OpeningError;
pub(crate) use running::{Running, StopOnDrop};

use crate::failure::{Failure, words};
use crate::files::{Files, Stamp};
use crate::options::SqliteOptions;
use crate::shown::{Asker, Key, Ledger, Shown, Sight, redacted};
use crate::tables::{Table, quoted};
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

    /// Does `work` in a read transaction, until `running` must end. Tables are as they are shown to `asker`.
    ///
    /// # Errors
    /// What keeps the files from being read, and what `work` returns.
    pub(crate) fn read<T>(
        &mut self,
        running: &Arc<Running>,
        asker: Option<&Asker>,
        work: impl FnOnce(&Reading<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        *self.slot.lock() = Some(running.clone());
        let outcome = self.in_transaction(running, asker, work);
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
        asker: Option<&Asker>,
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
        let (wall, ledger) = (&open.wall, &open.ledger);
        let mut reading = Reading { connection: &open.connection, wall, files: &self.files, ledger, shown: None };
        reading.begin()?;
        let outcome = reading.show_to(asker).and_then(|()| work(&reading));
        let ended = reading.end();
        wall.guard(None);
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
    ledger: &'a Ledger,
    /// How their tables are shown; none where all are as they are.
    shown: Option<Arc<Shown>>,
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
        let is_changed = self.ledger.take_changed();
        if self.connection.is_autocommit() {
            // SQLite has ended it by itself, as it does after grave errors, and has taken our views with it.
            return if is_changed { Err(Failure::Changed) } else { Ok(()) };
        }
        // Views that were made stay for the next call; a rollback would make SQLite read all schemas again, too.
        let end = if is_changed { "COMMIT" } else { "ROLLBACK" };
        self.ours(|connection| connection.execute_batch(end)).map_err(Failure::Sqlite)
    }

    /// From now on tables are as they are shown to `asker`.
    fn show_to(&mut self, asker: Option<&Asker>) -> Result<(), Failure> {
        let _opened = self.wall.open();
        let shown = match asker {
            Some(asker) => self.ledger.shown(self.connection, self.files, asker)?,
            None => None,
        };
        self.ledger.clear_for(self.connection, shown.as_ref()).map_err(Failure::Behind)?;
        self.wall.guard(shown.clone());
        self.shown = shown;
        Ok(())
    }

    /// Makes the views that a statement needs which reads `tables`, or which may read any.
    ///
    /// # Errors
    /// What SQLite says.
    pub(crate) fn stand_for(&self, tables: Option<&[String]>) -> Result<(), Failure> {
        let Some(shown) = &self.shown else { return Ok(()) };
        let _opened = self.wall.open();
        self.ledger.make(self.connection, shown, shown.wanted(tables)).map_err(Failure::Behind)?;
        self.wall.stands(self.ledger.standing());
        Ok(())
    }

    /// Makes the view before the table `key` that is no barrier.
    ///
    /// # Errors
    /// What SQLite says.
    pub(crate) fn stand_open(&self, key: &Key) -> Result<(), Failure> {
        let Some(shown) = &self.shown else { return Ok(()) };
        let _opened = self.wall.open();
        self.ledger.make_open(self.connection, shown, key).map_err(Failure::Behind)
    }

    /// Whether policies apply to any table.
    pub(crate) fn is_shown(&self) -> bool {
        self.shown.is_some()
    }

    /// How `table` is shown, where a policy applies to it.
    pub(crate) fn sight(&self, table: &Table) -> Option<&Sight> {
        self.shown.as_ref()?.sight(table)
    }

    /// The mask of a column of `table`.
    pub(crate) fn mask(&self, table: &Table, column: &str) -> Option<Mask> {
        self.shown.as_ref()?.mask(table, column)
    }

    /// Schema and name by which `table` is read.
    pub(crate) fn place(&self, table: &Table) -> (String, String) {
        let moved = self.shown.as_ref().and_then(|shown| shown.moved(&table.schema, &table.name));
        moved.unwrap_or_else(|| (table.schema.clone(), table.name.clone()))
    }

    /// How the tables are shown, where policies apply to any.
    pub(crate) fn shown(&self) -> Option<&Shown> {
        self.shown.as_deref()
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
        let _planning = self.wall.begin();
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
            let planning = self.wall.begin();
            let mut statement = self.connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
            drop(planning);
            let mut rows = statement.raw_query();
            let mut steps = Vec::new();
            while let Some(row) = rows.next()? {
                steps.push((row.get(0)?, row.get(1)?, row.get(3)?));
            }
            Ok(steps)
        };
        let steps = rows().map_err(|error| self.failed(error))?;
        Ok(match &self.shown {
            Some(shown) => redacted(steps, &shown.token),
            None => steps,
        })
    }

    /// The schemas and names of the tables and views that the last prepared statement reads.
    pub(crate) fn reads(&self) -> BTreeSet<(String, String)> {
        self.wall.reads()
    }

    /// What `error` of a caller's statement is: a refusal of the wall says what it refused.
    pub(crate) fn failed(&self, error: rusqlite::Error) -> Failure {
        let is_behind = |shown: &Arc<Shown>| words(&error).contains(&shown.token);
        if self.shown.as_ref().is_some_and(is_behind) {
            return Failure::Behind(error);
        }
        match self.wall.refused() {
            Some(what) if error.sqlite_error_code() != Some(ErrorCode::OperationInterrupted) => Failure::Refused(what),
            _ => Failure::Sqlite(error),
        }
    }
}
