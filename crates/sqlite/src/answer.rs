//! The result of a query: its columns and their types, rows as Arrow batches, and the buffer between the thread that reads rows
//! and the task that consumes them.
//!
//! In SQLite, types belong to values. Only columns of STRICT tables and aliases of the rowid have a guaranteed type.
//! Every other column is a union of SQLite's four types, so that each value keeps its own type.
//!
//! The buffer is not a channel: after a short wait, the consumer takes an incomplete batch while SQLite still computes the
//! next row. The first row of a slow query must not wait for the sixty-fourth.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use arrow::array::{
    ArrayRef, BinaryBuilder, Float64Builder, Int64Builder, RecordBatch, RecordBatchOptions, StringBuilder, UnionArray,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UnionFields, UnionMode};
use arrow::error::ArrowError;
use parking_lot::{Condvar, Mutex, MutexGuard};
use rusqlite::types::ValueRef;
use rusqlite::{Row, Statement};
use tidegate_core::Error;
use tokio::sync::Notify;

use crate::catalog;
use crate::session::{ReadTransaction, WorkCancellation};
use crate::tables::{SqliteOptions, SqliteType, TableKind};
use crate::work_error::WorkError;

const DECLARED_TYPE_KEY: &str = "tidegate.type";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResultColumn {
    name: String,
    declared_type: Option<String>,
    kind: SqliteType,
}

fn data_type(kind: SqliteType) -> DataType {
    match kind {
        SqliteType::Integer => DataType::Int64,
        SqliteType::Real => DataType::Float64,
        SqliteType::Text => DataType::Utf8,
        SqliteType::Blob => DataType::Binary,
        SqliteType::Any => DataType::Union(any_fields(), UnionMode::Dense),
    }
}

/// The members of the union of a column without a certain type. Null is stored as a null blob, so that it sorts last.
fn any_fields() -> UnionFields {
    static FIELDS: LazyLock<UnionFields> = LazyLock::new(|| {
        let members = [
            ("integer", DataType::Int64),
            ("real", DataType::Float64),
            ("text", DataType::Utf8),
            ("blob", DataType::Binary),
        ];
        let fields = members.into_iter().map(|(name, data_type)| Arc::new(Field::new(name, data_type, true)));
        (0_i8..).zip(fields).collect()
    });
    FIELDS.clone()
}

pub(crate) fn describe_columns(
    reading: &ReadTransaction<'_>,
    statement: &Statement<'_>,
    sql: &str,
) -> Result<Vec<ResultColumn>, WorkError> {
    let certain = CertainTypes::from_statement(reading, sql)?;
    let declared: Vec<Option<String>> =
        statement.columns().map(|column| column.decl_type().map(str::to_owned)).collect();
    let mut columns = Vec::with_capacity(declared.len());
    for (origin, declared) in statement.columns_with_metadata().zip(declared) {
        let kind = match (origin.database_name(), origin.table_name(), origin.origin_name()) {
            (Some(schema), Some(table), Some(column)) => certain.column_type(schema, table, column),
            _ => SqliteType::Any,
        };
        columns.push(ResultColumn { name: origin.name().to_owned(), declared_type: declared, kind });
    }
    Ok(columns)
}

