//! One table of files: what is known about it at one moment.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef, SchemaRef};
use datafusion::common::{ScalarValue, Statistics};
use datafusion::datasource::table_schema::TableSchema;
use object_store::ObjectMeta;
use parking_lot::Mutex;

use super::file_kind::Compression;
use super::number_format::NumberFormat;
use super::probe::ContentFormat;
use super::walk::Fingerprint;

/// A table that can be read.
#[derive(Debug)]
pub(crate) struct FileTable {
    pub(crate) name: String,
    pub(crate) format: ContentFormat,
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
    /// The typed columns in which a text such as `N/A` stands for null.
    pub(crate) null_marker_columns: BTreeSet<String>,
    /// What the catalog says about it.
    pub(crate) comment: Option<String>,
}

/// A file of a table.
#[derive(Debug, Clone)]
pub(crate) struct TableFile {
    pub(crate) meta: ObjectMeta,
    /// The file that is meant, where it could be looked at.
    pub(crate) fingerprint: Option<Fingerprint>,
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

    /// How its numbers are written, where not as usual.
    pub(crate) fn numbers(&self) -> Option<NumberFormat> {
        match &self.format {
            ContentFormat::Csv(dialect) => dialect.numbers,
            _ => None,
        }
    }

    /// The file at `location`, as it was when the table was made.
    pub(crate) fn fingerprint_of(&self, location: &str) -> Option<Fingerprint> {
        self.files.iter().find(|file| file.meta.location.as_ref() == location)?.fingerprint
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

/// What rows beyond the sample taught about a column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ColumnCorrection {
    /// The type that holds its values.
    pub(crate) wider: Option<DataType>,
    /// Whether a text such as `N/A` stands for null in it.
    pub(crate) has_markers: bool,
}

/// What was learned of each column of one file as it was read last, by the column's name.
type FileCorrections = (Fingerprint, BTreeMap<String, ColumnCorrection>);

/// What rows beyond the sample taught about columns: by a file's location, then by a column's name. It counts for the
/// file that was read, and for that file with more rows.
#[derive(Debug, Default)]
pub(crate) struct ColumnCorrections {
    files: Mutex<HashMap<String, FileCorrections>>,
    revision: std::sync::atomic::AtomicU64,
}

impl ColumnCorrections {
    /// Remembers that `column` of the file at `location` holds a value that only fits `data_type`.
    pub(crate) fn record_type(&self, location: &str, file: Fingerprint, column: &str, data_type: DataType) {
        self.record(location, file, column, |lesson| lesson.wider = Some(data_type));
    }

    /// Remembers that a text stands for null in `column` of the file at `location`.
    pub(crate) fn record_null_marker(&self, location: &str, file: Fingerprint, column: &str) {
        self.record(location, file, column, |lesson| lesson.has_markers = true);
    }

    fn record(&self, location: &str, file: Fingerprint, column: &str, add: impl FnOnce(&mut ColumnCorrection)) {
        let mut files = self.files.lock();
        let (read, columns) = files.entry(location.to_owned()).or_insert_with(|| (file, BTreeMap::new()));
        if !read.may_have_grown_to(&file) {
            columns.clear();
        }
        *read = file;
        add(columns.entry(column.to_owned()).or_default());
        self.revision.fetch_add(1, std::sync::atomic::Ordering::Release);
    }

    /// What was learned about the file at `location`, which is `file`.
    pub(crate) fn corrections_for(
        &self,
        location: &str,
        file: &Fingerprint,
    ) -> Option<BTreeMap<String, ColumnCorrection>> {
        let files = self.files.lock();
        files.get(location).filter(|(read, _)| read.may_have_grown_to(file)).map(|(_, columns)| columns.clone())
    }

    /// How much was ever learned; a change means that tables must be made anew.
    pub(crate) fn revision(&self) -> u64 {
        self.revision.load(std::sync::atomic::Ordering::Acquire)
    }

    /// Forgets files that are gone.
    pub(crate) fn retain(&self, is_there: impl Fn(&str) -> bool) {
        self.files.lock().retain(|location, _| is_there(location));
    }
}
