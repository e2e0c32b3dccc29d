//! A table that can be written to: which of its files to join, which rows are too old, and which files nobody refers to.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arrow::datatypes::{DataType, Schema, TimeUnit};
use serde_json::json;
use tidegate_core::private_file;
use uuid::Uuid;

use crate::calendar::{DAY_MICROSECONDS, HOUR_MICROSECONDS, parse_date};
use crate::log_files::{Action, Format, Metadata, Transaction, log_folder, sync_folder};
use crate::partition::{PartitionBy, next_month, parse_hour};
use crate::schema::TableSchema;
use crate::snapshot::{DataFile, DeltaSnapshot};
use crate::state::TableState;
use crate::statistics::StatisticsValue;
use crate::{DeltaError, TOMBSTONE_RETENTION_MS, features, log_files, state};

/// What a commit changes, all at once.
#[derive(Debug, Default)]
pub struct DeltaCommit {
    /// Data files that the table gets. They are on disk already.
    pub add: Vec<DataFile>,
    /// Data files that the table loses. They stay on disk.
    pub remove: Vec<Arc<DataFile>>,
    /// The columns from now on: the known ones and further nullable ones at their end. Any columns, if all files are
    /// removed and none is added that has others.
    pub schema: Option<Schema>,
    /// How far an application has written: [`DeltaTable::transaction_version`] returns it from now on.
    pub transaction: Option<(String, i64)>,
    /// What happens, for the history of the table, such as `WRITE` or `OPTIMIZE`. `OPTIMIZE` does not change rows.
    pub operation: &'static str,
}

/// The operation of commits that put the same rows into other files.
pub const OPTIMIZE: &str = "OPTIMIZE";

/// A table of which this program is the only writer. All its methods block on files.
#[derive(Debug)]
pub struct DeltaTable {
    folder: PathBuf,
    state: TableState,
    snapshot: Arc<DeltaSnapshot>,
}

