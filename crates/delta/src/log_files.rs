//! The files of a table's log: names, entries, and how they reach the disk. The actions are named as in the protocol.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tidegate_core::private_file;
use uuid::Uuid;

use crate::{DeltaError, FileAccess};

/// The folder of the log, below that of the table.
const LOG_FOLDER: &str = "_delta_log";
/// The file that names the last checkpoint.
const LAST_CHECKPOINT: &str = "_last_checkpoint";
/// The end of the names of files that are being written.
const TEMPORARY_EXTENSION: &str = "tmp";
/// A file with more bytes of JSON is not read.
const JSON_BYTES_MAX: u64 = 1 << 30;

/// What is in the folder of a log.
#[derive(Debug, Default)]
pub(super) struct LogListing {
    /// Versions with an entry, ascending.
    pub(super) entries: Vec<u64>,
    /// Versions with a checkpoint in one file, ascending.
    pub(super) checkpoints: Vec<u64>,
    /// The names of checkpoints in one file with a unique name, by version.
    unique_checkpoints: BTreeMap<u64, String>,
    /// The names of the files of a checkpoint, by version and number of files.
    checkpoint_parts: BTreeMap<(u64, usize), Vec<String>>,
    /// Files that were being written.
    pub(super) temporary: Vec<PathBuf>,
}

/// A checkpoint with all its files.
#[derive(Debug)]
pub(super) struct Checkpoint {
    pub(super) version: u64,
    /// Their names in the folder of the log, in order.
    pub(super) files: Vec<String>,
}

impl LogListing {
    /// The newest checkpoint that is complete.
    pub(super) fn newest_checkpoint(&self) -> Option<Checkpoint> {
        let in_one_file = self.checkpoints.last().map(|version| (*version, vec![checkpoint_name(*version)]));
        let unique = self.unique_checkpoints.last_key_value().map(|(version, name)| (*version, vec![name.clone()]));
        let complete = self.checkpoint_parts.iter().rev().find(|((_, count), names)| names.len() == *count);
        let in_parts = complete.map(|((version, _), names)| {
            let mut names = names.clone();
            names.sort_unstable();
            (*version, names)
        });
        let newest = [in_parts, unique, in_one_file].into_iter().flatten().max_by_key(|(version, _)| *version);
        newest.map(|(version, files)| Checkpoint { version, files })
    }

    /// The newest version. `None` if the log is empty.
    pub(super) fn newest_version(&self) -> Option<u64> {
        self.entries.last().copied().max(self.newest_checkpoint().map(|checkpoint| checkpoint.version))
    }

    fn add_checkpoint(&mut self, version: u64, rest: &str, name: &str) {
        match rest.split('.').collect::<Vec<_>>().as_slice() {
            ["parquet"] => self.checkpoints.push(version),
            [_, parts, "parquet"] => {
                if let Ok(parts) = parts.parse() {
                    self.checkpoint_parts.entry((version, parts)).or_default().push(name.to_owned());
                }
            }
            [_, "parquet" | "json"] => {
                self.unique_checkpoints.insert(version, name.to_owned());
            }
            _ => {}
        }
    }
}

/// The folder of the log.
pub(super) fn log_folder(table: &Path) -> PathBuf {
    table.join(LOG_FOLDER)
}

/// The file of an entry.
pub(super) fn entry_path(table: &Path, version: u64) -> PathBuf {
    log_folder(table).join(format!("{version:020}.json"))
}

/// The file of a checkpoint.
pub(super) fn checkpoint_path(table: &Path, version: u64) -> PathBuf {
    log_folder(table).join(checkpoint_name(version))
}

fn checkpoint_name(version: u64) -> String {
    format!("{version:020}.checkpoint.parquet")
}

/// A new file beside the log, which gets its name when it is complete.
pub(super) fn temporary_path(table: &Path) -> PathBuf {
    log_folder(table).join(format!(".{}.{TEMPORARY_EXTENSION}", Uuid::new_v4()))
}

/// Lists the log. `None` if there is none.
pub(super) fn list(table: &Path) -> Result<Option<LogListing>, DeltaError> {
    let folder = log_folder(table);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(DeltaError::io(&folder)(error)),
    };
    let mut listing = LogListing::default();
    for entry in entries {
        let path = entry.map_err(DeltaError::io(&folder))?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        if name.starts_with('.') && name.ends_with(&format!(".{TEMPORARY_EXTENSION}")) {
            listing.temporary.push(path);
        } else if let Some((version, rest)) = name.split_once(".checkpoint.") {
            if let Some(version) = parse_version(version) {
                listing.add_checkpoint(version, rest, name);
            }
        } else if let Some(version) = name.strip_suffix(".json").and_then(parse_version) {
            listing.entries.push(version);
        }
    }
    listing.entries.sort_unstable();
    listing.checkpoints.sort_unstable();
    Ok(Some(listing))
}

fn parse_version(name: &str) -> Option<u64> {
    let is_version = name.len() == 20 && name.bytes().all(|byte| byte.is_ascii_digit());
    if is_version { name.parse().ok() } else { None }
}

