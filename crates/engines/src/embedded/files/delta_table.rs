//! Delta tables in the folders of a database: the newest version that their log has.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::common::stats::Precision;
use datafusion::common::{ScalarValue, Statistics};
use datafusion::datasource::table_schema::TableSchema;
use object_store::path::Path as Location;
use parquet::arrow::arrow_reader::{RowSelection, RowSelector};
use tidegate_delta::{ColumnMapping, DeletedRows, DeltaError, TableLog, TableVersion, VersionFile};

use super::file_kind::Compression;
use super::file_version::{FileVersion, PathVersion};
use super::names::NameRequest;
use super::path_sandbox::{PathSandbox, io_error_reason};
use super::probe::{ContentFormat, FileProfile, catch_reader_panic};
use super::snapshot::{FileWithProfile, NamedTable, ProbeResult};
use super::source_tables::{as_view, first_value};
use super::table::{FileTable, RecentRows, TableFile, average, file_statistics, object_meta, version_of};
use super::walk::{DataFile, is_local};

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
    next: PathBuf,
}

impl DeltaLog {
    fn new(log: &TableLog) -> io::Result<Self> {
        let (path, next) = log.newest_and_next_file();
        let (version, is_local) = (FileVersion::from_metadata(&fs::metadata(&path)?), is_local(&path));
        Ok(Self { newest: PathVersion { path, version, is_local }, next })
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
