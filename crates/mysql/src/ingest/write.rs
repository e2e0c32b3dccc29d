//! A write: the rows of its tables, in one transaction. A task sends them. The keys of writes are stored, so that a repeated write
//! stores nothing.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use mysql_async::prelude::Queryable;
use mysql_async::{DriverError, Error as MySqlError, Params, Row, Value};
use parking_lot::Mutex;
use tidegate_core::{Error, ErrorKind, HmacSigner};
use tidegate_query::{
    RowWriter, StepWriter, StoredColumn, TargetColumn, WritePlan, WriteReceipt, WriteStep, WriteSteps,
};
use tokio::time::timeout;

use super::value::{ColumnValues, is_fitting};
use super::{DIALECT, TargetTable};
use crate::error::{NO_SUCH_TABLE, statement_error};
use crate::pool::{END_TIMEOUT, Lease, Pool};
use crate::session::value_text;

/// How long a write waits for its next rows. It holds locks and a connection.
const ROWS_TIMEOUT: Duration = Duration::from_secs(300);
/// The maximum number of rows of a statement, a power of two.
const ROWS_MAX: usize = 256;
/// The maximum number of placeholders of a statement.
///
/// [MySQL, Prepared Statements](https://dev.mysql.com/doc/refman/8.4/en/sql-prepared-statements.html)
const PLACEHOLDERS_MAX: usize = 65_535;
/// The size of values beyond which a statement has one row only.
const STATEMENT_BYTES_MAX: usize = 1 << 20;
/// How long a key is remembered: 24 hours.
const KEY_AGE_MAX_MICROSECONDS: u64 = 24 * 3600 * 1_000_000;

const CREATE_KEYS_SQL: &str = "CREATE TABLE IF NOT EXISTS tidegate_ingest_keys (id CHAR(32) CHARACTER SET ascii PRIMARY KEY, \
                               sequence BIGINT UNSIGNED NOT NULL, row_counts TEXT NOT NULL, at BIGINT UNSIGNED NOT NULL, \
                               KEY (at)) ENGINE = InnoDB";
/// Reads without locks, and removes by the primary key: a range of `at` would wait for the keys of running writes. The key of
/// this write is among the first.
const FIND_OLD_KEYS_SQL: &str = "SELECT id FROM tidegate_ingest_keys WHERE at <= ? ORDER BY id <> ? LIMIT 100";
const REMOVE_KEY_SQL: &str = "DELETE FROM tidegate_ingest_keys WHERE id = ?";
const FIND_KEY_SQL: &str = "SELECT sequence, row_counts FROM tidegate_ingest_keys WHERE id = ? FOR UPDATE";
const TAKE_KEY_SQL: &str = "INSERT INTO tidegate_ingest_keys (id, sequence, row_counts, at) VALUES (?, 0, '', ?)";
const STORE_KEY_SQL: &str = "UPDATE tidegate_ingest_keys SET sequence = ?, row_counts = ? WHERE id = ?";
/// A row has the key of another one.
const DUPLICATE_KEY: u16 = 1062;
/// The account has no privilege for a table, which may be missing.
const NO_RIGHT_FOR_TABLE: u16 = 1142;

/// A table of a write, and how the columns of its batches are stored.
pub(super) struct TablePlan {
    table: TargetTable,
    plan: WritePlan,
    rows: u64,
}

impl TablePlan {
    /// Batches with the columns of `schema` for `table`, which is declared as `name`.
    pub(super) fn new(name: &str, table: TargetTable, schema: &Schema) -> Result<Self, Error> {
        let plan = WritePlan::new(name, &table.columns, schema, |data_type, column| {
            is_fitting(data_type, column.field.data_type())
        })?;
        Ok(Self { table, plan, rows: 0 })
    }

    /// The statement that inserts `rows` rows.
    fn insert_sql(&self, stored: &[StoredColumn], rows: usize) -> String {
        let columns = stored.iter().filter_map(|stored| self.table.columns.get(stored.target));
        let names: Vec<String> = columns.map(|column| DIALECT.quote_identifier(column.field.name())).collect();
        let marks = format!("({})", vec!["?"; names.len()].join(", "));
        format!("INSERT INTO {} ({}) VALUES {}", self.table.sql_name, names.join(", "), vec![marks; rows].join(", "))
    }