pub(crate) fn arrow_schema(columns: &[ResultColumn]) -> SchemaRef {
    let fields = columns.iter().map(|column| {
        // Always nullable: joins produce nulls for columns that have none.
        let field = Field::new(&column.name, data_type(column.kind), true);
        match &column.declared_type {
            Some(declared) => field.with_metadata(HashMap::from([(DECLARED_TYPE_KEY.to_owned(), declared.clone())])),
            None => field,
        }
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// The columns with a certain type, among the tables that a statement reads.
struct CertainTypes {
    kinds: BTreeMap<(String, String, String), SqliteType>,
}

/// The origin name that SQLite reports for `SELECT rowid` if no column has that name.
const ROWID: &str = "rowid";

/// For queries with these keywords, SQLite reports the origin of only one of the combined columns.
const COMPOUND_KEYWORDS: &[&str] = &["union", "intersect", "except", "values"];

impl CertainTypes {
    fn from_statement(reading: &ReadTransaction<'_>, sql: &str) -> Result<Self, WorkError> {
        let mut kinds = BTreeMap::new();
        let text = sql.to_lowercase();
        // The word may also be part of a name or a text. Then only the certainty of a type is lost.
        if COMPOUND_KEYWORDS.iter().any(|word| text.contains(word)) {
            return Ok(Self { kinds });
        }
        for (schema, name) in reading.tables_read() {
            // Policy views pass the values of their table on unchanged.
            if reading.policy_views().is_some_and(|policy_views| policy_views.is_policy_view(&schema, &name)) {
                continue;
            }
            let Some(table) = catalog::lookup_table(reading, &schema, &name)? else { continue };
            if table.kind == TableKind::View {
                // The definition of another view would also have to be checked.
                return Ok(Self { kinds: BTreeMap::new() });
            }
            let columns = catalog::read_columns(reading, &table)?;
            let has_rowid = table.kind == TableKind::Table && !table.is_without_rowid;
            if has_rowid && !columns.iter().any(|column| column.name.eq_ignore_ascii_case(ROWID)) {
                kinds.insert((table.schema.clone(), table.name.clone(), ROWID.to_owned()), SqliteType::Integer);
            }
            for column in columns {
                if let Some(kind) = column.certain_type(&table) {
                    kinds.insert((table.schema.clone(), table.name.clone(), column.name), kind);
                }
            }
        }
        Ok(Self { kinds })
    }

    fn column_type(&self, schema: &str, table: &str, column: &str) -> SqliteType {
        let key = (schema.to_owned(), table.to_owned(), column.to_owned());
        self.kinds.get(&key).copied().unwrap_or(SqliteType::Any)
    }
}

/// Initial capacity of a builder, in values. The first batch has this size.
const INITIAL_CAPACITY: usize = 64;

struct SqliteBatchBuilder {
    schema: SchemaRef,
    columns: Vec<(String, ColumnBuilder)>,
    rows: usize,
    bytes: usize,
}

impl SqliteBatchBuilder {
    fn new(columns: &[ResultColumn], schema: SchemaRef) -> Self {
        let columns = schema.fields().iter().zip(columns);
        let columns = columns.map(|(field, column)| (field.name().clone(), ColumnBuilder::new(column.kind))).collect();
        Self { schema, columns, rows: 0, bytes: 0 }
    }

    fn rows(&self) -> usize {
        self.rows
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    /// Appends a row. After an error, only the rows before it can be taken.
    fn push(&mut self, row: &Row<'_>, row_bytes_max: usize) -> Result<(), WorkError> {
        let mut row_bytes = 0;
        for (index, (name, values)) in self.columns.iter_mut().enumerate() {
            let value = row.get_ref(index)?;
            row_bytes += value_bytes(value);
            if row_bytes > row_bytes_max {
                return Err(WorkError::RowTooLarge(row_bytes_max));
            }
            values.push(value).map_err(|error| error(name.clone()))?;
        }
        self.rows += 1;
        self.bytes += row_bytes;
        Ok(())
    }

    fn take(&mut self) -> Result<RecordBatch, ArrowError> {
        let rows = self.rows;
        // A row with an error may have values in its first columns.
        let arrays = self.columns.iter_mut().map(|(_, values)| Ok(values.take()?.slice(0, rows)));
        let arrays = arrays.collect::<Result<Vec<_>, ArrowError>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        (self.rows, self.bytes) = (0, 0);
        RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options)
    }
}

fn value_bytes(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => 8,
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len() + 8,
    }
}

/// Why a value cannot be in a column, once the name of the column is known.
type ColumnError = fn(String) -> WorkError;

enum ColumnBuilder {
    Integer(Int64Builder),
    Real(Float64Builder),
    Text(StringBuilder),
    Blob(BinaryBuilder),
    Any(Box<AnyBuilder>),
}

impl ColumnBuilder {
    fn new(kind: SqliteType) -> Self {
        match kind {
            SqliteType::Integer => Self::Integer(Int64Builder::with_capacity(INITIAL_CAPACITY)),
            SqliteType::Real => Self::Real(Float64Builder::with_capacity(INITIAL_CAPACITY)),
            SqliteType::Text => Self::Text(StringBuilder::new()),
            SqliteType::Blob => Self::Blob(BinaryBuilder::new()),
            SqliteType::Any => Self::Any(Box::new(AnyBuilder::new())),
        }
    }

    fn push(&mut self, value: ValueRef<'_>) -> Result<(), ColumnError> {
        match (self, value) {
            (Self::Integer(values), ValueRef::Integer(value)) => values.append_value(value),
            (Self::Integer(values), ValueRef::Null) => values.append_null(),
            (Self::Real(values), ValueRef::Real(value)) => values.append_value(value),
            (Self::Real(values), ValueRef::Null) => values.append_null(),
            (Self::Text(values), ValueRef::Text(bytes)) => {
                values.append_value(std::str::from_utf8(bytes).map_err(|_| WorkError::NotUtf8 as ColumnError)?);
            }
            (Self::Text(values), ValueRef::Null) => values.append_null(),
            (Self::Blob(values), ValueRef::Blob(bytes)) => values.append_value(bytes),
            (Self::Blob(values), ValueRef::Null) => values.append_null(),
            (Self::Any(values), value) => values.push(value)?,
            _ => return Err(WorkError::TypeMismatch),
        }
        Ok(())
    }

    fn take(&mut self) -> Result<ArrayRef, ArrowError> {
        Ok(match self {
            Self::Integer(values) => Arc::new(values.finish()),
            Self::Real(values) => Arc::new(values.finish()),
            Self::Text(values) => Arc::new(values.finish()),
            Self::Blob(values) => Arc::new(values.finish()),
            Self::Any(values) => Arc::new(values.take()?),
        })
    }
}

struct AnyBuilder {
    kinds: Vec<i8>,
    offsets: Vec<i32>,
    /// In the order of [`any_fields`].
    members: [ColumnBuilder; 4],
    counts: [i32; 4],
}

impl AnyBuilder {
    fn new() -> Self {
        let kinds = [SqliteType::Integer, SqliteType::Real, SqliteType::Text, SqliteType::Blob];
        Self { kinds: Vec::new(), offsets: Vec::new(), members: kinds.map(ColumnBuilder::new), counts: [0; 4] }
    }

    fn push(&mut self, value: ValueRef<'_>) -> Result<(), ColumnError> {
        let kind = match value {
            ValueRef::Integer(_) => 0,
            ValueRef::Real(_) => 1,
            ValueRef::Text(_) => 2,
            ValueRef::Blob(_) | ValueRef::Null => 3,
        };
        self.members[kind].push(value)?;
        self.kinds.push(kind as i8);
        self.offsets.push(self.counts[kind]);
        self.counts[kind] += 1;
        Ok(())
    }

    fn take(&mut self) -> Result<UnionArray, ArrowError> {
        let children = self.members.iter_mut().map(ColumnBuilder::take).collect::<Result<_, _>>()?;
        self.counts = [0; 4];
        let (kinds, offsets) = (std::mem::take(&mut self.kinds), std::mem::take(&mut self.offsets));
        UnionArray::try_new(any_fields(), kinds.into(), Some(offsets.into()), children)
    }
}

const BUFFERED_BATCHES_MAX: usize = 2;
/// The number of rows of the first batch. Each later batch has twice as many rows as the one before.
const FIRST_BATCH_ROWS: usize = 64;
const LINGER: Duration = Duration::from_millis(50);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// A row may have the size of this many values of the maximum size.
const ROW_VALUES_MAX: usize = 4;

pub(crate) struct RowBuffer {
    state: Mutex<BufferState>,
    room_available: Condvar,
    rows_available: Notify,
    batch_rows: usize,
    batch_bytes: usize,
    row_bytes_max: usize,
    stall_timeout: Duration,
}

struct BufferState {
    pending_batch: SqliteBatchBuilder,
    first_row_at: Option<Instant>,
    target_rows: usize,
    ready: VecDeque<RecordBatch>,
    /// How the rows ended, until the consumer takes it.
    end: Option<Result<(), Error>>,
    is_abandoned: bool,
}

impl RowBuffer {
    pub(crate) fn new(columns: &[ResultColumn], schema: SchemaRef, options: &SqliteOptions) -> Arc<Self> {
        let batch_rows = options.batch_rows.max(1);
        let state = BufferState {
            pending_batch: SqliteBatchBuilder::new(columns, schema),
            first_row_at: None,
            target_rows: FIRST_BATCH_ROWS.min(batch_rows),
            ready: VecDeque::new(),
            end: None,
            is_abandoned: false,
        };
        Arc::new(Self {
            state: Mutex::new(state),
            room_available: Condvar::new(),
            rows_available: Notify::new(),
            batch_rows,
            batch_bytes: options.batch_bytes,
            row_bytes_max: options.value_bytes_max.saturating_mul(ROW_VALUES_MAX),
            stall_timeout: options.stall_timeout,
        })
    }

    fn wait_for_room(
        &self,
        state: &mut MutexGuard<'_, BufferState>,
        cancellation: &WorkCancellation,
    ) -> Result<(), WorkError> {
        let since = Instant::now();
        while state.ready.len() >= BUFFERED_BATCHES_MAX {
            if state.is_abandoned {
                return Err(WorkError::Cancelled);
            }
            if cancellation.must_stop() {
                return Err(cancellation.stop_error());
            }
            if since.elapsed() >= self.stall_timeout {
                return Err(WorkError::Stalled);
            }
            self.room_available.wait_for(state, POLL_INTERVAL);
        }
        Ok(())
    }

    /// Finishes the pending batch; the next one may have more rows.
    fn finish_batch(&self, state: &mut BufferState) -> Result<RecordBatch, WorkError> {
        state.first_row_at = None;
        state.target_rows = (state.target_rows * 2).min(self.batch_rows);
        state
            .pending_batch
            .take()
            .map_err(|error| WorkError::ClientError(Error::internal(format!("a batch is malformed: {error}"))))
    }

    fn end(&self, end: Result<(), Error>) {
        self.state.lock().end.get_or_insert(end);
        self.rows_available.notify_one();
    }

    /// The next batch, the end, or the time of the next attempt.
    fn poll_next(&self) -> PollOutcome {
        let mut state = self.state.lock();
        if let Some(batch) = state.ready.pop_front() {
            self.room_available.notify_one();
            return PollOutcome::Batch(Ok(batch));
        }
        let has_ended = state.end.is_some();
        match state.first_row_at {
            Some(since) if has_ended || since.elapsed() >= LINGER => {
                PollOutcome::Batch(self.finish_batch(&mut state).map_err(|failure| failure.into_error("")))
            }
            Some(since) => PollOutcome::Wait(Some(since + LINGER)),
            None => match state.end.take() {
                None => PollOutcome::Wait(None),
                Some(end) => PollOutcome::End(end),
            },
        }
    }
}

enum PollOutcome {
    Batch(Result<RecordBatch, Error>),
    End(Result<(), Error>),
    /// Nothing is available before that time, unless the consumer is notified.
    Wait(Option<Instant>),
}

/// The producing end, held by the reading thread.
pub(crate) struct RowSender {
    pub(crate) buffer: Arc<RowBuffer>,
}

impl RowSender {
    /// Appends a row. Blocks while the buffer is full.
    pub(crate) fn push_row(&self, row: &Row<'_>, cancellation: &WorkCancellation) -> Result<(), WorkError> {
        let buffer = &*self.buffer;
        let mut state = buffer.state.lock();
        state.pending_batch.push(row, buffer.row_bytes_max)?;
        if state.first_row_at.is_none() {
            state.first_row_at = Some(Instant::now());
            buffer.rows_available.notify_one();
        }
        if state.pending_batch.rows() >= state.target_rows || state.pending_batch.bytes() >= buffer.batch_bytes {
            buffer.wait_for_room(&mut state, cancellation)?;
            // The consumer may have taken the rows in the meantime.
            if state.pending_batch.rows() > 0 {
                let batch = buffer.finish_batch(&mut state)?;
                state.ready.push_back(batch);
                buffer.rows_available.notify_one();
            }
        }
        Ok(())
    }

    pub(crate) fn end(self, end: Result<(), Error>) {
        self.buffer.end(end);
    }
}

impl Drop for RowSender {
    /// Without a recorded end, the work did not run, or it panicked; after one, the consumer reads no other.
    fn drop(&mut self) {
        self.buffer.end(Err(Error::internal("a SQLite query ended without a result")));
    }
}

/// The consuming end. Dropping it stops the query.
pub(crate) struct BatchReader {
    buffer: Arc<RowBuffer>,
    work: Arc<WorkCancellation>,
    has_ended: bool,
}

impl BatchReader {
    /// Creates the consuming end of `buffer`; `work` is the work that reads the rows.
    pub(crate) fn new(buffer: Arc<RowBuffer>, work: Arc<WorkCancellation>) -> Self {
        Self { buffer, work, has_ended: false }
    }

    pub(crate) async fn next(&mut self) -> Option<Result<RecordBatch, Error>> {
        if self.has_ended {
            return None;
        }
        let cancellation = self.work.token().clone();
        loop {
            if cancellation.is_cancelled() {
                self.has_ended = true;
                self.work.stop();
                return Some(Err(Error::cancelled()));
            }
            let next_attempt = match self.buffer.poll_next() {
                PollOutcome::Batch(batch) => {
                    self.has_ended = batch.is_err();
                    return Some(batch);
                }
                PollOutcome::End(end) => {
                    self.has_ended = true;
                    return end.err().map(Err);
                }
                PollOutcome::Wait(next_attempt) => next_attempt,
            };
            let next_attempt = async {
                match next_attempt {
                    Some(moment) => tokio::time::sleep_until(moment.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = cancellation.cancelled() => {}
                () = self.buffer.rows_available.notified() => {}
                () = next_attempt => {}
            }
        }
    }
}

impl Drop for BatchReader {
    fn drop(&mut self) {
        self.buffer.state.lock().is_abandoned = true;
        self.buffer.room_available.notify_one();
        self.work.stop();
    }
}
