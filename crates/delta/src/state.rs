//! The state of a table that its log adds up to: the newest checkpoint, then the entries after it.
//!
//! A checkpoint is the state as a Parquet file, from which the log is read on.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use arrow::json::{LineDelimitedWriter, ReaderBuilder};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::{ArrowWriter, ProjectionMask};
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use tidegate_core::private_file;

use crate::log_files::{
    Action, Add, Checkpoint, LogListing, Metadata, Protocol, Remove, Transaction, checkpoint_path, entry_path, list,
    log_folder, read_actions, sync_folder, temporary_path, write_last_checkpoint,
};
use crate::partition::{decode_path, encode_path};
use crate::schema::TableSchema;
use crate::snapshot::{DataFile, DeltaSnapshot};
use crate::{DeltaError, FileAccess, TOMBSTONE_RETENTION_MS, features, log_files};

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
            unsupported_writer_feature: features::unsupported_writer_feature(&self.protocol, &self.metadata),
            is_append_only: features::is_append_only(&self.metadata),
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

/// Calls `apply` with the actions that make up the newest version, in order, and returns its number.
pub(super) fn read_log(
    table: &Path,
    listing: &LogListing,
    open: FileAccess<'_>,
    mut apply: impl FnMut(Action) -> Result<(), DeltaError>,
) -> Result<u64, DeltaError> {
    let newest = listing.newest_version();
    let newest = newest.ok_or_else(|| DeltaError::corrupt(&log_folder(table), "it has no version of a table"))?;
    let next = match listing.newest_checkpoint() {
        Some(checkpoint) => {
            read_checkpoint(table, &checkpoint, open, &mut apply)?;
            checkpoint.version + 1
        }
        None => 0,
    };
    check_entries(table, listing, next, newest)?;
    for version in next..=newest {
        read_actions(&entry_path(table, version), open, &mut apply)?;
    }
    Ok(newest)
}

/// The entries from `next` to `newest` must all exist: what is missing may have removed files.
fn check_entries(table: &Path, listing: &LogListing, next: u64, newest: u64) -> Result<(), DeltaError> {
    let first_missing = (next..=newest).find(|version| listing.entries.binary_search(version).is_err());
    match first_missing {
        Some(missing) => Err(DeltaError::corrupt(
            &entry_path(table, missing),
            "this entry of the log is missing, and there is no checkpoint after it",
        )),
        None => Ok(()),
    }
}

/// A checkpoint is written with each version that this number divides.
pub(super) const CHECKPOINT_INTERVAL: u64 = 100;
/// Entries of the log and checkpoints that a newer checkpoint replaces are deleted after this time.
const LOG_RETENTION: Duration = Duration::from_secs(24 * 60 * 60);
/// Actions that are converted at once.
const BATCH_ACTIONS: usize = 4096;
/// The kinds of actions in a checkpoint that this reader needs.
const KINDS: [&str; 6] = ["protocol", "metaData", "txn", "remove", "add", "sidecar"];
/// The end of the names of members that have the same as another one, with types of the table.
const PARSED_SUFFIX: &str = "_parsed";
/// The folder of the sidecars, in that of the log.
const SIDECAR_FOLDER: &str = "_sidecars";

/// Writes a checkpoint of the state.
pub(super) fn write(table: &Path, state: &TableState, now_ms: i64) -> Result<(), DeltaError> {
    let temporary = temporary_path(table);
    let path = checkpoint_path(table, state.version);
    let actions = actions(state, now_ms)?;
    let written = write_file(&temporary, &actions).and_then(|bytes| {
        fs::rename(&temporary, &path).map_err(DeltaError::io(&path))?;
        sync_folder(&log_folder(table))?;
        Ok(bytes)
    });
    if written.is_err() {
        // Nothing refers to the file; one that stays is removed later.
        let _ = fs::remove_file(&temporary);
    }
    write_last_checkpoint(table, state.version, actions.len() as u64, written?)
}

