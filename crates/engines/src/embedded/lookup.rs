//! Lookups in small tables, answered from rows in memory.
//!
//! DataFusion needs about a millisecond to plan a statement and to open its files, whatever the statement. A lookup in
//! a small table needs neither: its rows stay in memory while its files are unchanged, which each statement verifies.
//! The tables that were used last are kept.

use std::num::NonZeroUsize;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{AsArray as _, BooleanArray, RecordBatch};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::arrow::compute::{and, concat_batches, filter};
use datafusion::arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::common::{DataFusionError, ScalarValue};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr_common::datum::apply_cmp;
use datafusion::physical_plan::execute_stream;
use futures::TryStreamExt;
use lru::LruCache;
use parking_lot::Mutex;
use tidegate_core::{Error, ErrorKind};
use tidegate_query::{Plan, QueryRows, batch_bytes};
use tidegate_runtime::Job;
use tidegate_sql::{Lookup, LookupCondition, LookupOutput, Parameter, Statement};

use super::embedded_database::is_settled;
use super::engine::WorkerPool;
use super::files::{FileTable, TableFile};
use super::plan::{SessionFactory, SnapshotTables, to_core_error, with_cancellation};
use super::query_cancellation::QueryCancellation;
use super::security_barrier::comparison_operator;

/// A plan of `statement`, if it is a lookup in a small table that is not restricted. `None` for all others, and if the
/// table cannot be read: DataFusion has the right error then.
pub(super) async fn plan_lookup(
    statement: &Statement,
    tables: &SnapshotTables,
    sessions: &Arc<SessionFactory>,
    pool: &WorkerPool,
    small_tables: &SmallTables,
    cancellation: &QueryCancellation,
) -> Option<LookupPlan> {
    let lookup = statement.lookup()?;
    let table = readable_table(&lookup, tables)?;
    let rows = match small_tables.rows(table) {
        Some(known) => known?,
        None => {
            let reading = read(table.clone(), tables.clone(), sessions.clone(), cancellation.clone());
            let rows = match pool.run(reading).await {
                Ok(rows) => rows,
                // The next call may succeed: it has memory and time of its own.
                Err(error) if ends_one_call(error.kind()) => return None,
                // What cannot be read is not read again for each lookup: DataFusion reports it.
                Err(_) => None,
            };
            small_tables.insert(table.clone(), rows.clone());
            rows?
        }
    };
    LookupPlan::new(&lookup, &table.name, &rows)
}

/// Whether an error comes from the limits of a call, and not from the table.
fn ends_one_call(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Cancelled | ErrorKind::TimedOut | ErrorKind::TooLarge | ErrorKind::Unavailable)
}

/// The table that the statement names exactly, if the principal may read all of it.
fn readable_table<'a>(lookup: &Lookup<'_>, tables: &'a SnapshotTables) -> Option<&'a Arc<FileTable>> {
    let (name, table) = tables.snapshot.find(lookup.table)?;
    let is_whole = name == lookup.table && !tables.principal_policies.is_restricted(&tables.snapshot, name);
    table.as_ref().ok().filter(|_| is_whole)
}

/// A lookup with its result. It was cheaper to compute than a plan would be.
#[derive(Debug)]
pub(super) struct LookupPlan {
    result: RecordBatch,
    table: String,
    table_rows: usize,
}

impl LookupPlan {
    /// Looks up in `rows`, all rows of the table called `table`. `None` if a column does not exist or if a comparison
    /// needs a conversion.
    fn new(lookup: &Lookup<'_>, table: &str, rows: &RecordBatch) -> Option<Self> {
        let (positions, schema) = output_columns(lookup, rows.schema_ref())?;
        let matches = matching_rows(&lookup.conditions, rows)?;
        let columns = positions.iter().map(|position| filter(rows.column(*position), &matches));
        // A lookup has at least one column.
        let found = RecordBatch::try_new(schema, columns.collect::<Result<_, _>>().ok()?).ok()?;
        let offset = lookup.offset.min(found.num_rows());
        let length = lookup.limit.unwrap_or(usize::MAX).min(found.num_rows() - offset);
        let result = found.slice(offset, length);
        Some(Self { result, table: table.to_owned(), table_rows: rows.num_rows() })
    }
}

