//! Opens a folder: its Delta tables, then what only the log has.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use uuid::Uuid;

use super::declarations::{check_declarations, check_stored, name_differs_in_case};
use super::drop_table::discard_folder;
use super::keys::{KeyLog, KeyTable, StoredKey};
use super::lock::FolderLock;
use super::names::{check_table_name, table_key};
use super::options::IngestOptions;
use super::pending::AppliedRows;
use super::state::{AppliedWrite, FolderState};
use super::storage::flushed_sequence;
use super::write_record::{RecordDescription, TableDescription, WriteDescription, decode_record, decode_stream};
use super::{IngestError, TIDEGATE_FOLDER, TRASH_FOLDER};
use crate::delta::DeltaTable;
use crate::write_ahead_log::WriteAheadLog;

const LOCK_FILE: &str = "lock";
const LOG_FOLDER: &str = "log";
const KEYS_FOLDER: &str = "keys";
/// The id of the log. It is in the folder of the log, so that a log that begins again has another one: its sequence
/// numbers would be those of rows that the Delta tables have already.
const ID_FILE: &str = "id";

/// An open folder.
pub(crate) struct OpenedFolder {
    pub(crate) state: FolderState,
    pub(crate) log: WriteAheadLog,
    pub(crate) key_log: KeyLog,
    pub(crate) application: String,
    pub(crate) lock: FolderLock,
}

/// Opens the folder. Blocks while the log is read.
pub(crate) fn open_folder(path: &Path, options: &IngestOptions) -> Result<OpenedFolder, IngestError> {
    let own = path.join(TIDEGATE_FOLDER);
    std::fs::create_dir_all(&own).map_err(IngestError::io("create", &own))?;
    let lock = FolderLock::acquire(path, &own.join(LOCK_FILE))?;
    let trash = own.join(TRASH_FOLDER);
    match std::fs::remove_dir_all(&trash) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(IngestError::io("remove", &trash)(error));
        }
        _ => {}
    }
    let mut keys = KeyTable::new(options.key_age_max, options.keys_max);
    let key_log = KeyLog::open(&own.join(KEYS_FOLDER), &mut keys)?;
    let log_folder = own.join(LOG_FOLDER);
    let application = read_or_create_id(&log_folder)?;
    check_declarations(&options.tables)?;
    let state = FolderState::new(path.to_owned(), &options.tables, options.create_tables, keys);
    let mut recovery = Recovery { state, flushed: BTreeMap::new(), application };
    recovery.load_tables(path)?;
    let log = WriteAheadLog::open(&log_folder, options.log, |sequence, payload| recovery.replay(sequence, &payload))?;
    let Recovery { mut state, application, .. } = recovery;
    state.applied_sequence = log.last_sequence();
    check_staged_files(&state)?;
    Ok(OpenedFolder { state, log, key_log, application, lock })
}

/// The state while it is built.
struct Recovery {
    state: FolderState,
    /// The tables on disk, with the sequence number up to which each has the records of the log.
    flushed: BTreeMap<String, u64>,
    application: String,
}

impl Recovery {
    fn load_tables(&mut self, path: &Path) -> Result<(), IngestError> {
        let entries = std::fs::read_dir(path).map_err(IngestError::io("list", path))?;
        for entry in entries {
            let entry = entry.map_err(IngestError::io("list", path))?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            if !entry.path().is_dir() || check_table_name(&name).is_err() {
                continue;
            }
            let Some(table) = DeltaTable::open(&entry.path()).map_err(IngestError::delta(&name))? else { continue };
            self.add_stored(&name, table)?;
        }
        Ok(())
    }

    fn add_stored(&mut self, name: &str, table: DeltaTable) -> Result<(), IngestError> {
        let key = table_key(name);
        if let Some(other) = self.state.tables.get(&key)
            && (self.flushed.contains_key(&key) || other.name != name)
        {
            return Err(name_differs_in_case(name, &other.name));
        }
        if self.state.is_declared(name) {
            check_stored(name, &self.state.declaration(name), &table.snapshot())?;
        }
        let flushed = flushed_sequence(&table, &self.application).unwrap_or(0);
        self.flushed.insert(key, flushed);
        self.state.insert_stored(name, table, flushed);
        Ok(())
    }