    /// The values of `batch`, row by row, in the order of `stored`. The error has its row.
    fn values(&self, batch: &RecordBatch, stored: &[StoredColumn], is_first: bool) -> Result<Vec<Vec<Value>>, Error> {
        let mut columns = Vec::with_capacity(stored.len());
        for stored in stored {
            let Some(column) = self.table.columns.get(stored.target) else { continue };
            let array = batch.column(stored.position);
            columns.push((column, ColumnValues::new(array, column.field.data_type(), &column.form)?));
        }
        let value = |row: usize, (column, values): &(&TargetColumn<_>, ColumnValues<'_>)| {
            let value = values.value(row).and_then(|value| match value {
                Value::NULL if !column.takes_nulls => Err("the column takes no null".to_owned()),
                value => Ok(value),
            });
            value.map_err(|reason| {
                let message = format!("{reason} (column {})", column.field.name());
                in_row(Error::new(ErrorKind::InvalidArguments, message), is_first.then_some(self.rows + row as u64))
            })
        };
        let row_values = |row: usize| columns.iter().map(|column| value(row, column)).collect::<Result<Vec<_>, _>>();
        (0..batch.num_rows()).map(row_values).collect()
    }
}

/// A write in its transaction. Dropping it rolls back, in the background.
pub(super) struct Write {
    database: Arc<str>,
    lease: Lease,
    plans: Vec<TablePlan>,
    /// The stored form of the key.
    key: Option<String>,
    last_sequence: Arc<Mutex<u64>>,
}

impl Write {
    pub(super) fn new(database: Arc<str>, lease: Lease, plans: Vec<TablePlan>, last_sequence: Arc<Mutex<u64>>) -> Self {
        Self { database, lease, plans, key: None, last_sequence }
    }

    /// Begins the transaction, and deletes the rows of the first table if the write `replaces` them. Returns the receipt of an
    /// earlier write with the same key, if there was one.
    pub(super) async fn begin(
        mut self,
        key: Option<&str>,
        replaces: bool,
    ) -> Result<(Self, Option<WriteReceipt>), Error> {
        self.lease.mark_busy();
        let key = key.map(stored_key);
        if let Some(key) = &key {
            self.prepare_keys(key).await?;
        }
        self.run("START TRANSACTION", Vec::new()).await?;
        if let Some(key) = key {
            // A search for a key that is not there would lock those next to it, which other writes may take.
            let taken = self.execute(TAKE_KEY_SQL, vec![Value::from(key.as_str()), Value::UInt(now())]).await;
            match taken {
                Ok(()) => self.key = Some(key),
                Err(error) if is_duplicate_key(&error) => {
                    let receipt = self.find_key(&key).await?.ok_or_else(|| self.key_error(&error))?;
                    return Ok((self, Some(receipt)));
                }
                Err(error) => return Err(self.key_error(&error)),
            }
        }
        if replaces && let Some(plan) = self.plans.first() {
            let sql = format!("DELETE FROM {}", plan.table.sql_name);
            self.run(&sql, Vec::new()).await?;
        }
        Ok((self, None))
    }

    async fn execute(&mut self, sql: &str, values: Vec<Value>) -> Result<(), MySqlError> {
        match self.lease.session() {
            // MySQL does not prepare statements about transactions.
            Ok(session) if values.is_empty() => session.connection.query_drop(sql).await,
            Ok(session) => session.connection.exec_drop(sql, Params::Positional(values)).await,
            Err(_) => Err(DriverError::ConnectionClosed.into()),
        }
    }

    async fn run(&mut self, sql: &str, values: Vec<Value>) -> Result<(), Error> {
        let ran = self.execute(sql, values).await;
        ran.map_err(|error| write_error(&error, &self.database))
    }

    /// Creates the table of keys if there is none, and removes old keys, before the transaction.
    async fn prepare_keys(&mut self, key: &str) -> Result<(), Error> {
        match self.remove_old_keys(key).await {
            Err(MySqlError::Server(server)) if matches!(server.code, NO_SUCH_TABLE | NO_RIGHT_FOR_TABLE) => {
                let created = self.execute(CREATE_KEYS_SQL, Vec::new()).await;
                created.map_err(|error| {
                    write_error(&error, &self.database).with_hint(
                        "For keys, the account of the node needs SELECT, INSERT, UPDATE and DELETE on the table \
                         tidegate_ingest_keys, and CREATE if there is none. Or send the rows without a key.",
                    )
                })
            }
            removed => removed.map_err(|error| self.key_error(&error)),
        }
    }

    async fn remove_old_keys(&mut self, key: &str) -> Result<(), MySqlError> {
        let oldest = now().saturating_sub(KEY_AGE_MAX_MICROSECONDS);
        let Ok(session) = self.lease.session() else { return Err(DriverError::ConnectionClosed.into()) };
        let old: Vec<String> = session.connection.exec(FIND_OLD_KEYS_SQL, (oldest, key)).await?;
        for id in old {
            session.connection.exec_drop(REMOVE_KEY_SQL, (id,)).await?;
        }
        Ok(())
    }