/// The state as actions.
fn actions(state: &TableState, now_ms: i64) -> Result<Vec<Action>, DeltaError> {
    let mut actions = vec![
        Action { protocol: Some(state.protocol.clone()), ..Action::default() },
        Action { meta_data: Some(state.metadata.clone()), ..Action::default() },
    ];
    for (app_id, version) in &state.transactions {
        let txn = Transaction { app_id: app_id.clone(), version: *version, last_updated: None };
        actions.push(Action { txn: Some(txn), ..Action::default() });
    }
    for (path, removed_ms) in state.removed.iter().filter(|(_, ms)| now_ms - **ms <= TOMBSTONE_RETENTION_MS) {
        let remove = Remove {
            path: encode_path(path),
            deletion_timestamp: Some(*removed_ms),
            data_change: false,
            extended_file_metadata: None,
            partition_values: None,
            size: None,
            deletion_vector: None,
        };
        actions.push(Action { remove: Some(remove), ..Action::default() });
    }
    for file in &state.files {
        actions.push(Action { add: Some(file.to_add(&state.schema, false)?), ..Action::default() });
    }
    Ok(actions)
}

fn write_file(path: &Path, actions: &[Action]) -> Result<u64, DeltaError> {
    let file = private_file::create_new(path).map_err(DeltaError::io(path))?;
    let schema = checkpoint_schema();
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut writer =
        ArrowWriter::try_new(file, Arc::clone(&schema), Some(properties)).map_err(DeltaError::parquet(path))?;
    let mut decoder = ReaderBuilder::new(schema).with_batch_size(BATCH_ACTIONS).build_decoder()?;
    for part in actions.chunks(BATCH_ACTIONS) {
        decoder.serialize(part)?;
        if let Some(batch) = decoder.flush()? {
            writer.write(&batch).map_err(DeltaError::parquet(path))?;
        }
    }
    writer.finish().map_err(DeltaError::parquet(path))?;
    writer.inner().sync_all().map_err(DeltaError::io(path))?;
    Ok(writer.bytes_written() as u64)
}

/// Calls `apply` with each action of a checkpoint.
fn read_checkpoint(
    table: &Path,
    checkpoint: &Checkpoint,
    open: FileAccess<'_>,
    apply: &mut dyn FnMut(Action) -> Result<(), DeltaError>,
) -> Result<(), DeltaError> {
    let folder = log_folder(table);
    let mut sidecars = Vec::new();
    for name in &checkpoint.files {
        let mut collect = |mut action: Action| {
            sidecars.extend(action.sidecar.take().map(|sidecar| sidecar.path));
            apply(action)
        };
        let path = folder.join(name);
        if name.ends_with(".json") {
            read_actions(&path, open, &mut collect)?;
        } else {
            read_parquet(&path, open, &mut collect)?;
        }
    }
    for sidecar in sidecars {
        // The folder is always the same, so that the name is enough.
        let name = sidecar.rsplit('/').next().and_then(decode_path);
        let name = name.filter(|name| !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\']));
        let name = name.ok_or_else(|| DeltaError::corrupt(&folder, format!("\"{sidecar}\" is no sidecar")))?;
        read_parquet(&folder.join(SIDECAR_FOLDER).join(name), open, apply)?;
    }
    Ok(())
}

fn read_parquet(
    path: &Path,
    open: FileAccess<'_>,
    apply: &mut dyn FnMut(Action) -> Result<(), DeltaError>,
) -> Result<(), DeltaError> {
    let file = open(path).map_err(DeltaError::io(path))?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(DeltaError::parquet(path))?;
    let leaves = builder.parquet_schema().columns().iter().enumerate();
    let known = leaves.filter(|(_, leaf)| is_known(leaf.path().parts())).map(|(position, _)| position);
    let mask = ProjectionMask::leaves(builder.parquet_schema(), known.collect::<Vec<_>>());
    let reader =
        builder.with_projection(mask).with_batch_size(BATCH_ACTIONS).build().map_err(DeltaError::parquet(path))?;
    for batch in reader {
        for line in to_lines(&batch?)?.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            apply(serde_json::from_slice(line).map_err(|error| DeltaError::corrupt(path, error))?)?;
        }
    }
    Ok(())
}

