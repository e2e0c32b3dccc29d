//! Tables that a writer of this process keeps: Parquet files, and rows that are in no file yet.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, ScalarValue, Statistics};
use datafusion::datasource::table_schema::TableSchema;
use object_store::ObjectMeta;
use object_store::path::Path as Location;
use parking_lot::Mutex;
use tidegate_query::{Catalog, TableEntry, TableStatus, batch_bytes};

use super::file_kind::Compression;
use super::path_sandbox::{FilesObjectStore, PathSandbox, PinnedFile};
use super::probe::ContentFormat;
use super::snapshot::FileTablesSnapshot;
use super::table::{FileTable, RecentRows, TableFile};

/// Tables whose rows a writer of this process adds.
pub trait TableSource: Debug + Send + Sync + 'static {
    /// All tables at one moment. It is called for each statement: as long as nothing changes, it returns the same `Arc`.
    fn tables(&self) -> Arc<SourceTables>;
}

/// The tables of a source at one moment.
#[derive(Debug, Default)]
pub struct SourceTables {
    /// By name.
    pub tables: BTreeMap<String, SourceTable>,
    /// The tables that cannot be read, by name, and why.
    pub unreadable: BTreeMap<String, String>,
    /// Notes for the administrator, as the catalog has them.
    pub notes: Vec<String>,
}

/// A table of a source: the rows of its files, and recent ones.
#[derive(Debug, Clone)]
pub struct SourceTable {
    /// Where its files are: an absolute path.
    pub folder: PathBuf,
    /// All columns. Types that the files do not have are converted when they are read.
    pub schema: SchemaRef,
    /// The names of columns whose values are not in the files, but in [`SourceFile::partition_values`], in their order.
    pub partition_columns: Vec<String>,
    /// The same `Arc` as before, if the files are the same.
    pub files: Arc<Vec<SourceFile>>,
    /// Changes with the rows and the columns.
    pub version: u64,
    /// Rows that are in no file, with all columns of the schema in its order.
    pub recent: Arc<Vec<RecordBatch>>,
    /// The files exist for as long as this is alive. Statements that run keep it.
    pub lease: Arc<dyn Any + Send + Sync>,
    /// What the table is, for people.
    pub comment: Option<String>,
}

/// A Parquet file of a table. It never changes.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// The path below the folder of the table, with `/`. No other file ever has it.
    pub name: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// The number of its rows.
    pub rows: u64,
    /// When it was written.
    pub modified: SystemTime,
    /// The value of each partition column, as an array of one row.
    pub partition_values: Vec<ArrayRef>,
    /// Bounds of columns, so that a statement skips files without matching rows.
    pub ranges: Vec<ColumnRange>,
}

/// Bounds of the values of a column in a file.
#[derive(Debug, Clone)]
pub struct ColumnRange {
    /// The name of the column.
    pub column: String,
    /// No value is smaller: an array of one row. `None` if unknown.
    pub minimum: Option<ArrayRef>,
    /// No value is greater: an array of one row. `None` if unknown.
    pub maximum: Option<ArrayRef>,
    /// Whether both are values of the column, and not only bounds.
    pub is_exact: bool,
    /// The number of nulls. `None` if unknown.
    pub nulls: Option<u64>,
}

/// Turns the tables of a source into snapshots, and keeps what does not change from one to the next.
#[derive(Debug)]
pub(crate) struct SourceSnapshots {
    source: Arc<dyn TableSource>,
    batch_rows: usize,
    last: Mutex<Option<LastSnapshot>>,
}

#[derive(Debug)]
struct LastSnapshot {
    tables: Arc<SourceTables>,
    snapshot: Arc<FileTablesSnapshot>,
}

impl SourceSnapshots {
    pub(crate) fn new(source: Arc<dyn TableSource>, batch_rows: usize) -> Self {
        Self { source, batch_rows, last: Mutex::default() }
    }

    /// The current tables.
    pub(crate) fn current(&self) -> Arc<FileTablesSnapshot> {
        let tables = self.source.tables();
        let mut last = self.last.lock();
        if let Some(last) = last.as_ref()
            && Arc::ptr_eq(&last.tables, &tables)
        {
            return last.snapshot.clone();
        }
        let snapshot = Arc::new(self.build(&tables, last.as_ref()));
        *last = Some(LastSnapshot { tables, snapshot: snapshot.clone() });
        snapshot
    }