    fn replay(&mut self, sequence: u64, payload: &Bytes) -> Result<(), IngestError> {
        let problem = |problem: &str| IngestError::Record { sequence, problem: problem.to_owned() };
        match decode_record(payload).ok_or_else(|| problem("its content is not that of a write"))? {
            (RecordDescription::Write(write), streams) => self.replay_write(sequence, write, streams),
            (RecordDescription::DropTable { table }, _) => self.replay_drop(sequence, &table),
        }
    }

    fn replay_write(&mut self, sequence: u64, write: WriteDescription, streams: Vec<Bytes>) -> Result<(), IngestError> {
        let receipt = write.receipt(sequence);
        let mut tables = Vec::new();
        for (table, stream) in write.tables.into_iter().zip(streams) {
            let is_flushed = self.flushed.get(&table_key(&table.table)).is_some_and(|flushed| *flushed >= sequence);
            if !is_flushed {
                tables.push(decode_table(sequence, table, stream)?);
            }
        }
        let key = write.key.map(|key| StoredKey {
            key: Arc::from(key),
            sequence,
            rows: receipt.rows,
            time_ms: write.time_ms,
        });
        self.state.apply(sequence, AppliedWrite { tables, key });
        Ok(())
    }

    /// Finishes the removal of a table, unless the table on disk is a later one of the same name.
    fn replay_drop(&mut self, sequence: u64, name: &str) -> Result<(), IngestError> {
        let key = table_key(name);
        let flushed = self.flushed.get(&key).copied();
        if flushed.is_some_and(|flushed| flushed >= sequence) {
            return Ok(());
        }
        if flushed.is_some() {
            let folder = self.state.path.join(name);
            discard_folder(&self.state.path, &folder).map_err(IngestError::io("remove", &folder))?;
        }
        self.flushed.remove(&key);
        self.state.forget_table(name);
        self.state.applied_sequence = sequence;
        Ok(())
    }
}

type ReplayedTable = (String, AppliedRows, Option<tokio::sync::OwnedSemaphorePermit>);

fn decode_table(sequence: u64, table: TableDescription, stream: Bytes) -> Result<ReplayedTable, IngestError> {
    let stream_bytes = stream.len() as u64;
    let (schema, batches) = decode_stream(stream)?;
    let bytes = if batches.is_empty() { 0 } else { stream_bytes };
    let mut staged = Vec::new();
    for file in table.staged {
        let file = file.into_data_file();
        let problem = "the statistics of a data file cannot be read".to_owned();
        staged.push(Arc::new(file.ok_or(IngestError::Record { sequence, problem })?));
    }
    Ok((table.table, AppliedRows { schema, batches, staged, replaces: table.replaces, bytes }, None))
}

/// Data files that only the log has must be there, as their rows were acknowledged.
fn check_staged_files(state: &FolderState) -> Result<(), IngestError> {
    for table in state.tables.values() {
        for rows in table.pending.iter() {
            for file in &rows.staged {
                let path = table.storage.folder.join(&file.path);
                let bytes = std::fs::metadata(&path).map_err(IngestError::io("find the data file", &path))?.len();
                if bytes != file.bytes {
                    let sequence = rows.last_sequence;
                    let problem = format!("{} has {bytes} bytes instead of {}", path.display(), file.bytes);
                    return Err(IngestError::Record { sequence, problem });
                }
            }
        }
    }
    Ok(())
}

fn read_or_create_id(folder: &Path) -> Result<String, IngestError> {
    let path = folder.join(ID_FILE);
    match std::fs::read_to_string(&path) {
        Ok(id) if !id.trim().is_empty() => return Ok(id.trim().to_owned()),
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(IngestError::io("read", &path)(error)),
    }
    std::fs::create_dir_all(folder).map_err(IngestError::io("create", folder))?;
    let entries = std::fs::read_dir(folder).map_err(IngestError::io("list", folder))?;
    let has_log = entries.flatten().any(|entry| entry.path().extension().is_some_and(|end| end == "log"));
    if has_log {
        let missing = std::io::Error::other("it is missing, and the log has segments: restore it from a backup");
        return Err(IngestError::io("read", &path)(missing));
    }
    let id = format!("tidegate-{}", Uuid::new_v4());
    let temporary = folder.join("id.new");
    File::create(&temporary)
        .and_then(|mut file| file.write_all(id.as_bytes()).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&temporary, &path))
        .and_then(|()| File::open(folder)?.sync_all())
        .map_err(IngestError::io("write", &path))?;
    Ok(id)
}