/// Whether a column of a checkpoint is needed, by its path.
fn is_known(path: &[String]) -> bool {
    let [kind, member, ..] = path else { return false };
    KINDS.contains(&kind.as_str()) && !member.ends_with(PARSED_SUFFIX)
}

fn to_lines(batch: &RecordBatch) -> Result<Vec<u8>, DeltaError> {
    let mut writer = LineDelimitedWriter::new(Vec::new());
    writer.write(batch)?;
    writer.finish()?;
    Ok(writer.into_inner())
}

/// Deletes what checkpoints older than a day made superfluous: the entries and checkpoints before the newest of them, and
/// files whose writing was interrupted.
pub(super) fn clean_up(table: &Path) -> Result<(), DeltaError> {
    let Some(listing) = list(table)? else { return Ok(()) };
    let is_old = |path: &Path| {
        let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
        modified.is_ok_and(|modified| SystemTime::now().duration_since(modified).is_ok_and(|age| age > LOG_RETENTION))
    };
    let oldest = listing.checkpoints.iter().rev().find(|version| is_old(&checkpoint_path(table, **version)));
    if let Some(oldest) = oldest {
        let entries = listing.entries.iter().filter(|version| *version < oldest);
        let checkpoints = listing.checkpoints.iter().filter(|version| *version < oldest);
        // Entries go first and in order, so that an interruption leaves no version without what it needs.
        for path in entries
            .map(|version| entry_path(table, *version))
            .chain(checkpoints.map(|version| checkpoint_path(table, *version)))
        {
            fs::remove_file(&path).map_err(DeltaError::io(&path))?;
        }
    }
    for path in listing.temporary.iter().filter(|path| is_old(path)) {
        fs::remove_file(path).map_err(DeltaError::io(path))?;
    }
    Ok(())
}

fn text(name: &str) -> Field {
    Field::new(name, DataType::Utf8, true)
}

fn long(name: &str) -> Field {
    Field::new(name, DataType::Int64, true)
}

fn texts(name: &str) -> Field {
    Field::new_list(name, Field::new("element", DataType::Utf8, true), true)
}

fn map(name: &str) -> Field {
    Field::new_map(name, "key_value", Field::new("key", DataType::Utf8, false), text("value"), false, true)
}

fn group(name: &str, fields: Vec<Field>) -> Field {
    Field::new(name, DataType::Struct(Fields::from(fields)), true)
}

/// The columns of a checkpoint.
fn checkpoint_schema() -> SchemaRef {
    let integer = |name: &str| Field::new(name, DataType::Int32, true);
    let boolean = |name: &str| Field::new(name, DataType::Boolean, true);
    let protocol = vec![
        integer("minReaderVersion"),
        integer("minWriterVersion"),
        texts("readerFeatures"),
        texts("writerFeatures"),
    ];
    let metadata = vec![
        text("id"),
        text("name"),
        text("description"),
        group("format", vec![text("provider"), map("options")]),
        text("schemaString"),
        texts("partitionColumns"),
        long("createdTime"),
        map("configuration"),
    ];
    let add = vec![
        text("path"),
        map("partitionValues"),
        long("size"),
        long("modificationTime"),
        boolean("dataChange"),
        text("stats"),
        map("tags"),
    ];
    Arc::new(Schema::new(vec![
        group("protocol", protocol),
        group("metaData", metadata),
        group("txn", vec![text("appId"), long("version"), long("lastUpdated")]),
        group("remove", vec![text("path"), long("deletionTimestamp"), boolean("dataChange")]),
        group("add", add),
    ]))
}
