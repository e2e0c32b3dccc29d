//! A table of files: its columns and files at one moment.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{FieldRef, Fields, SchemaRef};
use datafusion::common::{ScalarValue, Statistics};
use datafusion::datasource::table_schema::TableSchema;
use object_store::ObjectMeta;
use parking_lot::Mutex;

use super::delta_table::DeltaFiles;
use super::file_kind::Compression;
use super::file_version::{FileVersion, PathVersion};
use super::number_evidence::NumberEvidence;
use super::number_format::NumberFormat;
use super::probe::ContentFormat;
use super::table_builder::to_location;

#[derive(Debug)]
pub(crate) struct FileTable {
    pub(crate) name: String,
    pub(crate) format: ContentFormat,
    pub(crate) compression: Compression,
    /// The columns in the files, then the partition columns.
    pub(crate) schema: TableSchema,
    /// The columns in JSON files, with the type `Null` at any depth where no value is known. Empty for other formats.
    pub(crate) known_types: Fields,
    /// In row order.
    pub(crate) files: Arc<Vec<TableFile>>,
    /// The files and folders that the table was made from.
    pub(crate) paths: Vec<PathVersion>,
    /// Rows of the table that are in no file.
    pub(crate) recent: RecentRows,
    /// Number of rows, if it is exact in all files.
    pub(crate) rows: Option<u64>,
    pub(crate) estimated_rows: Option<u64>,
    /// Average number of bytes of a row with all columns.
    pub(crate) row_bytes: Option<u64>,
    pub(crate) batch_rows_max: usize,
    /// Typed columns in which a text such as `N/A` means null.
    pub(crate) null_marker_columns: BTreeSet<String>,
    /// Why columns do not have the type of their first values, by name. It quotes a value.
    pub(crate) type_notes: BTreeMap<String, String>,
    pub(crate) comment: Option<String>,
    /// What the log of a Delta table declares. `None` for all other tables.
    pub(crate) delta: Option<Arc<DeltaFiles>>,
}

/// Rows that are in no file yet, with all columns of their table.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecentRows {
    pub(crate) batches: Arc<[RecordBatch]>,
    /// Differs when the rows of the table differ.
    pub(crate) version: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct TableFile {
    pub(crate) meta: ObjectMeta,
    /// The version of the file that was scanned, if it could be read.
    pub(crate) version: Option<FileVersion>,
    pub(crate) partition_values: Vec<ScalarValue>,
    /// For the columns in the file, if the format has statistics.
    pub(crate) statistics: Option<Arc<Statistics>>,
}

/// Target size of a batch.
const BATCH_BYTES: u64 = 2 << 20;
/// Minimum number of rows in a batch, however wide they are.
const BATCH_ROWS_MIN: u64 = 16;

impl FileTable {
    /// Number of rows in a batch of `columns_read` columns that keeps it near the target size.
    pub(crate) fn batch_rows(&self, columns_read: usize) -> usize {
        let Some(row_bytes) = self.row_bytes else { return self.batch_rows_max };
        let columns = self.columns().fields().len().max(1) as u64;
        let read_bytes = (row_bytes * columns_read as u64 / columns).max(1);
        let rows = (BATCH_BYTES / read_bytes).max(BATCH_ROWS_MIN);
        usize::try_from(rows).map_or(self.batch_rows_max, |rows| rows.min(self.batch_rows_max))
    }

    /// Whether it is still as it was scanned. Reads only metadata.
    pub(crate) fn is_current(&self) -> bool {
        self.paths.iter().all(PathVersion::is_unchanged)
            && self.delta.as_ref().is_none_or(|delta| !delta.has_next_version())
    }

    pub(crate) fn numbers(&self) -> Option<NumberFormat> {
        match &self.format {
            ContentFormat::Csv(dialect) => dialect.numbers,
            _ => None,
        }
    }

    pub(crate) fn version_of(&self, location: &str) -> Option<FileVersion> {
        let location = to_location(location);
        self.files.iter().find(|file| file.meta.location == location)?.version
    }

    /// The columns of the table, including those of the partitions.
    pub(crate) fn columns(&self) -> &SchemaRef {
        self.schema.table_schema()
    }

    /// For each of the first columns, the positions of the others whose values can be read from it.
    pub(crate) fn revealed_columns(&self) -> &[Vec<usize>] {
        match &self.format {
            ContentFormat::Log(dialect) => dialect.schema.revealed_columns(),
            _ => &[],
        }
    }

    pub(crate) fn partition_columns(&self) -> impl Iterator<Item = &FieldRef> {
        self.schema.table_partition_cols().iter()
    }
}

/// A correction of a column, or a new one, from rows beyond the sample.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ColumnCorrection {
    /// The column with the type that holds the values.
    pub(crate) wider: Option<FieldRef>,
    /// Whether the column contains null markers such as `N/A`.
    pub(crate) has_markers: bool,
    /// Why the column does not have the type of its first values.
    pub(crate) note: Option<String>,
    /// The separators in the values that did not fit.
    pub(crate) evidence: NumberEvidence,
}

/// The version of a file that was read last, and its corrections by column name.
type FileCorrections = (FileVersion, BTreeMap<String, ColumnCorrection>);

/// Corrections of column types from rows beyond the sample, by file location and column name. They apply to the version
/// of the file that was read, and to that file with appended rows.
#[derive(Debug, Default)]
pub(crate) struct ColumnCorrections {
    files: Mutex<HashMap<String, FileCorrections>>,
    revision: std::sync::atomic::AtomicU64,
}

impl ColumnCorrections {
    pub(crate) fn record_column(&self, location: &str, file: FileVersion, column: FieldRef, note: Option<String>) {
        let name = column.name().clone();
        self.record(location, file, &name, |correction| {
            correction.wider = Some(column);
            correction.note = note;
        });
    }

    pub(crate) fn record_separators(&self, location: &str, file: FileVersion, column: &str, evidence: &NumberEvidence) {
        self.record(location, file, column, |correction| correction.evidence.merge(evidence));
    }

    pub(crate) fn record_null_marker(&self, location: &str, file: FileVersion, column: &str) {
        self.record(location, file, column, |correction| correction.has_markers = true);
    }

    fn record(&self, location: &str, file: FileVersion, column: &str, add: impl FnOnce(&mut ColumnCorrection)) {
        let mut files = self.files.lock();
        let (read, columns) = files.entry(location.to_owned()).or_insert_with(|| (file, BTreeMap::new()));
        if !read.may_have_grown_to(&file) {
            columns.clear();
        }
        *read = file;
        add(columns.entry(column.to_owned()).or_default());
        self.revision.fetch_add(1, std::sync::atomic::Ordering::Release);
    }

    pub(crate) fn corrections_for(
        &self,
        location: &str,
        file: &FileVersion,
    ) -> Option<BTreeMap<String, ColumnCorrection>> {
        let files = self.files.lock();
        files.get(location).filter(|(read, _)| read.may_have_grown_to(file)).map(|(_, columns)| columns.clone())
    }

    /// The number of corrections so far. If it changes, tables must be rebuilt.
    pub(crate) fn revision(&self) -> u64 {
        self.revision.load(std::sync::atomic::Ordering::Acquire)
    }

    pub(crate) fn retain(&self, is_there: impl Fn(&str) -> bool) {
        self.files.lock().retain(|location, _| is_there(location));
    }
}