/// Calls `apply` with each action of a file of JSON lines, such as an entry.
pub(super) fn read_actions(
    path: &Path,
    open: FileAccess<'_>,
    mut apply: impl FnMut(Action) -> Result<(), DeltaError>,
) -> Result<(), DeltaError> {
    let file = open(path).map_err(DeltaError::io(path))?;
    let bytes = file.metadata().map_err(DeltaError::io(path))?.len();
    if bytes > JSON_BYTES_MAX {
        return Err(DeltaError::corrupt(path, format!("it has {bytes} bytes; at most {JSON_BYTES_MAX} are read")));
    }
    for line in BufReader::new(file).lines() {
        let line = line.map_err(DeltaError::io(path))?;
        if !line.trim().is_empty() {
            apply(serde_json::from_str(&line).map_err(|error| DeltaError::corrupt(path, error))?)?;
        }
    }
    Ok(())
}

/// Writes the entry of a version that does not exist yet, and waits until it is on disk.
pub(super) fn write_entry(table: &Path, version: u64, actions: &[Action]) -> Result<(), DeltaError> {
    let temporary = temporary_path(table);
    let written = write_lines(&temporary, actions).and_then(|()| {
        let path = entry_path(table, version);
        match publish(&temporary, &path) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(DeltaError::Conflict(version)),
            Err(error) => Err(DeltaError::io(&path)(error)),
        }
    });
    // The entry is complete under its own name, or the write failed. A file that stays is removed later.
    let _ = fs::remove_file(&temporary);
    written?;
    sync_folder(&log_folder(table)).map_err(|error| match error {
        DeltaError::Io { source, .. } => DeltaError::Unconfirmed { version, source },
        error => error,
    })
}

fn write_lines(path: &Path, actions: &[Action]) -> Result<(), DeltaError> {
    let mut lines = Vec::new();
    for action in actions {
        serde_json::to_writer(&mut lines, action).map_err(|error| DeltaError::corrupt(path, error))?;
        lines.push(b'\n');
    }
    let mut file = private_file::create_new(path).map_err(DeltaError::io(path))?;
    file.write_all(&lines).and_then(|()| file.sync_all()).map_err(DeltaError::io(path))
}

/// Gives a complete file its name, unless a file has it.
fn publish(temporary: &Path, path: &Path) -> std::io::Result<()> {
    match fs::hard_link(temporary, path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists && !path.exists() => {
            // The file system has no hard links. The lock of the table's only writer excludes another one.
            fs::rename(temporary, path)
        }
        result => result,
    }
}

/// Writes the file that names the last checkpoint.
pub(super) fn write_last_checkpoint(table: &Path, version: u64, actions: u64, bytes: u64) -> Result<(), DeltaError> {
    let temporary = temporary_path(table);
    let path = log_folder(table).join(LAST_CHECKPOINT);
    let json = serde_json::json!({"version": version, "size": actions, "sizeInBytes": bytes}).to_string();
    let mut file = private_file::create_new(&temporary).map_err(DeltaError::io(&temporary))?;
    file.write_all(json.as_bytes()).and_then(|()| file.sync_all()).map_err(DeltaError::io(&temporary))?;
    fs::rename(&temporary, &path).map_err(DeltaError::io(&path))
}

/// Waits until the names in a folder are on disk.
pub(super) fn sync_folder(folder: &Path) -> Result<(), DeltaError> {
    #[cfg(unix)]
    fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(DeltaError::io(folder))?;
    #[cfg(not(unix))]
    let _ = folder;
    Ok(())
}

/// A line of the log, or a row of a checkpoint: exactly one of the fields.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Action {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) commit_info: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) protocol: Option<Protocol>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) meta_data: Option<Metadata>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) txn: Option<Transaction>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) remove: Option<Remove>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) add: Option<Add>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sidecar: Option<Sidecar>,
}

/// What a reader and a writer must support.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Protocol {
    pub(super) min_reader_version: u32,
    pub(super) min_writer_version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reader_features: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) writer_features: Option<Vec<String>>,
}

/// The columns and settings of the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Metadata {
    pub(super) id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<String>,
    pub(super) format: Format,
    pub(super) schema_string: String,
    pub(super) partition_columns: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) created_time: Option<i64>,
    #[serde(default)]
    pub(super) configuration: BTreeMap<String, Option<String>>,
}

/// The format of the data files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Format {
    pub(super) provider: String,
    #[serde(default)]
    pub(super) options: BTreeMap<String, Option<String>>,
}

/// How far an application has written.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Transaction {
    pub(super) app_id: String,
    pub(super) version: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last_updated: Option<i64>,
}

/// A data file that is part of the table from now on.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Add {
    pub(super) path: String,
    #[serde(default)]
    pub(super) partition_values: BTreeMap<String, Option<String>>,
    pub(super) size: u64,
    pub(super) modification_time: i64,
    pub(super) data_change: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stats: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tags: Option<BTreeMap<String, Option<String>>>,
    /// Rows of the file that are deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) deletion_vector: Option<DeletionVector>,
}

/// A data file that is no longer part of the table.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Remove {
    pub(super) path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) deletion_timestamp: Option<i64>,
    pub(super) data_change: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) extended_file_metadata: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) partition_values: Option<BTreeMap<String, Option<String>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) deletion_vector: Option<DeletionVector>,
}

/// Where the positions of the deleted rows of a file are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeletionVector {
    /// `i` in this action, `u` in a file of the table with a unique name, `p` at an absolute path.
    pub(super) storage_type: String,
    pub(super) path_or_inline_dv: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) offset: Option<u64>,
    pub(super) size_in_bytes: u64,
    pub(super) cardinality: u64,
}

/// A file with more actions of a checkpoint.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Sidecar {
    pub(super) path: String,
}
