//! Tables whose Parquet files are recorded by what writes them: a writer of this process, which also has rows that are
//! in no file yet, or the log of a Delta table, in the folders of a database, with its newest version.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use std::{fs, io};

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, ScalarValue, Statistics};
use datafusion::datasource::table_schema::TableSchema;
use object_store::ObjectMeta;
use object_store::path::Path as Location;
use parking_lot::Mutex;
use parquet::arrow::arrow_reader::{RowSelection, RowSelector};
use tidegate_delta::{ColumnMapping, DeletedRows, DeltaError, TableLog, TableVersion, VersionFile};
use tidegate_query::{Catalog, TableEntry, TableStatus, batch_bytes};

use super::file_kind::Compression;
use super::names::NameRequest;
use super::path_sandbox::{FilesObjectStore, PathSandbox, PathVersion, PinnedFile, io_error_reason};
use super::probe::{ContentFormat, FileProfile, catch_reader_panic};
use super::snapshot::{FileTablesSnapshot, FileWithProfile, NamedTable, ProbeResult};
use super::table::{FileTable, RecentRows, TableFile, average, file_statistics, object_meta, version_of};
use super::walk::DataFile;

/// Tables whose rows a writer of this process adds.
pub trait TableRecorder: Debug + Send + Sync + 'static {
    /// All tables at one moment. It is called for each statement: as long as nothing changes, it returns the same `Arc`.
    fn tables(&self) -> Arc<RecordedTables>;
}

/// The tables of a source at one moment.
#[derive(Debug, Default)]
pub struct RecordedTables {
    /// By name.
    pub tables: BTreeMap<String, RecordedTable>,
    /// The tables that cannot be read, by name, and why.
    pub unreadable: BTreeMap<String, String>,
    /// Notes for the administrator, as the catalog has them.
    pub notes: Vec<String>,
}

