//! A connection. Each piece of work runs in its own read transaction and so reads one snapshot of the files, and can be
//! cancelled.

mod functions;
mod open;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use rusqlite::{Connection, ErrorCode, InterruptHandle, Statement};
use tidegate_query::Mask;
use tidegate_runtime::Job;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(crate) use functions::{SERIES, SERIES_ARGUMENT, SERIES_ARGUMENTS};

use crate::policy_views::{PolicyCaller, PolicyViewCache, PolicyViews, TableKey, TableVisibility, redact_plan};
use crate::tables::{DatabaseFiles, FileVersion, SqliteOptions, SqliteTable, list_names, quote_identifier};
use crate::work_error::{WorkError, sqlite_message};
use open::{Authorizer, CurrentWork, SqliteConnection, is_not_empty, read_schema};

/// A connection that is opened on first use, and again after its files were replaced.
pub(crate) struct SqliteSession {
    files: Arc<DatabaseFiles>,
    options: Arc<SqliteOptions>,
    open: Option<SqliteConnection>,
    current_work: CurrentWork,
}

impl SqliteSession {
    pub(crate) fn new(files: Arc<DatabaseFiles>, options: Arc<SqliteOptions>) -> Self {
        Self { files, options, open: None, current_work: CurrentWork::default() }
    }

    pub(crate) fn close(&mut self) {
        self.open = None;
    }

    /// Runs `work` in a read transaction, until `cancellation` is cancelled. Applies the row policies of the caller.
    pub(crate) fn read<T>(
        &mut self,
        cancellation: &Arc<WorkCancellation>,
        policy_caller: Option<&PolicyCaller>,
        work: impl FnOnce(&ReadTransaction<'_>) -> Result<T, WorkError>,
    ) -> Result<T, WorkError> {
        *self.current_work.lock() = Some(cancellation.clone());
        let outcome = self.run_in_transaction(cancellation, policy_caller, work);
        cancellation.detach();
        *self.current_work.lock() = None;
        let is_left_open = self.open.as_ref().is_some_and(|open| !open.connection.is_autocommit());
        if is_left_open || outcome.as_ref().is_err_and(WorkError::requires_reconnect) {
            self.close();
        }
        match outcome {
            Err(failure) if cancellation.must_stop() && failure.is_interruption() => Err(cancellation.stop_error()),
            outcome => outcome,
        }
    }

    fn run_in_transaction<T>(
        &mut self,
        cancellation: &WorkCancellation,
        policy_caller: Option<&PolicyCaller>,
        work: impl FnOnce(&ReadTransaction<'_>) -> Result<T, WorkError>,
    ) -> Result<T, WorkError> {
        if self.open.as_ref().is_some_and(|open| !is_unchanged(&self.files, open)) {
            tracing::debug!("a SQLite file was changed or replaced; opening it again");
            self.close();
        }
        let open = match &mut self.open {
            Some(open) => open,
            closed => closed.insert(open::open(&self.files, &self.options, &self.current_work)?),
        };
        cancellation.attach(open.connection.get_interrupt_handle());
        // A cancellation before this point had no handle to interrupt.
        if cancellation.must_stop() {
            return Err(cancellation.stop_error());
        }
        let mut reading = ReadTransaction {
            connection: &open.connection,
            authorizer: &open.authorizer,
            files: &self.files,
            view_cache: &open.view_cache,
            policy_views: None,
        };
        reading.begin()?;
        let outcome = reading.apply_policies(policy_caller).and_then(|()| work(&reading));
        let ended = reading.end();
        open.authorizer.set_policy_views(None);
        let outcome = outcome?;
        ended?;
        if !open.absent_wals.is_empty() && !is_unchanged(&self.files, open) {
            return Err(WorkError::Changed);
        }
        Ok(outcome)
    }
}

fn is_unchanged(files: &DatabaseFiles, open: &SqliteConnection) -> bool {
    let now = files.files.iter().map(|file| FileVersion::read(&file.path).ok());
    now.eq(open.versions.iter().cloned().map(Some)) && !open.absent_wals.iter().any(|path| is_not_empty(path))
}

pub(crate) struct ReadTransaction<'a> {
    connection: &'a Connection,
    authorizer: &'a Authorizer,
    pub(crate) files: &'a DatabaseFiles,
    view_cache: &'a PolicyViewCache,
    /// The visibility of their tables; `None` if no policy applies.
    policy_views: Option<Arc<PolicyViews>>,
}

impl ReadTransaction<'_> {
    fn begin(&self) -> Result<(), WorkError> {
        self.run_internal(|connection| {
            connection.execute_batch("BEGIN DEFERRED")?;
            // Reads each file now. Otherwise its snapshot would begin at its first read.
            self.files.files.iter().try_for_each(|file| read_schema(connection, &file.schema))
        })
        .inspect_err(|_| drop(self.end()))
        .map_err(WorkError::Sqlite)
    }