    async fn find_key(&mut self, key: &str) -> Result<Option<WriteReceipt>, Error> {
        let row: Result<Option<Row>, MySqlError> =
            self.lease.session()?.connection.exec_first(FIND_KEY_SQL, (key,)).await;
        let Some(row) = row.map_err(|error| self.key_error(&error))? else { return Ok(None) };
        let damaged = || Error::internal("a stored receipt is damaged");
        let sequence = value_text(&row, 0).and_then(|text| text.parse().ok()).ok_or_else(damaged)?;
        let counts = value_text(&row, 1).unwrap_or_default();
        let rows: Result<Vec<u64>, _> = counts.split_terminator(',').map(str::parse).collect();
        Ok(Some(WriteReceipt { sequence, rows: rows.map_err(|_| damaged())? }))
    }

    /// The error of a statement about keys. Another write with the same key holds its row.
    fn key_error(&self, error: &MySqlError) -> Error {
        match error {
            MySqlError::Server(server) if matches!(server.code, DUPLICATE_KEY | 1205 | 1213) => {
                Error::new(ErrorKind::Conflict, "a write with the same key is running")
                    .with_hint("Wait for its end, then send the rows again with the same key.")
            }
            other => write_error(other, &self.database),
        }
    }

    /// Inserts the rows of `batch` into the table at this position.
    async fn insert(&mut self, table: usize, batch: &RecordBatch) -> Result<(), Error> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let plan = self.plans.get_mut(table).ok_or_else(|| Error::internal("the write has no such table"))?;
        let stored = plan.plan.stored_columns(batch)?;
        if stored.is_empty() {
            let message = format!("the rows for the table {:?} have no value in any column", plan.plan.table());
            return Err(Error::new(ErrorKind::InvalidArguments, message));
        }
        let rows = plan.values(batch, &stored, table == 0)?;
        let rows_max = ROWS_MAX.min(PLACEHOLDERS_MAX / stored.len()).max(1);
        let mut left = rows.as_slice();
        while !left.is_empty() {
            let count = statement_rows(left, rows_max);
            let (now, later) = left.split_at(count);
            self.insert_rows(table, &stored, now).await?;
            left = later;
        }
        Ok(())
    }

    /// Inserts `rows` with one statement. If it fails because of a row, the rows are tried one by one: the server does not say
    /// which it was. The write is over then.
    async fn insert_rows(&mut self, table: usize, stored: &[StoredColumn], rows: &[Vec<Value>]) -> Result<(), Error> {
        let error = match self.insert_statement(table, stored, rows).await? {
            Ok(()) => return Ok(()),
            Err(error) => write_error(&error, &self.database),
        };
        if table != 0 || !matches!(error.kind(), ErrorKind::InvalidArguments | ErrorKind::TooLarge) {
            return Err(error);
        }
        for row in rows {
            let before = self.plans.get(table).map(|plan| plan.rows);
            if let Err(error) = self.insert_statement(table, stored, std::slice::from_ref(row)).await? {
                return Err(in_row(write_error(&error, &self.database), before));
            }
        }
        Err(error)
    }

    async fn insert_statement(
        &mut self,
        table: usize,
        stored: &[StoredColumn],
        rows: &[Vec<Value>],
    ) -> Result<Result<(), MySqlError>, Error> {
        let plan = self.plans.get(table).ok_or_else(|| Error::internal("the write has no such table"))?;
        let sql = plan.insert_sql(stored, rows.len());
        if let Err(error) = self.execute(&sql, rows.concat()).await {
            return Ok(Err(error));
        }
        let (affected, expected) = (self.lease.session()?.connection.affected_rows(), rows.len() as u64);
        let plan = self.plans.get_mut(table).ok_or_else(|| Error::internal("the write has no such table"))?;
        if affected != expected {
            let name = plan.plan.table();
            let message = format!("the server stored {affected} of {expected} rows of {name:?}, so nothing was stored");
            return Err(Error::new(ErrorKind::InvalidArguments, message));
        }
        plan.rows += expected;
        Ok(Ok(()))
    }

    /// Commits the transaction.
    async fn commit(&mut self) -> Result<WriteReceipt, Error> {
        let receipt = WriteReceipt {
            sequence: next_sequence(&self.last_sequence),
            rows: self.plans.iter().map(|plan| plan.rows).collect(),
        };
        if let Some(key) = self.key.clone() {
            let counts: Vec<String> = receipt.rows.iter().map(u64::to_string).collect();
            let values = vec![Value::UInt(receipt.sequence), Value::from(counts.join(",")), Value::from(key)];
            self.run(STORE_KEY_SQL, values).await?;
        }
        let committed = self.execute("COMMIT", Vec::new()).await;
        committed.map_err(|error| {
            let lost = statement_error(&error, &self.database);
            match error {
                MySqlError::Server(_) => lost,
                _ => lost.with_hint("It is not known whether the rows were stored. Repeat the write with its key."),
            }
        })?;
        self.lease.mark_idle();
        Ok(receipt)
    }

    /// Rolls back, so that the connection can be used again. If that fails, the lease discards the connection.
    pub(super) async fn roll_back(mut self) {
        let _ = timeout(END_TIMEOUT, self.lease.end()).await;
    }
}