/// A table of a source: the rows of its files, and recent ones.
#[derive(Debug, Clone)]
pub struct RecordedTable {
    /// Where its files are: an absolute path.
    pub folder: PathBuf,
    /// All columns. Types that the files do not have are converted when they are read.
    pub schema: SchemaRef,
    /// The names of columns whose values are not in the files, but in [`RecordedFile::partition_values`], in their
    /// order.
    pub partition_columns: Vec<String>,
    /// The same `Arc` as before, if the files are the same.
    pub files: Arc<Vec<RecordedFile>>,
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
pub struct RecordedFile {
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
pub(crate) struct RecordedSnapshots {
    source: Arc<dyn TableRecorder>,
    batch_rows: usize,
    last: Mutex<Option<LastSnapshot>>,
}

#[derive(Debug)]
struct LastSnapshot {
    tables: Arc<RecordedTables>,
    snapshot: Arc<FileTablesSnapshot>,
}

impl RecordedSnapshots {
    pub(crate) fn new(source: Arc<dyn TableRecorder>, batch_rows: usize) -> Self {
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

    fn build(&self, tables: &RecordedTables, last: Option<&LastSnapshot>) -> FileTablesSnapshot {
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
                    facts: built.comment.clone(),
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
    TableEntry { name: name.to_owned(), rows: None, comment: None, facts: None, status }
}

fn has_same_files(before: &RecordedTables, now: &RecordedTables) -> bool {
    before.tables.len() == now.tables.len()
        && before.tables.iter().zip(&now.tables).all(|((name, before), (other, now))| {
            name == other && Arc::ptr_eq(&before.files, &now.files) && before.schema == now.schema
        })
}

fn build_store(tables: &RecordedTables) -> FilesObjectStore {
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
fn file_location(table: &str, file: &RecordedFile) -> Location {
    Location::from_iter(std::iter::once(table).chain(file.name.split('/')))
}

fn build_source_table(
    name: &str,
    table: &RecordedTable,
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
        descriptions: Default::default(),
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
fn build_schema(table: &RecordedTable) -> Result<TableSchema, String> {
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

fn as_view(field: &Arc<Field>) -> Arc<Field> {
    let view = match field.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
        _ => return field.clone(),
    };
    Arc::new(field.as_ref().clone().with_data_type(view))
}

fn build_files(name: &str, table: &RecordedTable, schema: &TableSchema) -> Result<Vec<TableFile>, String> {
    let file = |file: &RecordedFile| {
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

fn first_value(array: &ArrayRef) -> Result<ScalarValue, String> {
    ScalarValue::try_from_array(array, 0).map_err(|error| error.strip_backtrace())
}

fn column_statistics(file: &RecordedFile, column: &Field) -> ColumnStatistics {
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
fn adapt_recent(table: &RecordedTable, schema: &SchemaRef) -> Result<Arc<[RecordBatch]>, String> {
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

/// Parquet footers that are read, as a multiple of the text files that are.
const FOOTERS_PER_FILE: usize = 16;

/// A folder with a Delta table.
#[derive(Debug)]
pub(crate) struct DeltaFolder {
    pub(crate) log: DeltaLog,
    pub(crate) version: TableVersion,
}

/// Delta tables by the real paths of their folders.
pub(crate) type DeltaFolders = BTreeMap<PathBuf, Arc<DeltaFolder>>;

/// What identifies the newest version of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeltaLog {
    /// The file that came with the version.
    pub(crate) newest: PathVersion,
    /// The file that will come with the next one.
    pub(crate) next: PathBuf,
}

impl DeltaLog {
    fn new(log: &TableLog) -> io::Result<Self> {
        let (path, next) = log.newest_and_next_file();
        Ok(Self { newest: PathVersion::read(&path)?, next })
    }

    /// Whether the version is still the newest one. Reads only metadata.
    fn is_current(&self) -> bool {
        self.newest.is_unchanged() && !self.has_next()
    }

    fn has_next(&self) -> bool {
        self.next.exists()
    }
}

impl DeltaFolder {
    /// The newest version of the table in `folder`, which is a real path: `known` if it still is. The error is the reason
    /// why it cannot be read.
    pub(crate) fn open(
        folder: &Path,
        sandbox: &PathSandbox,
        files_max: usize,
        known: Option<&Arc<Self>>,
    ) -> Result<Arc<Self>, String> {
        let log_folder = fs::canonicalize(folder.join("_delta_log")).map_err(|error| io_error_reason(&error))?;
        if !sandbox.contains(&log_folder) {
            return Err("its log is a symbolic link that points outside the database folder".to_owned());
        }
        if let Some(known) = known.filter(|known| known.log.is_current()) {
            return Ok(known.clone());
        }
        // Callers read it, and need not know where the folder is.
        let reason = |error: DeltaError| error.to_string().replace(&format!("{}/", folder.display()), "");
        let listed = TableLog::list(folder).map_err(reason)?;
        let log = DeltaLog::new(&listed).map_err(|error| io_error_reason(&error))?;
        let open = |path: &Path| sandbox.open(path).map_err(|refusal| io::Error::other(refusal.reason()));
        let version = catch_reader_panic(|| listed.read(files_max, &open))?.map_err(reason)?;
        Ok(Arc::new(Self { log, version }))
    }
}

/// What a table of files has beyond them, as its Delta log declares it.
#[derive(Debug)]
pub(crate) struct DeltaFiles {
    folder: Arc<DeltaFolder>,
    /// By the location of the file.
    deletions: HashMap<Location, FileDeletions>,
}

/// The deleted rows of a file.
#[derive(Debug)]
pub(crate) struct FileDeletions {
    rows_in_file: u64,
    deleted: Arc<DeletedRows>,
}

impl DeltaFiles {
    /// Which columns those of the files are. `None` if they have the same names.
    pub(crate) fn mapping(&self) -> Option<&ColumnMapping> {
        self.folder.version.mapping.as_ref()
    }

    /// Whether the log has a version after this one. Reads only metadata.
    pub(crate) fn has_next_version(&self) -> bool {
        self.folder.log.has_next()
    }

    /// The deleted rows of the file at `location`.
    pub(crate) fn deletions(&self, location: &Location) -> Option<&FileDeletions> {
        self.deletions.get(location)
    }
}

impl FileDeletions {
    /// The error is the reason why the rows of `file` are not known.
    fn new(file: &DataFile, rows_in_file: Option<u64>, deleted: &Arc<DeletedRows>) -> Result<Self, String> {
        let rows_in_file = rows_in_file.ok_or_else(|| format!("the number of rows in {} is unknown", file.location))?;
        match deleted.last().filter(|last| *last >= rows_in_file) {
            Some(last) => Err(format!("row {last} of {} is deleted, but it has {rows_in_file} rows", file.location)),
            None => Ok(Self { rows_in_file, deleted: deleted.clone() }),
        }
    }

    /// The rows of the file that are not deleted.
    pub(crate) fn remaining(&self) -> RowSelection {
        let rows = |from: u64, to: u64| usize::try_from(to.saturating_sub(from)).unwrap_or(usize::MAX);
        let (mut selectors, mut next) = (Vec::new(), 0);
        for range in self.deleted.ranges() {
            selectors.push(RowSelector::select(rows(next, range.start)));
            selectors.push(RowSelector::skip(rows(range.start, range.end)));
            next = range.end;
        }
        selectors.push(RowSelector::select(rows(next, self.rows_in_file)));
        selectors.into()
    }
}

/// A Delta table, before the footers of its files are read.
#[derive(Debug, Clone)]
pub(crate) struct DeltaCandidate {
    pub(crate) name: String,
    /// Those of the version, in its order.
    pub(crate) files: Vec<DataFile>,
    pub(crate) folder: Arc<DeltaFolder>,
}

impl DeltaCandidate {
    /// The files whose footers are read: those with deleted rows, whose number must be known, and others, evenly spread.
    pub(crate) fn files_to_probe(&self, probed_files_max: usize) -> impl Iterator<Item = &DataFile> {
        let step = self.files.len().div_ceil(probed_files_max.max(1) * FOOTERS_PER_FILE).max(1);
        let files = self.files.iter().zip(&self.folder.version.files).enumerate();
        let picked = files.filter(move |(index, (_, in_log))| in_log.deleted.is_some() || index.is_multiple_of(step));
        picked.map(|(_, (file, _))| file)
    }

    /// The table, or why it cannot be read.
    pub(crate) fn build(&self, probes: &HashMap<String, ProbeResult>, batch_rows_max: usize) -> NamedTable {
        let (name, location) = (self.name.clone(), self.name.clone());
        let request = NameRequest { name, suffix: "folder".to_owned(), location, folder: None };
        match self.build_table(probes, batch_rows_max) {
            Ok((table, files)) => (request, Ok(table), files),
            Err(reason) => (request, Err(reason), Vec::new()),
        }
    }

    fn build_table(
        &self,
        probes: &HashMap<String, ProbeResult>,
        batch_rows_max: usize,
    ) -> Result<(FileTable, Vec<FileWithProfile>), String> {
        let version = &self.folder.version;
        let schema = table_schema(version);
        let mut table_files = Vec::with_capacity(self.files.len());
        let mut delta = DeltaFiles { folder: self.folder.clone(), deletions: HashMap::new() };
        let mut profiles = Vec::with_capacity(self.files.len());
        for (file, in_log) in self.files.iter().zip(&version.files) {
            let profile = profile_of(file, probes)?;
            let rows_in_file = profile.as_ref().and_then(|profile| profile.rows);
            let deletions = in_log.deleted.as_ref();
            let deletions =
                deletions.map(|deleted| FileDeletions::new(file, rows_in_file.or(in_log.rows), deleted)).transpose()?;
            let statistics = match (&deletions, &profile) {
                (None, Some(profile)) if version.mapping.is_none() => file_statistics(profile, schema.file_schema()),
                _ => rows_in_file.and_then(|rows| count_only(rows, deletions.as_ref(), schema.file_schema())),
            };
            let meta = object_meta(file, profile.as_deref());
            delta.deletions.extend(deletions.map(|deletions| (meta.location.clone(), deletions)));
            table_files.push(TableFile {
                meta,
                version: version_of(file, profile.as_deref()),
                partition_values: partition_values(in_log)?,
                statistics,
            });
            profiles.push((file.clone(), profile));
        }
        let rows = table_files.iter().map(exact_rows).sum::<Option<u64>>();
        let rows_in_log = || version.files.iter().map(|file| file.rows).sum::<Option<u64>>();
        let table = FileTable {
            name: self.name.clone(),
            format: ContentFormat::Parquet,
            compression: Compression::UNCOMPRESSED,
            rows,
            estimated_rows: rows.or_else(rows_in_log),
            row_bytes: average(profiles.iter().filter_map(|(_, profile)| profile.as_ref()?.row_bytes)),
            batch_rows_max: batch_rows_max.max(1),
            known_types: Default::default(),
            null_marker_columns: Default::default(),
            type_notes: Default::default(),
            descriptions: Default::default(),
            comment: Some(format!("Delta table, version {}; {} files", version.number, table_files.len())),
            files: Arc::new(table_files),
            // Without the data files: a writer never changes them, and a query finds those that are missing.
            paths: vec![self.folder.log.newest.clone()],
            recent: RecentRows { version: version.number, ..RecentRows::default() },
            schema,
            delta: Some(Arc::new(delta)),
        };
        Ok((table, profiles))
    }
}

/// The profile of a file, if it was probed. Without one of its files, a table would have wrong rows.
fn profile_of(file: &DataFile, probes: &HashMap<String, ProbeResult>) -> Result<Option<Arc<FileProfile>>, String> {
    let unreadable = |reason: &String| format!("its file {}: {reason}", file.location);
    file.version.as_ref().map_err(unreadable)?;
    probes.get(&file.location).map(|probed| probed.as_ref().map(Arc::clone).map_err(unreadable)).transpose()
}

/// The columns of the files, then those of the partitions. Any may be null, and any member of them: other writers do not always
/// keep to what they declare.
fn table_schema(version: &TableVersion) -> TableSchema {
    let is_partition = |field: &&FieldRef| version.partition_columns.contains(field.name());
    let in_files = version.schema.fields().iter().filter(|field| !is_partition(field));
    let in_files: Vec<FieldRef> = in_files.map(|field| as_view(&nullable(field))).collect();
    let of_name = |name: &String| version.schema.fields().iter().find(|field| field.name() == name).map(nullable);
    let of_partitions: Vec<FieldRef> = version.partition_columns.iter().filter_map(of_name).collect();
    TableSchema::builder(Arc::new(Schema::new(in_files))).with_table_partition_cols(of_partitions).build()
}

/// Without the metadata of other programs.
fn nullable(field: &FieldRef) -> FieldRef {
    let of_arrow = field.metadata().iter().filter(|(key, _)| key.starts_with("ARROW:"));
    let metadata = of_arrow.map(|(key, value)| (key.clone(), value.clone())).collect();
    Arc::new(Field::new(field.name(), with_nullable_members(field.data_type()), true).with_metadata(metadata))
}

/// Keys of maps, which are never null, stay as they are.
fn with_nullable_members(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Struct(members) => DataType::Struct(members.iter().map(nullable).collect()),
        DataType::List(item) => DataType::List(nullable(item)),
        DataType::Map(entries, is_sorted) => match entries.data_type() {
            DataType::Struct(members) => {
                let member =
                    |(index, member): (usize, &FieldRef)| if index == 0 { member.clone() } else { nullable(member) };
                let members = DataType::Struct(members.iter().enumerate().map(member).collect());
                DataType::Map(Arc::new(entries.as_ref().clone().with_data_type(members)), *is_sorted)
            }
            _ => data_type.clone(),
        },
        other => other.clone(),
    }
}

fn partition_values(file: &VersionFile) -> Result<Vec<ScalarValue>, String> {
    file.partition_values.iter().map(first_value).collect()
}

/// Bounds of columns may be those of deleted rows, or of columns with other names.
fn count_only(rows: u64, deletions: Option<&FileDeletions>, columns: &Schema) -> Option<Arc<Statistics>> {
    let remaining = rows.checked_sub(deletions.map_or(0, |deletions| deletions.deleted.count()))?;
    Some(Arc::new(Statistics {
        num_rows: Precision::Exact(usize::try_from(remaining).ok()?),
        ..Statistics::new_unknown(columns)
    }))
}

fn exact_rows(file: &TableFile) -> Option<u64> {
    match file.statistics.as_ref()?.num_rows {
        Precision::Exact(rows) => Some(rows as u64),
        _ => None,
    }
}