    fn build(&self, tables: &SourceTables, last: Option<&LastSnapshot>) -> FileTablesSnapshot {
        let same_files = last.filter(|last| has_same_files(&last.tables, tables));
        let store = match same_files {
            Some(last) => last.snapshot.store.clone(),
            None => build_store(tables),
        };
        let mut by_name = HashMap::new();
        let mut entries = Vec::new();
        for (name, reason) in &tables.unreadable {
            entries.push(unreadable_entry(name, reason));
            by_name.insert(name.clone(), Err(reason.clone()));
        }
        for (name, table) in &tables.tables {
            let before = same_files.and_then(|last| last.snapshot.find(name)?.1.as_ref().ok().cloned());
            let built = build_source_table(name, table, before, self.batch_rows).map(Arc::new);
            entries.push(match &built {
                Ok(built) => TableEntry {
                    name: name.clone(),
                    rows: built.rows,
                    comment: built.comment.clone(),
                    status: TableStatus::Readable,
                },
                Err(reason) => unreadable_entry(name, reason),
            });
            by_name.insert(name.clone(), built);
        }
        entries.sort_by(|left, right| left.name.cmp(&right.name));
        let catalog = Catalog { notes: tables.notes.clone(), ..Catalog::from_tables(entries) };
        FileTablesSnapshot::of_source(by_name, catalog, store)
    }
}

fn unreadable_entry(name: &str, reason: &str) -> TableEntry {
    let status = TableStatus::Unreadable(reason.to_owned());
    TableEntry { name: name.to_owned(), rows: None, comment: None, status }
}

fn has_same_files(before: &SourceTables, now: &SourceTables) -> bool {
    before.tables.len() == now.tables.len()
        && before.tables.iter().zip(&now.tables).all(|((name, before), (other, now))| {
            name == other && Arc::ptr_eq(&before.files, &now.files) && before.schema == now.schema
        })
}

fn build_store(tables: &SourceTables) -> FilesObjectStore {
    let mut files = HashMap::new();
    for (name, table) in &tables.tables {
        for file in table.files.iter() {
            let pinned = PinnedFile { path: table.folder.join(&file.name), identity: None, may_be_renamed: false };
            files.insert(file_location(name, file), pinned);
        }
    }
    // The real paths, because that of an open file is compared with them.
    let folders = tables.tables.values().filter_map(|table| std::fs::canonicalize(&table.folder).ok()).collect();
    FilesObjectStore {
        sandbox: PathSandbox::new(folders),
        files: Arc::new(files),
        leases: tables.tables.values().map(|table| table.lease.clone()).collect(),
    }
}

/// The location of a file in the store of its snapshot. Footers are cached by it, and error messages contain it.
fn file_location(table: &str, file: &SourceFile) -> Location {
    Location::from_iter(std::iter::once(table).chain(file.name.split('/')))
}

fn build_source_table(
    name: &str,
    table: &SourceTable,
    before: Option<Arc<FileTable>>,
    batch_rows_max: usize,
) -> Result<FileTable, String> {
    let (schema, files) = match before {
        Some(before) => (before.schema.clone(), before.files.clone()),
        None => {
            let schema = build_schema(table)?;
            let files = build_files(name, table, &schema)?;
            (schema, Arc::new(files))
        }
    };
    let recent = adapt_recent(table, schema.table_schema())?;
    let rows = table.files.iter().map(|file| file.rows).sum::<u64>()
        + recent.iter().map(|batch| batch.num_rows() as u64).sum::<u64>();
    Ok(FileTable {
        name: name.to_owned(),
        format: ContentFormat::Parquet,
        compression: Compression::UNCOMPRESSED,
        paths: Vec::new(),
        row_bytes: average_row_bytes(&recent),
        recent: RecentRows { batches: recent, version: table.version },
        schema,
        files,
        rows: Some(rows),
        estimated_rows: Some(rows),
        batch_rows_max: batch_rows_max.max(1),
        null_marker_columns: Default::default(),
        type_notes: Default::default(),
        known_types: Default::default(),
        comment: table.comment.clone(),
        delta: None,
    })
}