/// The positions of the columns of the result, and its schema.
fn output_columns(lookup: &Lookup<'_>, schema: &SchemaRef) -> Option<(Vec<usize>, SchemaRef)> {
    let (mut positions, mut fields) = (Vec::new(), Vec::new());
    for output in &lookup.outputs {
        match output {
            LookupOutput::All => {
                positions.extend(0..schema.fields().len());
                fields.extend(schema.fields().iter().cloned());
            }
            LookupOutput::Column { name, alias } => {
                let (position, field) = schema.fields().find(name)?;
                positions.push(position);
                fields.push(match alias {
                    Some(alias) => Arc::new(Field::clone(field).with_name(*alias)),
                    None => field.clone(),
                });
            }
        }
    }
    let is_repeated = |(at, field): (usize, &Arc<Field>)| fields[..at].iter().any(|other| other.name() == field.name());
    if fields.iter().enumerate().any(is_repeated) {
        return None;
    }
    let schema = Schema::new_with_metadata(Fields::from(fields), schema.metadata().clone());
    Some((positions, Arc::new(schema)))
}

/// Whether each row meets all `conditions`. `None` if a column does not exist or if a comparison needs a conversion.
fn matching_rows(conditions: &[LookupCondition<'_>], rows: &RecordBatch) -> Option<BooleanArray> {
    let mut all = BooleanArray::new(BooleanBuffer::new_set(rows.num_rows()), None);
    for condition in conditions {
        let (position, field) = rows.schema_ref().fields().find(condition.column)?;
        let column = ColumnarValue::Array(rows.column(position).clone());
        let value = ColumnarValue::Scalar(comparable_value(field, &condition.value)?);
        let matches = apply_cmp(comparison_operator(condition.comparator), &column, &value).ok()?;
        let matches = matches.into_array(rows.num_rows()).ok()?;
        // NULL in one of them leaves the row out, whatever the other is.
        all = and(&all, matches.as_boolean_opt()?).ok()?;
    }
    Some(all)
}

/// `value` with the type of the column. `None` if PostgreSQL would convert the column, or if the type has
/// rules of its own.
fn comparable_value(field: &Field, value: &Parameter) -> Option<ScalarValue> {
    use DataType::{Boolean, Int8, Int16, Int32, Int64, LargeUtf8, UInt8, UInt16, UInt32, Utf8, Utf8View};
    let scalar = match (field.data_type(), value) {
        (Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32, Parameter::Integer(value)) => {
            ScalarValue::Int64(Some(*value))
        }
        (Utf8 | LargeUtf8 | Utf8View, Parameter::Text(text)) => ScalarValue::Utf8(Some(text.clone())),
        (Boolean, Parameter::Boolean(value)) => ScalarValue::Boolean(Some(*value)),
        _ => return None,
    };
    scalar.cast_to(field.data_type()).ok().filter(|_| field.metadata().is_empty())
}

#[async_trait]
impl Plan for LookupPlan {
    fn schema(&self) -> SchemaRef {
        self.result.schema()
    }

    fn estimated_rows(&self) -> Option<u64> {
        Some(self.result.num_rows() as u64)
    }

    fn estimated_bytes(&self) -> Option<u64> {
        Some(0)
    }

    async fn explain(&self) -> Result<String, Error> {
        let (table, rows) = (&self.table, self.table_rows);
        Ok(format!("Lookup: compares the columns of all {rows} rows of {table}, which are in memory"))
    }

    async fn run(self: Box<Self>, _: &Arc<Job>) -> Result<QueryRows, Error> {
        Ok(QueryRows::from_batch(self.result))
    }
}

/// Maximum number of bytes of the files of a small table, which may be compressed.
const FILE_BYTES_MAX: u64 = 256 << 10;
const FILES_MAX: usize = 16;
/// Maximum number of bytes of its rows in memory.
const TABLE_BYTES_MAX: usize = 1 << 20;
/// Maximum number of its rows. They are compared on the thread of a request, and a boolean takes only a bit.
const TABLE_ROWS_MAX: usize = 32_768;
/// Maximum number of bytes of the rows of all tables of a database.
const ALL_BYTES_MAX: usize = 16 << 20;
const TABLES_MAX: NonZeroUsize = NonZeroUsize::new(1_024).unwrap();

/// The rows of the small tables of a database.
#[derive(Debug)]
pub(super) struct SmallTables {
    kept: Mutex<KeptTables>,
}

#[derive(Debug)]
struct KeptTables {
    /// By name.
    tables: LruCache<String, KeptTable>,
    bytes: usize,
    reads: u64,
}

#[derive(Debug)]
struct KeptTable {
    /// The table that was read. A change of any file of the database makes a new one, which may be equal.
    table: Arc<FileTable>,
    /// `None` if they are not kept.
    rows: Option<RecordBatch>,
}

impl KeptTable {
    fn bytes(&self) -> usize {
        self.rows.as_ref().map_or(0, RecordBatch::get_array_memory_size)
    }
}

impl Default for SmallTables {
    fn default() -> Self {
        Self { kept: Mutex::new(KeptTables { tables: LruCache::new(TABLES_MAX), bytes: 0, reads: 0 }) }
    }
}

impl SmallTables {
    pub(super) fn bytes(&self) -> usize {
        self.kept.lock().bytes
    }

    /// How often a table was read.
    pub(super) fn reads(&self) -> u64 {
        self.kept.lock().reads
    }

    /// What is known of `table`: its rows, or that they are not kept. `None` if it must be read first.
    fn rows(&self, table: &Arc<FileTable>) -> Option<Option<RecordBatch>> {
        let mut all = self.kept.lock();
        if let Some(kept) = all.tables.get_mut(&table.name)
            && (Arc::ptr_eq(&kept.table, table) || has_same_rows(&kept.table, table))
        {
            kept.table = table.clone();
            return Some(kept.rows.clone());
        }
        (!may_be_small(table)).then_some(None)
    }

    /// Keeps the rows of `table`, in place of those that were not used for longest.
    fn insert(&self, table: Arc<FileTable>, rows: Option<RecordBatch>) {
        let (key, kept) = (table.name.clone(), KeptTable { table, rows });
        let mut all = self.kept.lock();
        all.reads += 1;
        all.bytes += kept.bytes();
        if let Some((_, replaced)) = all.tables.push(key, kept) {
            all.bytes -= replaced.bytes();
        }
        while all.bytes > ALL_BYTES_MAX
            && let Some((_, oldest)) = all.tables.pop_lru()
        {
            all.bytes -= oldest.bytes();
        }
    }
}

/// Whether both have the same columns and the same versions of the same files, so that reading them gives the same rows.
fn has_same_rows(one: &FileTable, other: &FileTable) -> bool {
    let is_same_file = |(one, other): (&TableFile, &TableFile)| {
        one.meta == other.meta && one.version == other.version && one.partition_values == other.partition_values
    };
    let has_same_columns = one.columns() == other.columns() && one.null_marker_columns == other.null_marker_columns;
    let has_same_files =
        one.files.len() == other.files.len() && one.files.iter().zip(other.files.iter()).all(is_same_file);
    has_same_columns && has_same_files && one.recent.version == other.recent.version
}

/// Whether the files are small, and would have another version if they changed from now on. Rows that are in no file
/// change too often to be kept.
fn may_be_small(table: &FileTable) -> bool {
    let has_small_files = || table.files.iter().map(|file| file.meta.size).sum::<u64>() <= FILE_BYTES_MAX;
    table.files.len() <= FILES_MAX
        && has_small_files()
        && table.recent.batches.is_empty()
        && table.files.iter().all(is_settled)
}

/// Reads all rows of `table`, in the order of its files. `None` if they are too large, or if the files are on another
/// machine, whose metadata may be old or take long. Runs on a worker pool.
async fn read(
    table: Arc<FileTable>,
    tables: SnapshotTables,
    sessions: Arc<SessionFactory>,
    cancellation: QueryCancellation,
) -> Result<Option<RecordBatch>, Error> {
    if !table.paths.iter().all(|path| path.is_local) {
        return Ok(None);
    }
    let failed = |error: DataFusionError| to_core_error(&error, &tables.database);
    let mut session = with_cancellation(sessions.create_session(&tables), &cancellation);
    // In one partition, the files are read in order.
    session.config_mut().options_mut().execution.target_partitions = NonZeroUsize::MIN.into();
    let schema = table.columns().clone();
    let scan = tables.unrestricted_provider(table).scan(&*session, None, &[], None).await.map_err(failed)?;
    let mut stream = execute_stream(scan, session.task_context()).map_err(failed)?;
    let (mut batches, mut bytes, mut rows) = (Vec::new(), 0, 0);
    while let Some(batch) = stream.try_next().await.map_err(failed)? {
        // Rows may share one long text.
        bytes += batch.get_array_memory_size().max(batch_bytes(&batch));
        rows += batch.num_rows();
        if bytes > TABLE_BYTES_MAX || rows > TABLE_ROWS_MAX {
            return Ok(None);
        }
        batches.push(batch);
    }
    concat_batches(&schema, &batches).map(Some).map_err(|error| failed(error.into()))
}