impl DeltaTable {
    /// Creates a table in a folder, which may exist.
    ///
    /// # Errors
    /// `Exists` if the folder has a table; `UnsupportedType` and `InvalidSchema` if the columns cannot be stored; `Io`.
    pub fn create(folder: &Path, schema: &Schema, partition_by: &[PartitionBy]) -> Result<Self, DeltaError> {
        let schema = TableSchema::new(schema, partition_by)?;
        if log_files::list(folder)?.is_some_and(|log| !log.entries.is_empty() || !log.checkpoints.is_empty()) {
            return Err(DeltaError::Exists(folder.to_owned()));
        }
        let now_ms = now_ms();
        let metadata = new_metadata(&schema, now_ms)?;
        let protocol = features::protocol_for(&schema);
        private_file::create_folder(&log_folder(folder)).map_err(DeltaError::io(folder))?;
        sync_folder(folder)?;
        if let Some(parent) = folder.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            sync_folder(parent)?;
        }
        let actions = [
            commit_info("CREATE TABLE", now_ms),
            Action { protocol: Some(protocol.clone()), ..Action::default() },
            Action { meta_data: Some(metadata.clone()), ..Action::default() },
        ];
        log_files::write_entry(folder, 0, &actions)?;
        let state = TableState {
            version: 0,
            protocol,
            metadata,
            schema,
            files: Vec::new(),
            removed: Arc::default(),
            transactions: BTreeMap::new(),
        };
        Ok(Self::from_state(folder, state))
    }

    /// Opens the table of a folder. `None` if it has none.
    ///
    /// # Errors
    /// `UnsupportedFeature` if another writer used what this reader lacks; `Corrupt`; `Io`.
    pub fn open(folder: &Path) -> Result<Option<Self>, DeltaError> {
        Ok(TableState::load(folder)?.map(|state| Self::from_state(folder, state)))
    }

    fn from_state(folder: &Path, state: TableState) -> Self {
        let snapshot = Arc::new(state.to_snapshot());
        Self { folder: folder.to_owned(), state, snapshot }
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The newest version.
    #[must_use]
    pub fn snapshot(&self) -> Arc<DeltaSnapshot> {
        Arc::clone(&self.snapshot)
    }

    /// What the table is partitioned by.
    #[must_use]
    pub fn partition_by(&self) -> Vec<PartitionBy> {
        self.state.schema.partitions.iter().map(|column| column.partition_by.clone()).collect()
    }

    /// How far an application has written, if it has.
    #[must_use]
    pub fn transaction_version(&self, application: &str) -> Option<i64> {
        self.state.transactions.get(application).copied()
    }

    /// Writes the next version, and returns it when it is on disk.
    ///
    /// # Errors
    /// `InvalidCommit` and the errors of columns if the commit does not fit; `UnsupportedWriterFeature`; `Conflict` if
    /// another program wrote the version; `Unconfirmed` if it may or may not be on disk; `Io`.
    pub fn commit(&mut self, commit: DeltaCommit) -> Result<u64, DeltaError> {
        let now_ms = now_ms();
        let removes = !commit.remove.is_empty() && commit.operation != OPTIMIZE;
        features::check_writable(&self.state.protocol, &self.state.metadata, removes)?;
        let mut state = self.next_state(&commit, now_ms)?;
        check_added(&self.folder, &commit, &state.schema)?;
        let actions = self.actions(&commit, &state, now_ms)?;
        log_files::write_entry(&self.folder, state.version, &actions)?;
        state.files.extend(commit.add.into_iter().map(Arc::new));
        self.state = state;
        self.snapshot = Arc::new(self.state.to_snapshot());
        if self.state.version.is_multiple_of(state::CHECKPOINT_INTERVAL) {
            self.checkpoint_or_warn(now_ms);
        }
        Ok(self.state.version)
    }

    /// Writes a checkpoint of the newest version, and deletes old parts of the log that it replaces.
    ///
    /// # Errors
    /// `Io`, `Parquet`.
    pub fn checkpoint(&self) -> Result<(), DeltaError> {
        state::write(&self.folder, &self.state, now_ms())?;
        state::clean_up(&self.folder)
    }

    /// The commit is done, whatever becomes of the checkpoint: the log has all versions.
    fn checkpoint_or_warn(&mut self, now_ms: i64) {
        let removed = Arc::make_mut(&mut self.state.removed);
        removed.retain(|_, removed_ms| now_ms - *removed_ms <= TOMBSTONE_RETENTION_MS);
        if let Err(error) = self.checkpoint() {
            tracing::warn!(table = %self.folder.display(), %error, "no checkpoint of the table could be written");
        }
    }

    /// The state after the commit, without the files that it adds.
    fn next_state(&self, commit: &DeltaCommit, now_ms: i64) -> Result<TableState, DeltaError> {
        let mut state = self.state.clone();
        state.version += 1;
        let known: HashSet<_> = state.files.iter().map(|file| file.path.clone()).collect();
        let mut removed = HashSet::new();
        for file in &commit.remove {
            if !known.contains(&file.path) || !removed.insert(file.path.as_str()) {
                return Err(DeltaError::InvalidCommit(format!("\"{}\" is no file of the table", file.path)));
            }
        }
        let mut added = HashSet::new();
        for file in &commit.add {
            if known.contains(&file.path) || !added.insert(file.path.as_str()) {
                return Err(DeltaError::InvalidCommit(format!("\"{}\" is in the table already", file.path)));
            }
        }
        if !removed.is_empty() {
            state.files.retain(|file| !removed.contains(file.path.as_str()));
            let tombstones = Arc::make_mut(&mut state.removed);
            tombstones.extend(removed.into_iter().map(|path| (path.to_owned(), now_ms)));
        }
        if let Some(schema) = &commit.schema {
            state.schema = self.state.schema.with_declared(schema)?;
            if !state.files.is_empty() {
                check_evolution(&self.state.schema, &state.schema)?;
            }
            state.metadata.schema_string = state.schema.to_json()?;
            let needed = features::protocol_for(&state.schema);
            if !features::includes(&state.protocol, &needed) {
                state.protocol = features::merge(&state.protocol, needed);
            }
        }
        if let Some((application, version)) = &commit.transaction {
            state.transactions.insert(application.clone(), *version);
        }
        Ok(state)
    }

    fn actions(&self, commit: &DeltaCommit, state: &TableState, now_ms: i64) -> Result<Vec<Action>, DeltaError> {
        let data_change = commit.operation != OPTIMIZE;
        let mut actions = vec![commit_info(commit.operation, now_ms)];
        if state.protocol != self.state.protocol {
            actions.push(Action { protocol: Some(state.protocol.clone()), ..Action::default() });
        }
        if state.metadata != self.state.metadata {
            actions.push(Action { meta_data: Some(state.metadata.clone()), ..Action::default() });
        }
        if let Some((application, version)) = &commit.transaction {
            let txn = Transaction { app_id: application.clone(), version: *version, last_updated: Some(now_ms) };
            actions.push(Action { txn: Some(txn), ..Action::default() });
        }
        for file in &commit.remove {
            let remove = file.to_remove(&self.state.schema, now_ms, data_change);
            actions.push(Action { remove: Some(remove), ..Action::default() });
        }
        for file in &commit.add {
            actions.push(Action { add: Some(file.to_add(&state.schema, data_change)?), ..Action::default() });
        }
        Ok(actions)
    }
}

