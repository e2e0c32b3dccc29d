//! One table of files: what is known about it at one moment.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef, SchemaRef};
use datafusion::common::{ScalarValue, Statistics};
use datafusion::datasource::table_schema::TableSchema;
use object_store::ObjectMeta;
use parking_lot::Mutex;

use super::kind::Compression;
use super::probe::Shape;

/// A table that can be read.
#[derive(Debug)]
pub(crate) struct FileTable {
    pub(crate) name: String,
    pub(crate) shape: Shape,
    pub(crate) compression: Compression,
    /// The columns in the files, then those of the partitions.
    pub(crate) schema: TableSchema,
    /// In the order in which their rows come.
    pub(crate) files: Vec<TableFile>,
    /// Rows, where all files tell them for certain.
    pub(crate) rows: Option<u64>,
    /// Rows, as far as the sizes of the files let us guess.
    pub(crate) estimated_rows: Option<u64>,
    /// Bytes of one row, on average, with all columns.
    pub(crate) row_bytes: Option<u64>,
    /// Rows of a batch at most.
    pub(crate) batch_rows_max: usize,
    /// What the catalog says about it.
    pub(crate) comment: Option<String>,
}

/// A file of a table.
#[derive(Debug, Clone)]
pub(crate) struct TableFile {
    pub(crate) meta: ObjectMeta,
    pub(crate) partition_values: Vec<ScalarValue>,
    /// For the columns in the files, where the file tells.
    pub(crate) statistics: Option<Arc<Statistics>>,
}

/// Bytes that a batch should not exceed.
const BATCH_BYTES: u64 = 2 << 20;
/// Rows of a batch at least, however wide they are.
const BATCH_ROWS_MIN: u64 = 16;

impl FileTable {
    /// Rows of a batch of `columns_read` columns, so that it stays small.
    pub(crate) fn batch_rows(&self, columns_read: usize) -> usize {
        let Some(row_bytes) = self.row_bytes else { return self.batch_rows_max };
        let columns = self.columns().fields().len().max(1) as u64;
        let read_bytes = (row_bytes * columns_read as u64 / columns).max(1);
        let rows = (BATCH_BYTES / read_bytes).max(BATCH_ROWS_MIN);
        usize::try_from(rows).map_or(self.batch_rows_max, |rows| rows.min(self.batch_rows_max))
    }

    /// Its columns, with those of the partitions.
    pub(crate) fn columns(&self) -> &SchemaRef {
        self.schema.table_schema()
    }

    /// The columns that its folders' names tell.
    pub(crate) fn partition_columns(&self) -> impl Iterator<Item = &FieldRef> {
        self.schema.table_partition_cols().iter()
    }
}

/// Types of columns that rows have taught us, beyond those that were sampled: by a file's
/// location, then by a column's name.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    types: Mutex<HashMap<String, BTreeMap<String, DataType>>>,
    lessons: std::sync::atomic::AtomicU64,
}

impl Learned {
    /// Remembers that `column` of the file at `location` holds a value that only fits `data_type`.
    pub(crate) fn learn(&self, location: &str, column: &str, data_type: DataType) {
        self.types.lock().entry(location.to_owned()).or_default().insert(column.to_owned(), data_type);
        self.lessons.fetch_add(1, std::sync::atomic::Ordering::Release);
    }

    /// What was learned about the file at `location`.
    pub(crate) fn about(&self, location: &str) -> Option<BTreeMap<String, DataType>> {
        self.types.lock().get(location).cloned()
    }

    /// How much was ever learned; a change means that tables must be made anew.
    pub(crate) fn lessons(&self) -> u64 {
        self.lessons.load(std::sync::atomic::Ordering::Acquire)
    }

    /// Forgets files that are gone.
    pub(crate) fn keep_only(&self, is_there: impl Fn(&str) -> bool) {
        self.types.lock().retain(|location, _| is_there(location));
    }
}