/// The number of rows at the start of `rows` for one statement: a power of two, so that few statements are prepared.
fn statement_rows(rows: &[Vec<Value>], rows_max: usize) -> usize {
    let mut bytes = 0;
    let fitting = rows.iter().take(rows_max).take_while(|row| {
        bytes += row.iter().map(value_bytes).sum::<usize>();
        bytes <= STATEMENT_BYTES_MAX
    });
    let count = fitting.count().max(1);
    1 << count.ilog2()
}

fn value_bytes(value: &Value) -> usize {
    match value {
        Value::Bytes(bytes) => bytes.len() + 9,
        _ => 12,
    }
}

fn is_duplicate_key(error: &MySqlError) -> bool {
    matches!(error, MySqlError::Server(server) if server.code == DUPLICATE_KEY)
}

/// The error with its row, if it is about a row.
fn in_row(error: Error, row: Option<u64>) -> Error {
    match (error.kind(), row) {
        (ErrorKind::InvalidArguments | ErrorKind::TooLarge, Some(row)) => error.with_refused_row(row),
        _ => error,
    }
}

/// The error of a statement that writes. Values that do not fit have codes of the general class.
fn write_error(error: &MySqlError, database: &str) -> Error {
    match error {
        // Nulls, values without a default, cut and converted values, checks, triggers.
        MySqlError::Server(server)
            if matches!(server.code, 1048 | 1264 | 1265 | 1292 | 1364 | 1366 | 1367 | 1406 | 1644 | 3819 | 4025) =>
        {
            Error::new(ErrorKind::InvalidArguments, server.message.clone())
                .with_detail(format!("database {database}: {server}"))
        }
        other => statement_error(other, database),
    }
}

/// The time in microseconds since 1970.
fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_micros()).unwrap_or(u64::MAX)
}

/// The time, or more if the last write was in the same microsecond.
fn next_sequence(last: &Mutex<u64>) -> u64 {
    let mut last = last.lock();
    *last = now().max(last.saturating_add(1));
    *last
}

/// The form in which `key` is stored: callers who may read the table do not learn the keys of others.
fn stored_key(key: &str) -> String {
    let digest = HmacSigner::new(b"tidegate_ingest_keys").sign("the key of a write", &[key.as_bytes()]);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Starts the task of `write`. Dropping the writer ends the task, and rolls back.
pub(super) fn spawn(write: Write, pool: &Pool) -> Box<dyn RowWriter> {
    let (writer, steps, mut finished) = StepWriter::new(ROWS_TIMEOUT, ());
    let background_tasks = pool.background_tasks();
    let closing = background_tasks.closing().clone();
    background_tasks.spawn(async move {
        let mut write = write;
        let outcome = tokio::select! {
            biased;
            () = finished.closed() => Ok(None),
            () = closing.cancelled() => Err(Error::new(ErrorKind::Unavailable, "the database is being closed")),
            outcome = run(&mut write, steps) => outcome.map(Some),
        };
        // The connection returns before the outcome.
        match outcome {
            Ok(Some(_)) => drop(write),
            _ => write.roll_back().await,
        }
        if let Some(outcome) = outcome.transpose() {
            // Nobody waits if the writer was dropped.
            let _ = finished.send(outcome);
        }
    });
    Box::new(writer)
}

/// Writes until the commit.
async fn run(write: &mut Write, mut steps: WriteSteps) -> Result<WriteReceipt, Error> {
    loop {
        match steps.next().await? {
            Some(WriteStep::Rows(table, batch)) => write.insert(table, &batch).await?,
            Some(WriteStep::Commit) => return write.commit().await,
            None => return Err(Error::new(ErrorKind::Cancelled, "the write was abandoned")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_have_powers_of_two_of_rows() {
        let rows = |count: usize, bytes: usize| vec![vec![Value::Bytes(vec![0; bytes])]; count];
        assert_eq!(statement_rows(&rows(1_000, 1), 256), 256);
        assert_eq!(statement_rows(&rows(100, 1), 256), 64);
        assert_eq!(statement_rows(&rows(100, 1), 3), 2);
        assert_eq!(statement_rows(&rows(8, 400_000), 256), 2);
        assert_eq!(statement_rows(&rows(8, 4_000_000), 256), 1);
    }
}