/// Added files must be where the log will say, whole.
fn check_added(folder: &Path, commit: &DeltaCommit, schema: &TableSchema) -> Result<(), DeltaError> {
    for file in &commit.add {
        let path = folder.join(&file.path);
        let bytes = fs::metadata(&path).map_err(DeltaError::io(&path))?.len();
        if bytes != file.bytes || file.partition_values.len() != schema.partitions.len() {
            return Err(DeltaError::InvalidCommit(format!("\"{}\" is not the file that was written", file.path)));
        }
    }
    Ok(())
}

/// Columns that files have must stay as they are; further ones must be nullable.
fn check_evolution(known: &TableSchema, next: &TableSchema) -> Result<(), DeltaError> {
    let invalid = |column: &str, reason: &str| Err(DeltaError::InvalidSchema(format!("column \"{column}\" {reason}")));
    for (position, field) in known.declared.fields().iter().enumerate() {
        match next.declared.fields().get(position) {
            Some(next) if next == field => {}
            _ => return invalid(field.name(), "must stay as it is while the table has rows"),
        }
    }
    for field in next.declared.fields().iter().skip(known.declared.fields().len()) {
        if !field.is_nullable() {
            return invalid(field.name(), "must be nullable: the table has rows without it");
        }
    }
    Ok(())
}

fn new_metadata(schema: &TableSchema, now_ms: i64) -> Result<Metadata, DeltaError> {
    let configuration = [
        ("delta.checkpointInterval", state::CHECKPOINT_INTERVAL.to_string()),
        ("delta.deletedFileRetentionDuration", "interval 1 days".to_owned()),
        ("delta.logRetentionDuration", "interval 1 days".to_owned()),
    ];
    Ok(Metadata {
        id: Uuid::new_v4().to_string(),
        name: None,
        description: None,
        format: Format { provider: "parquet".to_owned(), options: BTreeMap::new() },
        schema_string: schema.to_json()?,
        partition_columns: schema.partitions.iter().map(|column| column.name.clone()).collect(),
        created_time: Some(now_ms),
        configuration: configuration.into_iter().map(|(key, value)| (key.to_owned(), Some(value))).collect(),
    })
}

fn commit_info(operation: &str, now_ms: i64) -> Action {
    let info = json!({
        "timestamp": now_ms,
        "operation": operation,
        "operationParameters": {},
        "engineInfo": concat!("tidegate/", env!("CARGO_PKG_VERSION")),
    });
    Action { commit_info: Some(info), ..Action::default() }
}

/// Milliseconds since 1970-01-01 UTC.
pub(super) fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).ok().and_then(|age| i64::try_from(age.as_millis()).ok()).unwrap_or(0)
}

/// When files are joined.
#[derive(Debug, Clone, Copy)]
pub struct CompactionOptions {
    /// The size of the files that compaction aims at. Files of at least half of it are left as they are.
    pub target_bytes: u64,
    /// The fewest files that are worth to be joined.
    pub files_min: usize,
}

impl Default for CompactionOptions {
    fn default() -> Self {
        Self { target_bytes: 128 << 20, files_min: 4 }
    }
}

/// Groups of small files, each of one partition, that are to become one file each. Files are joined in the order in which
/// they were added.
#[must_use]
pub fn plan_compaction(snapshot: &DeltaSnapshot, options: CompactionOptions) -> Vec<Vec<Arc<DataFile>>> {
    let mut partitions: BTreeMap<&[Option<String>], Vec<&Arc<DataFile>>> = BTreeMap::new();
    for file in snapshot.files.iter().filter(|file| file.bytes < options.target_bytes / 2) {
        partitions.entry(&file.partition_values).or_default().push(file);
    }
    let mut groups = Vec::new();
    for files in partitions.into_values() {
        let mut group: Vec<Arc<DataFile>> = Vec::new();
        let mut bytes = 0;
        for file in files {
            if bytes + file.bytes > options.target_bytes {
                groups.push(std::mem::take(&mut group));
                bytes = 0;
            }
            bytes += file.bytes;
            group.push(Arc::clone(file));
        }
        groups.push(group);
    }
    groups.retain(|group| group.len() >= options.files_min.max(2));
    groups
}

/// The files of which all rows have a time before `cutoff`, in microseconds since 1970-01-01 UTC. A file with rows whose
/// time is null or unknown is not among them. In a table by day (or hour or month) of the column, no file has rows of two
/// days, so that the answer is exact for a cutoff at the beginning of one.
///
/// # Errors
/// `InvalidSchema` if the table has no such column, or if it is neither a time nor a date.
pub fn expired_files(
    snapshot: &DeltaSnapshot,
    time_column: &str,
    cutoff: i64,
) -> Result<Vec<Arc<DataFile>>, DeltaError> {
    let field = snapshot
        .schema
        .field_with_name(time_column)
        .map_err(|_| DeltaError::InvalidSchema(format!("the table has no column \"{time_column}\"")))?;
    let unit = UnitOfTime::new(field.data_type())
        .ok_or_else(|| DeltaError::InvalidSchema(format!("column \"{time_column}\" is neither a time nor a date")))?;
    let is_expired = |file: &&Arc<DataFile>| {
        let end = partition_end(snapshot, file, time_column);
        let maximum = statistics_maximum(file, time_column).map(|value| unit.to_microseconds(value));
        end.is_some_and(|end| end <= i128::from(cutoff)) || maximum.is_some_and(|time| time < i128::from(cutoff))
    };
    Ok(snapshot.files.iter().filter(is_expired).cloned().collect())
}

