//! A table that can be written to.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arrow::datatypes::Schema;
use serde_json::json;
use tidegate_core::private_file;
use uuid::Uuid;

use crate::log_files::{Action, Format, Metadata, Transaction, log_folder, sync_folder};
use crate::partition::PartitionBy;
use crate::schema::TableSchema;
use crate::snapshot::{DataFile, DeltaSnapshot};
use crate::state::TableState;
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
    /// `InvalidCommit` and the errors of columns if the commit does not fit; `Conflict` if another program wrote the
    /// version; `Unconfirmed` if it may or may not be on disk; `Io`.
    pub fn commit(&mut self, commit: DeltaCommit) -> Result<u64, DeltaError> {
        let now_ms = now_ms();
        features::check_writable(&self.state.protocol, &self.state.metadata, !commit.remove.is_empty())?;
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