    fn end(&self) -> Result<(), WorkError> {
        let is_changed = self.view_cache.take_changed();
        if self.connection.is_autocommit() {
            // SQLite ends the transaction itself after severe errors, and drops the policy views.
            return if is_changed { Err(WorkError::Changed) } else { Ok(()) };
        }
        // New views stay for the next call. A rollback would also make SQLite read all schemas again.
        let end = if is_changed { "COMMIT" } else { "ROLLBACK" };
        self.run_internal(|connection| connection.execute_batch(end)).map_err(WorkError::Sqlite)
    }

    fn apply_policies(&mut self, policy_caller: Option<&PolicyCaller>) -> Result<(), WorkError> {
        let _scope = self.authorizer.allow_internal();
        let views_for = |caller| self.view_cache.views_for(self.connection, self.files, caller);
        let policy_views = policy_caller.map(views_for).transpose()?.flatten();
        self.view_cache.drop_views_of_others(self.connection, policy_views.as_ref()).map_err(WorkError::PolicyView)?;
        self.authorizer.set_policy_views(policy_views.clone());
        self.policy_views = policy_views;
        Ok(())
    }

    /// Creates the views that a statement over `tables` needs; `None` stands for any table.
    pub(crate) fn create_views_for(&self, tables: Option<&[String]>) -> Result<(), WorkError> {
        let Some(policy_views) = &self.policy_views else { return Ok(()) };
        let _scope = self.authorizer.allow_internal();
        self.view_cache
            .create_views(self.connection, policy_views, policy_views.required_views(tables))
            .map_err(WorkError::PolicyView)?;
        self.authorizer.set_active_views(self.view_cache.active_view_names());
        Ok(())
    }

    pub(crate) fn create_mergeable_view(&self, key: &TableKey) -> Result<(), WorkError> {
        let Some(policy_views) = &self.policy_views else { return Ok(()) };
        let _scope = self.authorizer.allow_internal();
        self.view_cache.create_mergeable_view(self.connection, policy_views, key).map_err(WorkError::PolicyView)
    }

    pub(crate) fn has_policies(&self) -> bool {
        self.policy_views.is_some()
    }

    pub(crate) fn visibility(&self, table: &SqliteTable) -> Option<&TableVisibility> {
        self.policy_views.as_ref()?.visibility(table)
    }

    pub(crate) fn mask(&self, table: &SqliteTable, column: &str) -> Option<Mask> {
        self.policy_views.as_ref()?.mask(table, column)
    }

    pub(crate) fn effective_name(&self, table: &SqliteTable) -> (String, String) {
        let replacement = self.policy_views().and_then(|views| views.replacement_for(&table.schema, &table.name));
        replacement.unwrap_or_else(|| (table.schema.clone(), table.name.clone()))
    }

    /// The visibility of all tables, if a policy applies to any.
    pub(crate) fn policy_views(&self) -> Option<&PolicyViews> {
        self.policy_views.as_deref()
    }

    /// Runs internal SQL, which the authorizer allows.
    pub(crate) fn run_internal<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> rusqlite::Result<T> {
        let _scope = self.authorizer.allow_internal();
        work(self.connection)
    }

