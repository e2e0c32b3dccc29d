//! The rows of small tables in memory, those that were used last.

use std::num::NonZeroUsize;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::concat_batches;
use datafusion::catalog::TableProvider;
use datafusion::common::DataFusionError;
use datafusion::physical_plan::execute_stream;
use futures::TryStreamExt;
use lru::LruCache;
use parking_lot::Mutex;
use tidegate_core::Error;
use tidegate_query::batch_bytes;

use crate::embedded::files::{FileTable, TableFile};
use crate::embedded::freshness::is_settled;
use crate::embedded::plan::{SessionFactory, SnapshotTables, to_core_error, with_cancellation};
use crate::embedded::query_cancellation::QueryCancellation;

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
pub(in crate::embedded) struct SmallTables {
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
    pub(in crate::embedded) fn bytes(&self) -> usize {
        self.kept.lock().bytes
    }

    /// How often a table was read.
    pub(in crate::embedded) fn reads(&self) -> u64 {
        self.kept.lock().reads
    }

    /// What is known of `table`: its rows, or that they are not kept. `None` if it must be read first.
    pub(super) fn rows(&self, table: &Arc<FileTable>) -> Option<Option<RecordBatch>> {
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
    pub(super) fn insert(&self, table: Arc<FileTable>, rows: Option<RecordBatch>) {
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
pub(super) async fn read(
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
