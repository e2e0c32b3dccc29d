//! The tables of an ingest folder, as the engine reads them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use arrow::datatypes::SchemaRef;
use parking_lot::Mutex;
use tidegate_engines::{ColumnRange, RecordedFile, RecordedTable, RecordedTables, TableRecorder};
use tidegate_ingest::delta::{DataFile, DeltaSnapshot, StatisticsValue};
use tidegate_ingest::{
    IngestError, IngestFolder, IngestTableView, TableDeclaration, lost_tables, open_tables, permission_problem,
    write_problem,
};

/// The tables of a folder that this process writes: what is in data files, and what is only in the log.
#[derive(Debug)]
pub(super) struct WrittenTables {
    folder: Arc<IngestFolder>,
    last: Mutex<WrittenViews>,
}

#[derive(Debug, Default)]
struct WrittenViews {
    views: Vec<IngestTableView>,
    tables: Arc<RecordedTables>,
}

impl WrittenTables {
    pub(super) fn new(folder: Arc<IngestFolder>) -> Self {
        Self { folder, last: Mutex::default() }
    }
}

impl TableRecorder for WrittenTables {
    fn tables(&self) -> Arc<RecordedTables> {
        let mut last = self.last.lock();
        let (views, unreadable, notes) = (self.folder.views(), self.folder.closed_tables(), self.folder.notes());
        let has_same_views =
            views.len() == last.views.len() && views.iter().zip(&last.views).all(|(now, last)| now.is_same(last));
        if !has_same_views || unreadable != last.tables.unreadable || notes != last.tables.notes {
            let table = |view: &IngestTableView| {
                (view.table().to_owned(), written_table(view, last.tables.tables.get(view.table())))
            };
            let tables = views.iter().map(table).collect();
            let tables = Arc::new(RecordedTables { tables, unreadable, notes });
            *last = WrittenViews { views, tables };
        }
        last.tables.clone()
    }
}

fn written_table(view: &IngestTableView, before: Option<&RecordedTable>) -> RecordedTable {
    let files = source_files(view.files(), view.snapshot().map(Arc::as_ref));
    let files = match before {
        Some(before) if has_same_names(&before.files, &files) => before.files.clone(),
        _ => Arc::new(files),
    };
    RecordedTable {
        folder: view.folder().to_owned(),
        schema: view.schema().clone(),
        partition_columns: partition_columns(view.snapshot().map(Arc::as_ref)),
        files,
        version: view.version(),
        recent: Arc::new(view.batches().to_vec()),
        lease: Arc::new(view.clone()),
        comment: Some("takes rows".to_owned()),
    }
}

fn has_same_names(before: &[RecordedFile], now: &[RecordedFile]) -> bool {
    before.len() == now.len() && before.iter().zip(now).all(|(before, now)| before.name == now.name)
}

/// The names of the partition columns that are declared. Computed ones are for other readers.
fn partition_columns(snapshot: Option<&DeltaSnapshot>) -> Vec<String> {
    let columns = snapshot.map(|snapshot| snapshot.partition_columns.iter()).into_iter().flatten();
    columns.filter(|column| !column.is_derived()).map(|column| column.name.clone()).collect()
}

fn source_files(files: &[Arc<DataFile>], snapshot: Option<&DeltaSnapshot>) -> Vec<RecordedFile> {
    files.iter().map(|file| source_file(file, snapshot)).collect()
}

fn source_file(file: &DataFile, snapshot: Option<&DeltaSnapshot>) -> RecordedFile {
    let columns = snapshot.map(|snapshot| snapshot.partition_columns.as_ref()).unwrap_or_default();
    let values = columns.iter().zip(&file.partition_values).filter(|(column, _)| !column.is_derived());
    let ranges = file.statistics.iter().filter_map(|statistics| {
        let column = snapshot?.schema.field_with_name(&statistics.column).ok()?;
        let value = |bound: &Option<StatisticsValue>| bound.as_ref()?.to_array(column.data_type());
        Some(ColumnRange {
            column: statistics.column.clone(),
            minimum: value(&statistics.minimum),
            maximum: value(&statistics.maximum),
            is_exact: statistics.is_exact,
            nulls: statistics.null_count,
        })
    });
    RecordedFile {
        name: file.path.clone(),
        bytes: file.bytes,
        rows: file.rows,
        modified: SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(file.modified_ms).unwrap_or_default()),
        // Values that the writer wrote can be parsed.
        partition_values: values.filter_map(|(column, value)| column.parse(value.as_deref()).ok()).collect(),
        ranges: ranges.collect(),
    }
}

/// The Delta tables of a folder that another process writes. Rows that are only in its log are missing.
#[derive(Debug)]
pub(super) struct StoredTables {
    folder: PathBuf,
    /// The columns of declared tables, which exist before their first row.
    declared: BTreeMap<String, SchemaRef>,
    last: Mutex<Option<StoredVersions>>,
}

#[derive(Debug)]
struct StoredVersions {
    versions: BTreeMap<String, Result<u64, String>>,
    /// Why the folder cannot be listed.
    problem: Option<String>,
    tables: Arc<RecordedTables>,
}