fn average_row_bytes(recent: &[RecordBatch]) -> Option<u64> {
    let rows = recent.iter().map(|batch| batch.num_rows() as u64).sum::<u64>();
    recent.iter().map(|batch| batch_bytes(batch) as u64).sum::<u64>().checked_div(rows)
}

/// The columns of the files, then those of the partitions. Text is read as views, as of all Parquet files.
fn build_schema(table: &SourceTable) -> Result<TableSchema, String> {
    let is_partition = |field: &&Arc<Field>| table.partition_columns.contains(field.name());
    let in_files = table.schema.fields().iter().filter(|field| !is_partition(field)).map(as_view);
    let of_partitions = table.partition_columns.iter().map(|name| match table.schema.field_with_name(name) {
        Ok(field) => Ok(Arc::new(field.clone())),
        Err(_) => Err(format!("its partition column {name:?} is none of its columns")),
    });
    let of_partitions = of_partitions.collect::<Result<Vec<_>, String>>()?;
    let in_files = Arc::new(Schema::new(in_files.collect::<Vec<_>>()));
    Ok(TableSchema::builder(in_files).with_table_partition_cols(of_partitions).build())
}

pub(super) fn as_view(field: &Arc<Field>) -> Arc<Field> {
    let view = match field.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
        _ => return field.clone(),
    };
    Arc::new(field.as_ref().clone().with_data_type(view))
}

fn build_files(name: &str, table: &SourceTable, schema: &TableSchema) -> Result<Vec<TableFile>, String> {
    let file = |file: &SourceFile| {
        let rows = usize::try_from(file.rows).map_or(Precision::Absent, Precision::Exact);
        let columns = schema.file_schema().fields().iter();
        Ok(TableFile {
            meta: ObjectMeta {
                location: file_location(name, file),
                last_modified: file.modified.into(),
                size: file.bytes,
                e_tag: None,
                version: None,
            },
            version: None,
            partition_values: file.partition_values.iter().map(first_value).collect::<Result<_, _>>()?,
            statistics: Some(Arc::new(Statistics {
                num_rows: rows,
                total_byte_size: Precision::Absent,
                column_statistics: columns.map(|column| column_statistics(file, column)).collect(),
            })),
        })
    };
    table.files.iter().map(file).collect()
}

pub(super) fn first_value(array: &ArrayRef) -> Result<ScalarValue, String> {
    ScalarValue::try_from_array(array, 0).map_err(|error| error.strip_backtrace())
}

fn column_statistics(file: &SourceFile, column: &Field) -> ColumnStatistics {
    let mut statistics = ColumnStatistics::new_unknown();
    let Some(range) = file.ranges.iter().find(|range| range.column == *column.name()) else { return statistics };
    let bound = |bound: &Option<ArrayRef>| {
        let value = first_value(bound.as_ref()?).ok()?.cast_to(column.data_type()).ok()?;
        let precision = if range.is_exact { Precision::Exact } else { Precision::Inexact };
        (!value.is_null()).then(|| precision(value))
    };
    statistics.min_value = bound(&range.minimum).unwrap_or_default();
    statistics.max_value = bound(&range.maximum).unwrap_or_default();
    let nulls = range.nulls.and_then(|nulls| usize::try_from(nulls).ok());
    statistics.null_count = nulls.map_or(Precision::Absent, Precision::Exact);
    statistics
}

/// The recent rows with the columns of the table, in its order and types.
fn adapt_recent(table: &SourceTable, schema: &SchemaRef) -> Result<Arc<[RecordBatch]>, String> {
    let exact = CastOptions { safe: false, ..CastOptions::default() };
    let adapt = |batch: &RecordBatch| {
        let column = |field: &Arc<Field>| {
            let column =
                batch.column_by_name(field.name()).ok_or_else(|| format!("recent rows lack {:?}", field.name()))?;
            cast_with_options(column, field.data_type(), &exact).map_err(|error| error.to_string())
        };
        let columns = schema.fields().iter().map(column).collect::<Result<Vec<_>, String>>()?;
        RecordBatch::try_new(schema.clone(), columns).map_err(|error| error.to_string())
    };
    table.recent.iter().filter(|batch| batch.num_rows() > 0).map(adapt).collect()
}
