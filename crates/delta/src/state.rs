//! The state of a table that its log adds up to.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use super::action::{Action, Add, Metadata, Protocol, Transaction};
use super::log_files::{self, log_folder};
use super::log_reader::read_log;
use super::partition::decode_path;
use super::schema::TableSchema;
use super::snapshot::{DataFile, DeltaSnapshot};
use super::{DeltaError, features};

/// The state of a table at a version.
#[derive(Debug, Clone)]
pub(super) struct TableState {
    pub(super) version: u64,
    pub(super) protocol: Protocol,
    pub(super) metadata: Metadata,
    pub(super) schema: TableSchema,
    pub(super) files: Vec<Arc<DataFile>>,
    /// Removed files, with the time in milliseconds since 1970-01-01 UTC.
    pub(super) removed: Arc<HashMap<String, i64>>,
    pub(super) transactions: BTreeMap<String, i64>,
}

impl TableState {
    /// The state as readers see it.
    pub(super) fn to_snapshot(&self) -> DeltaSnapshot {
        DeltaSnapshot {
            version: self.version,
            schema: Arc::clone(&self.schema.declared),
            partition_columns: Arc::clone(&self.schema.partitions),
            files: self.files.clone(),
            stored_schema: Arc::clone(&self.schema.stored),
            removed: Arc::clone(&self.removed),
        }
    }

    /// Reads the newest state from the last checkpoint and the entries after it. `None` if there is no table.
    pub(super) fn load(table: &Path) -> Result<Option<Self>, DeltaError> {
        let listing = log_files::list(table)?.filter(|listing| listing.newest_version().is_some());
        let Some(listing) = listing else { return Ok(None) };
        let mut replay = Replay::default();
        let version = read_log(table, &listing, &open_file, |action| replay.apply(action))?;
        replay.finish(table, version).map(Some)
    }
}

fn open_file(path: &Path) -> std::io::Result<File> {
    File::open(path)
}

/// Actions in order, applied.
#[derive(Debug, Default)]
struct Replay {
    protocol: Option<Protocol>,
    metadata: Option<Metadata>,
    /// Files by their path, with their position among all added files.
    files: HashMap<String, (u64, Add)>,
    added: u64,
    removed: HashMap<String, i64>,
    transactions: BTreeMap<String, i64>,
}

impl Replay {
    fn apply(&mut self, action: Action) -> Result<(), DeltaError> {
        if let Some(protocol) = action.protocol {
            self.protocol = Some(protocol);
        }
        if let Some(metadata) = action.meta_data {
            self.metadata = Some(metadata);
        }
        if let Some(Transaction { app_id, version, .. }) = action.txn {
            self.transactions.insert(app_id, version);
        }
        if let Some(remove) = action.remove {
            if remove.deletion_vector.is_some() {
                return Err(DeltaError::UnsupportedFeature("deletionVectors".to_owned()));
            }
            let path = decode_path(&remove.path);
            self.files.remove(path.as_ref().unwrap_or(&remove.path));
            if let Some(path) = path {
                self.removed.insert(path, remove.deletion_timestamp.unwrap_or_default());
            }
        }
        if let Some(add) = action.add {
            // Writers encode the same path in different ways.
            let path = decode_path(&add.path).unwrap_or_else(|| add.path.clone());
            self.removed.remove(&path);
            self.added += 1;
            self.files.insert(path, (self.added, add));
        }
        Ok(())
    }

    fn finish(self, table: &Path, version: u64) -> Result<TableState, DeltaError> {
        let folder = log_folder(table);
        let protocol = self.protocol.ok_or_else(|| DeltaError::corrupt(&folder, "the log has no protocol"))?;
        let metadata = self.metadata.ok_or_else(|| DeltaError::corrupt(&folder, "the log has no metadata"))?;
        features::check_readable(&protocol, &metadata)?;
        let schema = TableSchema::from_json(&metadata.schema_string, &metadata.partition_columns)?;
        let mut adds: Vec<_> = self.files.into_values().collect();
        adds.sort_unstable_by_key(|(position, _)| *position);
        let files = adds
            .into_iter()
            .map(|(_, add)| DataFile::from_add(table, add, &schema).map(Arc::new))
            .collect::<Result<_, _>>()?;
        Ok(TableState {
            version,
            protocol,
            metadata,
            schema,
            files,
            removed: Arc::new(self.removed),
            transactions: self.transactions,
        })
    }
}