impl StoredTables {
    pub(super) fn new(folder: PathBuf, declared: &BTreeMap<String, TableDeclaration>) -> Self {
        let columns = |(name, table): (&String, &TableDeclaration)| Some((name.clone(), table.columns.clone()?));
        Self { folder, declared: declared.iter().filter_map(columns).collect(), last: Mutex::default() }
    }
}

impl TableRecorder for StoredTables {
    fn tables(&self) -> Arc<RecordedTables> {
        let mut last = self.last.lock();
        let (found, problem) = stored_snapshots(&self.folder);
        let version = |found: &StoredTable| match found {
            Ok(snapshot) => Ok(snapshot.version),
            Err(reason) => Err(reason.clone()),
        };
        let versions: BTreeMap<_, _> = found.iter().map(|(name, found)| (name.clone(), version(found))).collect();
        if let Some(last) = last.as_ref().filter(|last| last.versions == versions && last.problem == problem) {
            return last.tables.clone();
        }
        let notes = problem.clone().into_iter().chain(permission_problem(&self.folder)).collect();
        let mut tables = RecordedTables { notes, ..RecordedTables::default() };
        for (name, found) in found {
            match found {
                Ok(snapshot) => {
                    tables.notes.extend(write_problem(&name, &snapshot));
                    let table = stored_table(&self.folder.join(&name), &snapshot);
                    tables.tables.insert(name, table);
                }
                Err(reason) => {
                    tables.unreadable.insert(name, reason);
                }
            }
        }
        for (name, schema) in self.declared.iter().filter(|(name, _)| !versions.contains_key(*name)) {
            tables.tables.insert(name.clone(), empty_table(self.folder.join(name), schema.clone()));
        }
        let tables = Arc::new(tables);
        *last = Some(StoredVersions { versions, problem, tables: tables.clone() });
        tables
    }
}

/// The tables of a folder that cannot be opened. None can be read, as it is unknown which rows they lack.
#[derive(Debug)]
pub(super) struct ClosedTables {
    folder: PathBuf,
    declared: Vec<String>,
    reason: String,
    tables: OnceLock<Arc<RecordedTables>>,
}

impl ClosedTables {
    pub(super) fn new(folder: PathBuf, declared: &BTreeMap<String, TableDeclaration>, reason: String) -> Self {
        Self { folder, declared: declared.keys().cloned().collect(), reason, tables: OnceLock::new() }
    }
}

impl TableRecorder for ClosedTables {
    fn tables(&self) -> Arc<RecordedTables> {
        let list = || {
            let stored = open_tables(&self.folder).unwrap_or_default().into_iter().map(|(name, _)| name);
            let names = stored.chain(self.declared.iter().cloned());
            let unreadable = names.map(|name| (name, self.reason.clone())).collect();
            Arc::new(RecordedTables { unreadable, notes: vec![self.reason.clone()], ..RecordedTables::default() })
        };
        self.tables.get_or_init(list).clone()
    }
}

/// A table, or why it cannot be read.
type StoredTable = Result<Arc<DeltaSnapshot>, String>;

/// The tables by name, or why they cannot be read, which their writer reports, too. Also why not all are listed.
fn stored_snapshots(folder: &Path) -> (BTreeMap<String, StoredTable>, Option<String>) {
    // Callers read it, and need not know where the folder is.
    let for_callers = |error: &dyn std::error::Error| error.to_string().replace(&format!("{}/", folder.display()), "");
    let (opened, problem) = match open_tables(folder) {
        Ok(opened) => (opened, None),
        Err(error) => (Vec::new(), Some(format!("its folder cannot be listed: {}", cause(&error)))),
    };
    let snapshots = opened.into_iter().map(|(name, opened)| match opened {
        Ok(table) => (name, Ok(table.snapshot())),
        Err(error) => (name, Err(for_callers(&error))),
    });
    let mut tables: BTreeMap<String, StoredTable> = snapshots.collect();
    // A folder whose losses cannot be listed has no tables that can be read.
    match lost_tables(folder) {
        Ok(lost) => tables.extend(lost.into_iter().map(|(name, reason)| (name, Err(reason)))),
        Err(error) => tables.values_mut().for_each(|table| *table = Err(for_callers(&error))),
    }
    (tables, problem)
}

/// What the system reports, without the path of the folder.
fn cause(error: &IngestError) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

fn empty_table(folder: PathBuf, schema: SchemaRef) -> RecordedTable {
    RecordedTable {
        folder,
        schema,
        partition_columns: Vec::new(),
        files: Arc::default(),
        version: 0,
        recent: Arc::default(),
        lease: Arc::new(()),
        comment: Some("it has no rows yet".to_owned()),
    }
}

fn stored_table(folder: &Path, snapshot: &Arc<DeltaSnapshot>) -> RecordedTable {
    RecordedTable {
        folder: folder.to_owned(),
        schema: snapshot.schema.clone(),
        partition_columns: partition_columns(Some(snapshot)),
        files: Arc::new(source_files(&snapshot.files, Some(snapshot))),
        version: snapshot.version,
        recent: Arc::default(),
        lease: Arc::new(()),
        comment: Some("another process writes it; its latest rows may be missing".to_owned()),
    }
}