/// How a number is a time.
#[derive(Clone, Copy)]
enum UnitOfTime {
    /// A number is that many microseconds.
    Microseconds(i128),
    /// So many numbers are a microsecond.
    PerMicrosecond(i128),
}

impl UnitOfTime {
    fn new(data_type: &DataType) -> Option<Self> {
        Some(match data_type {
            DataType::Timestamp(TimeUnit::Second, _) => Self::Microseconds(1_000_000),
            DataType::Timestamp(TimeUnit::Millisecond, _) | DataType::Date64 => Self::Microseconds(1_000),
            DataType::Timestamp(TimeUnit::Microsecond, _) => Self::Microseconds(1),
            DataType::Timestamp(TimeUnit::Nanosecond, _) => Self::PerMicrosecond(1_000),
            DataType::Date32 => Self::Microseconds(i128::from(DAY_MICROSECONDS)),
            _ => return None,
        })
    }

    /// Rounded down: a time in the microsecond before the cutoff is before it.
    fn to_microseconds(self, value: i128) -> i128 {
        match self {
            Self::Microseconds(factor) => value * factor,
            Self::PerMicrosecond(divisor) => value.div_euclid(divisor),
        }
    }
}

/// The greatest time in a file without null times.
fn statistics_maximum(file: &DataFile, column: &str) -> Option<i128> {
    let statistics = file.column_statistics(column)?;
    match (&statistics.maximum, statistics.null_count) {
        (Some(StatisticsValue::Integer(maximum)), Some(0)) => Some(*maximum),
        _ => None,
    }
}

/// The time in microseconds before which all rows of a file are, by its partition.
fn partition_end(snapshot: &DeltaSnapshot, file: &DataFile, column: &str) -> Option<i128> {
    let ends = snapshot.partition_columns.iter().zip(&file.partition_values).filter_map(|(partition, value)| {
        let value = value.as_deref()?;
        let day = i128::from(DAY_MICROSECONDS);
        match &partition.partition_by {
            PartitionBy::Day(source) if source == column => Some((i128::from(parse_date(value)?) + 1) * day),
            PartitionBy::Month(source) if source == column => Some(i128::from(next_month(parse_date(value)?)) * day),
            PartitionBy::Hour(source) if source == column => {
                Some((i128::from(parse_hour(value)?) + 1) * i128::from(HOUR_MICROSECONDS))
            }
            _ => None,
        }
    });
    ends.min()
}

/// Data files in the folder of a table that its newest version does not have, and that were neither written nor removed
/// from it since `older_than`: what interrupted writes left, and what no reader has open any more. The caller chooses
/// `older_than` before the start of all writers and readers. Removals are known for
/// [`crate::TOMBSTONE_RETENTION_MS`]; a file removed before that counts as old.
///
/// # Errors
/// `Io`.
pub fn unreferenced_files(
    folder: &Path,
    snapshot: &DeltaSnapshot,
    older_than: SystemTime,
) -> Result<Vec<PathBuf>, DeltaError> {
    let older_than_ms = older_than.duration_since(UNIX_EPOCH).map_or(0, |age| age.as_millis());
    let mut kept: HashSet<PathBuf> = snapshot.paths(folder).collect();
    let recently_removed =
        snapshot.removed.iter().filter(|(_, ms)| u128::try_from(**ms).map_or(true, |ms| ms >= older_than_ms));
    kept.extend(recently_removed.map(|(path, _)| folder.join(path)));
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(DeltaError::io(&folder))? {
            let entry = entry.map_err(DeltaError::io(&folder))?;
            let path = entry.path();
            let name = entry.file_name();
            let is_hidden = name.to_str().is_none_or(|name| name.starts_with(['_', '.']) && !name.contains('='));
            let metadata = match entry.metadata() {
                Ok(metadata) => metadata,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(DeltaError::io(&path)(error)),
            };
            if is_hidden {
                continue;
            }
            if metadata.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "parquet")
                && !kept.contains(&path)
                && metadata.modified().map_err(DeltaError::io(&path))? < older_than
            {
                found.push(path);
            }
        }
    }
    Ok(found)
}
