//! The tables of an ingest folder, as the engine reads them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use tidegate_engines::{ColumnRange, SourceFile, SourceTable, SourceTables, TableSource};
use tidegate_ingest::delta::{DataFile, DeltaSnapshot, DeltaTable, StatisticsValue};
use tidegate_ingest::{IngestFolder, IngestTableView};

/// The tables of a folder that this process writes: what is in data files, and what is only in the log.
#[derive(Debug)]
pub(super) struct WrittenTables {
    folder: Arc<IngestFolder>,
    last: Mutex<WrittenViews>,
}

#[derive(Debug, Default)]
struct WrittenViews {
    views: Vec<IngestTableView>,
    tables: Arc<SourceTables>,
}

impl WrittenTables {
    pub(super) fn new(folder: Arc<IngestFolder>) -> Self {
        Self { folder, last: Mutex::default() }
    }
}

impl TableSource for WrittenTables {
    fn tables(&self) -> Arc<SourceTables> {
        let mut last = self.last.lock();
        let views = self.folder.views();
        let is_same =
            views.len() == last.views.len() && views.iter().zip(&last.views).all(|(now, last)| now.is_same(last));
        if !is_same {
            let table = |view: &IngestTableView| {
                (view.table().to_owned(), written_table(view, last.tables.tables.get(view.table())))
            };
            let tables = Arc::new(SourceTables { tables: views.iter().map(table).collect() });
            *last = WrittenViews { views, tables };
        }
        last.tables.clone()
    }
}

fn written_table(view: &IngestTableView, before: Option<&SourceTable>) -> SourceTable {
    let files = source_files(view.files(), view.snapshot().map(Arc::as_ref));
    let files = match before {
        Some(before) if has_same_names(&before.files, &files) => before.files.clone(),
        _ => Arc::new(files),
    };
    SourceTable {
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

fn has_same_names(before: &[SourceFile], now: &[SourceFile]) -> bool {
    before.len() == now.len() && before.iter().zip(now).all(|(before, now)| before.name == now.name)
}

/// The names of the partition columns that are declared. Computed ones are for other readers.
fn partition_columns(snapshot: Option<&DeltaSnapshot>) -> Vec<String> {
    let columns = snapshot.map(|snapshot| snapshot.partition_columns.iter()).into_iter().flatten();
    columns.filter(|column| !column.is_derived()).map(|column| column.name.clone()).collect()
}

fn source_files(files: &[Arc<DataFile>], snapshot: Option<&DeltaSnapshot>) -> Vec<SourceFile> {
    files.iter().map(|file| source_file(file, snapshot)).collect()
}

fn source_file(file: &DataFile, snapshot: Option<&DeltaSnapshot>) -> SourceFile {
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
    SourceFile {
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
    last: Mutex<StoredVersions>,
}

#[derive(Debug, Default)]
struct StoredVersions {
    versions: BTreeMap<String, u64>,
    tables: Arc<SourceTables>,
}

impl StoredTables {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, last: Mutex::default() }
    }
}

impl TableSource for StoredTables {
    fn tables(&self) -> Arc<SourceTables> {
        let mut last = self.last.lock();
        let found: BTreeMap<String, Arc<DeltaSnapshot>> = stored_snapshots(&self.folder).collect();
        let versions = found.iter().map(|(name, snapshot)| (name.clone(), snapshot.version)).collect();
        if last.versions != versions {
            let table = |(name, snapshot): (&String, &Arc<DeltaSnapshot>)| {
                (name.clone(), stored_table(&self.folder.join(name), snapshot))
            };
            let tables = Arc::new(SourceTables { tables: found.iter().map(table).collect() });
            *last = StoredVersions { versions, tables };
        }
        last.tables.clone()
    }
}

fn stored_snapshots(folder: &Path) -> impl Iterator<Item = (String, Arc<DeltaSnapshot>)> + use<> {
    let folders = std::fs::read_dir(folder).into_iter().flatten().flatten();
    folders.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        // A table that cannot be read is reported by the process that writes it.
        let table = DeltaTable::open(&entry.path()).ok()??;
        Some((name, table.snapshot()))
    })
}

fn stored_table(folder: &Path, snapshot: &Arc<DeltaSnapshot>) -> SourceTable {
    SourceTable {
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