    pub(crate) fn prepare(&self, sql: &str) -> Result<Statement<'_>, WorkError> {
        if sql.contains('\0') {
            // SQLite would stop reading there.
            return Err(WorkError::Unauthorized("a NUL character".to_owned()));
        }
        let statement = match self.prepare_once(sql) {
            // Some modules prepare their write statements when one of their tables is first used, even for reading.
            Err(WorkError::Unauthorized(subject)) => match self.connect_virtual_tables() {
                true => self.prepare_once(sql)?,
                false => return Err(WorkError::Unauthorized(subject)),
            },
            prepared => prepared?,
        };
        if statement.column_count() == 0 || !statement.readonly() || statement.is_explain() != 0 {
            return Err(WorkError::NotAQuery);
        }
        Ok(statement)
    }

    fn prepare_once(&self, sql: &str) -> Result<Statement<'_>, WorkError> {
        let _planning = self.authorizer.begin_planning();
        self.connection.prepare(sql).map_err(|error| self.classify_error(error))
    }

    /// Initialises the modules of all virtual tables; returns false if there are none.
    fn connect_virtual_tables(&self) -> bool {
        let has_any = self.run_internal(|connection| {
            let names = list_names(connection, "virtual")?;
            for (schema, name) in &names {
                // A table with a missing module is an error only for statements that use it.
                let (schema, name) = (quote_identifier(schema), quote_identifier(name));
                let _ = connection.prepare(&format!("SELECT 1 FROM {schema}.{name}"));
            }
            Ok(!names.is_empty())
        });
        has_any.unwrap_or(false)
    }

    /// The plan of a caller's SQL: number, number of the parent, text.
    pub(crate) fn explain(&self, sql: &str) -> Result<Vec<(i64, i64, String)>, WorkError> {
        let rows = || {
            let planning = self.authorizer.begin_planning();
            let mut statement = self.connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
            drop(planning);
            let mut rows = statement.raw_query();
            let mut steps = Vec::new();
            while let Some(row) = rows.next()? {
                steps.push((row.get(0)?, row.get(1)?, row.get(3)?));
            }
            Ok(steps)
        };
        let steps = rows().map_err(|error| self.classify_error(error))?;
        Ok(match &self.policy_views {
            Some(policy_views) => redact_plan(steps, &policy_views.token),
            None => steps,
        })
    }

    pub(crate) fn tables_read(&self) -> BTreeSet<(String, String)> {
        self.authorizer.tables_read()
    }

    /// Classifies an error of a caller's statement: a refusal contains what was refused.
    pub(crate) fn classify_error(&self, error: rusqlite::Error) -> WorkError {
        let names_barrier = |policy_views: &PolicyViews| sqlite_message(&error).contains(&policy_views.token);
        if self.policy_views().is_some_and(names_barrier) {
            return WorkError::PolicyView(error);
        }
        match self.authorizer.last_refusal() {
            Some(subject) if error.sqlite_error_code() != Some(ErrorCode::OperationInterrupted) => {
                WorkError::Unauthorized(subject)
            }
            _ => WorkError::Sqlite(error),
        }
    }
}

/// A handle that can end one piece of work on a connection.
pub(crate) struct WorkCancellation {
    cancellation: CancellationToken,
    /// Its deadline is read repeatedly, since it may be extended.
    job: Option<Arc<Job>>,
    is_stopped: AtomicBool,
    /// Present only while the work has the connection. A later interrupt would end the query of another caller.
    interrupt: Mutex<Option<InterruptHandle>>,
}

impl WorkCancellation {
    /// Work that ends when `job` is cancelled or its deadline passes.
    pub(crate) fn for_job(job: &Arc<Job>) -> Arc<Self> {
        Self::new(job.cancellation(), Some(job.clone()))
    }

    fn new(cancellation: CancellationToken, job: Option<Arc<Job>>) -> Arc<Self> {
        Arc::new(Self { cancellation, job, is_stopped: AtomicBool::new(false), interrupt: Mutex::new(None) })
    }

    /// Work that ends only when it is stopped.
    pub(crate) fn unbounded() -> Arc<Self> {
        Self::new(CancellationToken::new(), None)
    }

    pub(crate) fn token(&self) -> &CancellationToken {
        &self.cancellation
    }

    /// Ends the work at once. SQLite also checks its interrupt flag inside some long instructions.
    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
        if let Some(handle) = self.interrupt.lock().as_ref() {
            handle.interrupt();
        }
    }

    pub(crate) fn must_stop(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
            || self.cancellation.is_cancelled()
            || self.is_overdue()
            || self.job.as_ref().is_some_and(|job| job.is_cancelled())
    }

    fn is_overdue(&self) -> bool {
        self.job.as_ref().is_some_and(|job| Instant::now() >= job.deadline())
    }

    /// Why work that must stop ends. The work may notice the deadline before its job does, which is then cancelled.
    pub(crate) fn stop_error(&self) -> WorkError {
        if self.is_overdue() { WorkError::TimedOut } else { WorkError::Cancelled }
    }

    fn attach(&self, handle: InterruptHandle) {
        *self.interrupt.lock() = Some(handle);
    }

    fn detach(&self) {
        self.interrupt.lock().take();
    }
}

/// Stops the work when the caller that waits for it is dropped.
pub(crate) struct StopOnDrop(pub(crate) Arc<WorkCancellation>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}
