//! Opens a folder, to which one process writes: its Delta tables, checked against what their owner declares, then what only the
//! log has.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use parking_lot::Mutex;
use tidegate_core::private_file::{self, set_owner_only};

use super::background::{discard_folder, retention_column};
use super::closed_tables::{DamagedPart, LostRows, TableClosure};
use super::columns::merge_columns;
use super::kept_records::{KeptRecords, RecordPlace, keep_records};
use super::keys::{KeyLog, KeyTable, StoredKey};
use super::log_id::{had_segments, read_or_create_id, write_copy};
use super::options::{IngestOptions, SchemaEvolution, TableDeclaration, check_new_table_name, table_key};
use super::permissions::permission_problem;
use super::state::{AppliedRows, AppliedWrite, FolderState, TableState};
use super::storage::{flushed_sequence, open_tables};
use super::write_record::{
    RecordDescription, TableDescription, WriteDescription, decode_record, decode_stream, recover_description,
};
use super::{IngestError, IngestFolder, TIDEGATE_FOLDER, TRASH_FOLDER};
use crate::delta::{DeltaError, DeltaSnapshot, DeltaTable, PartitionBy};
use crate::write_ahead_log::{LostRecords, RecoveredRecord, WriteAheadLog, WriteAheadLogError, list_segments};

pub(super) const LOCK_FILE: &str = "lock";
pub(super) const LOG_FOLDER: &str = "log";
const KEYS_FOLDER: &str = "keys";

/// An open folder.
pub(crate) struct OpenedFolder {
    pub(crate) state: FolderState,
    pub(crate) log: WriteAheadLog,
    pub(crate) key_log: KeyLog,
    pub(crate) application: String,
    pub(crate) permission_problem: Option<String>,
    pub(crate) lock: FolderLock,
}

/// Opens the folder. Blocks while the log is read.
pub(crate) fn open_folder(path: &Path, options: &IngestOptions) -> Result<OpenedFolder, IngestError> {
    let own = path.join(TIDEGATE_FOLDER);
    private_file::create_folder(&own).map_err(IngestError::io("create", &own))?;
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
    let mut recovery = Recovery {
        state,
        flushed: BTreeMap::new(),
        kept: KeptRecords::load(path, &application)?,
        unkept: BTreeMap::new(),
        application,
        lost: LostRows::load(path)?,
        uncertain: None,
        begun_again: BTreeMap::new(),
    };
    recovery.load_tables(path)?;
    recovery.replay_kept_records()?;
    let acknowledged = recovery.flushed.values().copied().chain(recovery.kept.last_sequences().into_values()).max();
    let mut acknowledged = acknowledged.unwrap_or_default();
    if list_segments(&log_folder)?.is_empty() && (had_segments(&log_folder) || acknowledged > 0) {
        acknowledged += 1;
        // Noted before there is a segment again, which looks like that of a log whose rows were all moved.
        recovery.lose_log(acknowledged);
        recovery.close_tables()?;
    }
    let log = WriteAheadLog::open_damaged(&log_folder, options.log, acknowledged, |record| {
        recovery.visit(record, RecordPlace::Log)
    })?;
    write_copy(&log_folder, &recovery.application)?;
    recovery.close_tables()?;
    recovery.keep_records();
    let Recovery { mut state, application, .. } = recovery;
    state.applied_sequence = log.last_sequence();
    Ok(OpenedFolder { state, log, key_log, application, permission_problem: permission_problem(path), lock })
}

/// The state while it is built.
struct Recovery {
    state: FolderState,
    /// The tables on disk, with the sequence number up to which each has the records of the log.
    flushed: BTreeMap<String, u64>,
    kept: KeptRecords,
    /// The records of the log for Delta tables that cannot be opened, by the key of the table.
    unkept: BTreeMap<String, RangeInclusive<u64>>,
    application: String,
    lost: LostRows,
    /// The last lost record whose tables are unknown, and what is wrong with it.
    uncertain: Option<(u64, String)>,
    /// The records that removed a table, or replaced all of its rows.
    begun_again: BTreeMap<String, u64>,
}

impl Recovery {
    fn load_tables(&mut self, path: &Path) -> Result<(), IngestError> {
        for (name, opened) in open_tables(path)? {
            match opened {
                Ok(table) => self.add_stored(&name, table)?,
                Err(error) => self.add_damaged(&name, &error)?,
            }
        }
        Ok(())
    }

    /// Adds a table that cannot be opened, and is therefore closed.
    fn add_damaged(&mut self, name: &str, error: &DeltaError) -> Result<(), IngestError> {
        let closure = TableClosure::of_delta_table(&self.state.path, name, error);
        let is_folder = self.state.path.join(name).is_dir();
        let table = self.state.table_mut(name);
        if table.name != name {
            // A file is not in the place of a declared table if its name differs.
            return if is_folder { Err(name_differs_in_case(name, &table.name)) } else { Ok(()) };
        }
        table.close(closure);
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

    /// Replays the records beside the log, of tables whose Delta table can be opened.
    fn replay_kept_records(&mut self) -> Result<(), IngestError> {
        for (key, parts) in self.kept.tables().clone() {
            if self.is_unreadable(&key) {
                continue;
            }
            for part in parts {
                part.read(&mut |record| self.visit(record, RecordPlace::KeptFor(&key)))?;
            }
        }
        Ok(())
    }

    fn visit(&mut self, record: RecoveredRecord, source: RecordPlace<'_>) -> Result<(), WriteAheadLogError> {
        match record {
            RecoveredRecord::Whole { sequence, payload } => {
                self.replay(sequence, &payload, source).map_err(|error| WriteAheadLogError::replay(sequence, error))
            }
            RecoveredRecord::Lost(lost) => {
                self.lose(&lost, source).map_err(|error| WriteAheadLogError::replay(*lost.sequences.start(), error))
            }
        }
    }

    fn replay(&mut self, sequence: u64, payload: &Bytes, source: RecordPlace<'_>) -> Result<(), IngestError> {
        let problem = |problem: &str| IngestError::Record { sequence, problem: problem.to_owned() };
        match decode_record(payload).ok_or_else(|| problem("its content is not that of a write"))? {
            (RecordDescription::Write(write), streams) => self.replay_write(sequence, write, streams, source),
            (RecordDescription::DropTable { table }, _) => self.replay_drop(sequence, &table, source),
        }
    }

    fn replay_write(
        &mut self,
        sequence: u64,
        write: WriteDescription,
        streams: Vec<Bytes>,
        source: RecordPlace<'_>,
    ) -> Result<(), IngestError> {
        let receipt = write.receipt(sequence);
        let mut tables = Vec::new();
        for (table, stream) in write.tables.into_iter().zip(streams) {
            if !self.is_replayed(&table.table, sequence, source) || self.is_flushed(&table.table, sequence) {
                continue;
            }
            if table.replaces {
                self.begin_again(&table.table, sequence);
            }
            tables.push(decode_table(sequence, table, stream)?);
        }
        // The keys of records beside the log are in the log, or were saved before it forgot them.
        let key = write.key.filter(|_| matches!(source, RecordPlace::Log)).map(|key| StoredKey {
            key: Arc::from(key),
            sequence,
            rows: receipt.rows,
            time_ms: write.time_ms,
        });
        self.state.apply(sequence, AppliedWrite { tables, key });
        Ok(())
    }

    /// Whether the Delta table has the rows of the record.
    fn is_flushed(&self, table: &str, sequence: u64) -> bool {
        self.flushed.get(&table_key(table)).is_some_and(|flushed| *flushed >= sequence)
    }

    /// Whether `table` cannot be opened, so that it is unknown which records it has.
    fn is_unreadable(&self, key: &str) -> bool {
        let closure = self.state.tables.get(key).and_then(|table| table.closure.as_ref());
        closure.is_some_and(TableClosure::is_of_delta_table)
    }

    /// Whether the record is replayed for `table`. If that is not possible, it is kept beside the log.
    fn is_replayed(&mut self, table: &str, sequence: u64, source: RecordPlace<'_>) -> bool {
        if !self.kept.is_read_from(source, table, sequence) {
            return false;
        }
        let key = table_key(table);
        let is_unreadable = self.is_unreadable(&key);
        if is_unreadable {
            let first = self.unkept.get(&key).map_or(sequence, |records| *records.start());
            self.unkept.insert(key, first..=sequence);
        }
        !is_unreadable
    }

    /// Forgets lost rows of a table that the record removes anyway.
    fn begin_again(&mut self, table: &str, sequence: u64) {
        self.lost.forget(table, sequence);
        self.begun_again.insert(table_key(table), sequence);
    }

    /// Notes which tables have lost rows.
    fn lose(&mut self, lost: &LostRecords, source: RecordPlace<'_>) -> Result<(), IngestError> {
        self.lost.keep_copy(&lost.file);
        if lost.payloads.is_empty() {
            self.lose_unknown(*lost.sequences.end(), lost, source);
        }
        for (sequence, payload) in lost.sequences.clone().zip(&lost.payloads) {
            match recover_description(payload) {
                Some(RecordDescription::DropTable { table }) => self.replay_drop(sequence, &table, source)?,
                Some(RecordDescription::Write(write)) => self.lose_write(sequence, write, lost, source),
                None => self.lose_unknown(sequence, lost, source),
            }
        }
        Ok(())
    }

    fn lose_write(&mut self, sequence: u64, write: WriteDescription, lost: &LostRecords, source: RecordPlace<'_>) {
        // Its rows are in Delta tables, so a repeat must not store them again.
        let is_stored = write.tables.iter().all(|table| self.is_flushed(&table.table, sequence));
        if let Some(key) = write.key.as_deref().filter(|_| is_stored && matches!(source, RecordPlace::Log)) {
            let (key, rows) = (Arc::from(key), write.rows.clone());
            self.state.keys.store(StoredKey { key, sequence, rows, time_ms: write.time_ms });
        }
        let problem = self.lost.describe(lost, Some(write.rows.iter().sum()));
        for TableDescription { table, .. } in write.tables {
            if self.is_replayed(&table, sequence, source) && !self.is_flushed(&table, sequence) {
                self.lost.add(&table, sequence, &problem);
            }
        }
    }

    /// All segments of the log are lost, at least with the record `sequence`.
    fn lose_log(&mut self, sequence: u64) {
        let log = format!("{TIDEGATE_FOLDER}/{LOG_FOLDER}");
        self.uncertain = Some((sequence, format!("the segments of the log in {log} are missing")));
    }

    /// A record up to `sequence` is lost, and it is unknown of which tables.
    fn lose_unknown(&mut self, sequence: u64, lost: &LostRecords, source: RecordPlace<'_>) {
        let problem = self.lost.describe(lost, None);
        match source {
            RecordPlace::Log => self.uncertain = Some((sequence, problem)),
            RecordPlace::KeptFor(key) if self.is_flushed(key, sequence) => {}
            RecordPlace::KeptFor(key) => {
                let name = self.state.tables.get(key).map_or(key, |table| table.name.as_str());
                self.lost.add(name, sequence, &problem);
            }
        }
    }

    /// Closes the tables that have lost rows, that may have, or whose data files are not there.
    fn close_tables(&mut self) -> Result<(), IngestError> {
        if let Some((sequence, problem)) = self.uncertain.take() {
            let is_later = |known: Option<&u64>| known.is_some_and(|known| *known >= sequence);
            let tables = self.state.tables.iter();
            let affected = tables
                .filter(|(key, _)| !is_later(self.flushed.get(*key)) && !is_later(self.begun_again.get(*key)))
                .map(|(_, table)| table.name.clone());
            for table in affected.collect::<Vec<String>>() {
                self.lost.add(&table, sequence, &problem);
            }
            self.lost.add_new_tables(sequence, &problem);
        }
        self.lost.store()?;
        let closure = |reason: &str| TableClosure { part: DamagedPart::Record, reason: reason.to_owned() };
        for loss in self.lost.tables() {
            self.state.table_mut(&loss.table).close(closure(&loss.reason));
        }
        self.state.new_tables_closure = self.lost.new_tables().map(|loss| closure(&loss.reason));
        for table in self.state.tables.values_mut() {
            if let Some(reason) = missing_data_file(table) {
                table.close(TableClosure { part: DamagedPart::DataFile, reason });
            }
        }
        Ok(())
    }

    /// Keeps the records beside the log that it has of tables that are closed, so that it can forget all others.
    fn keep_records(&mut self) {
        self.state.kept = self.kept.last_sequences();
        for (key, table) in self.state.tables.iter_mut().filter(|(_, table)| !table.moves_rows()) {
            let unkept = self.unkept.remove(key).or_else(|| table.records_after(self.state.kept.get(key).copied()));
            if let Some(records) = unkept {
                match keep_records(&self.state.path, &self.application, &table.name, &records) {
                    Ok(()) => self.state.kept.insert(key.clone(), *records.end()),
                    Err(error) => {
                        tracing::warn!(table = %table.name, %error, "the rows of a closed table remain in the log");
                        table.unkept_since = Some(*records.start());
                        continue;
                    }
                };
            }
            table.set_kept();
        }
    }

    /// Finishes the removal of a table, unless the table on disk is a later one of the same name.
    fn replay_drop(&mut self, sequence: u64, name: &str, source: RecordPlace<'_>) -> Result<(), IngestError> {
        if !self.is_replayed(name, sequence, source) {
            return Ok(());
        }
        let key = table_key(name);
        self.begin_again(name, sequence);
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

/// What is wrong with a data file that only the log names. Its rows were acknowledged.
fn missing_data_file(table: &TableState) -> Option<String> {
    let staged = table.pending.iter().flat_map(|rows| &rows.staged);
    staged.into_iter().find_map(|file| {
        let problem = match std::fs::metadata(table.storage.folder.join(&file.path)) {
            Ok(found) if found.len() == file.bytes => return None,
            Ok(found) => format!("has {} bytes instead of {}", found.len(), file.bytes),
            Err(error) => format!("cannot be found: {error}"),
        };
        let path = format!("{}/{}", table.name, file.path);
        Some(format!("the data file {path} {problem}; restore it and restart the server, or drop the table"))
    })
}

impl IngestFolder {
    /// Checks that `tables` can be declared now.
    ///
    /// # Errors
    /// `Declaration` if they contradict each other or the tables that exist.
    pub fn check_declarations(&self, tables: &BTreeMap<String, TableDeclaration>) -> Result<(), IngestError> {
        check_declarations(tables)?;
        let state = self.shared.state.lock();
        for (name, declaration) in tables {
            let Some(table) = state.tables.get(&table_key(name)) else { continue };
            if table.name != *name {
                return Err(name_differs_in_case(name, &table.name));
            }
            if let Some(snapshot) = &table.snapshot {
                check_stored(name, declaration, snapshot)?;
            }
        }
        Ok(())
    }

    /// Declares `tables` in place of those before. Writes that have begun are not affected. The declarations have been
    /// checked ([`IngestFolder::check_declarations`]).
    pub fn set_declarations(&self, tables: &BTreeMap<String, TableDeclaration>, create_tables: bool) {
        let mut state = self.shared.state.lock();
        state.set_declarations(tables, create_tables);
        self.shared.version.send_replace(state.version);
    }
}

fn name_differs_in_case(name: &str, other: &str) -> IngestError {
    let problem = format!("its name differs from that of table \"{other}\" only in case");
    IngestError::Declaration { table: name.to_owned(), problem }
}

/// Checks declarations against each other.
fn check_declarations(tables: &BTreeMap<String, TableDeclaration>) -> Result<(), IngestError> {
    let mut names: BTreeMap<String, &str> = BTreeMap::new();
    for (name, declaration) in tables {
        let problem = |problem: String| IngestError::Declaration { table: name.clone(), problem };
        check_new_table_name(name).map_err(|error| problem(error.to_string()))?;
        if let Some(other) = names.insert(table_key(name), name) {
            return Err(name_differs_in_case(name, other));
        }
        if let (Some(_), Some(columns)) = (declaration.retention, &declaration.columns)
            && retention_column(declaration, columns).is_none()
        {
            let text =
                "\"retention\" needs a partition by day, month or hour, or a column \"time\" that is a time or date";
            return Err(problem(text.to_owned()));
        }
    }
    Ok(())
}

/// Checks the declaration of a table against the table.
fn check_stored(name: &str, declaration: &TableDeclaration, snapshot: &DeltaSnapshot) -> Result<(), IngestError> {
    let problem = |problem: String| IngestError::Declaration { table: name.to_owned(), problem };
    if let Some(columns) = &declaration.columns {
        merge_columns(name, &snapshot.schema, columns, SchemaEvolution::AddColumns)
            .map_err(|error| problem(error.to_string()))?;
    }
    let stored: Vec<&PartitionBy> = snapshot.partition_columns.iter().map(|column| &column.partition_by).collect();
    if !stored.iter().copied().eq(&declaration.partition_by) {
        let declared = &declaration.partition_by;
        return Err(problem(format!("the table is partitioned by {stored:?}, and declared with {declared:?}")));
    }
    Ok(())
}

/// The bytes of a holder's description that are read.
const HOLDER_BYTES_MAX: u64 = 1024;
/// How long a writer waits for processes that read the folder.
const READERS_WAIT_MAX: Duration = Duration::from_secs(5);
const READERS_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The lock of a folder. It ends with the process, however that ends.
#[derive(Debug)]
pub(crate) struct FolderLock {
    file: Mutex<Option<File>>,
}

impl FolderLock {
    /// Locks `folder` by its file `path`, or names the process that has it.
    fn acquire(folder: &Path, path: &Path) -> Result<Self, IngestError> {
        let mut file = set_owner_only(File::options().create(true).truncate(false).read(true).write(true))
            .open(path)
            .map_err(IngestError::io("open", path))?;
        let started = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(error)) => return Err(IngestError::io("lock", path)(error)),
                // Those who only read do not describe themselves, and are soon done.
                Err(TryLockError::WouldBlock) if file.try_lock_shared().is_ok() => {
                    file.unlock().map_err(IngestError::io("unlock", path))?;
                    if started.elapsed() >= READERS_WAIT_MAX {
                        let holder = "a process that reads it, such as tidegate ingest verify".to_owned();
                        return Err(IngestError::Locked { folder: folder.to_owned(), holder });
                    }
                    std::thread::sleep(READERS_POLL_INTERVAL);
                }
                Err(TryLockError::WouldBlock) => return Err(locked(folder, &mut file)),
            }
        }
        let text = describe_this_process();
        file.rewind()
            .and_then(|()| file.set_len(0))
            .and_then(|()| file.write_all(text.as_bytes()))
            .map_err(IngestError::io("write", path))?;
        Ok(Self { file: Mutex::new(Some(file)) })
    }

    /// Locks `folder` for reading, or names the process that writes to it. Nothing is changed.
    pub(crate) fn acquire_shared(folder: &Path, path: &Path) -> Result<Self, IngestError> {
        let mut file = match File::open(path) {
            Ok(file) => file,
            // No process has written to it yet.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self { file: Mutex::new(None) }),
            Err(error) => return Err(IngestError::io("open", path)(error)),
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(Self { file: Mutex::new(Some(file)) }),
            Err(TryLockError::WouldBlock) => Err(locked(folder, &mut file)),
            Err(TryLockError::Error(error)) => Err(IngestError::io("lock", path)(error)),
        }
    }

    /// Ends the lock before the process ends.
    pub(crate) fn release(&self) {
        self.file.lock().take();
    }
}

/// The error that names the process that has the lock.
fn locked(folder: &Path, file: &mut File) -> IngestError {
    let mut holder = String::new();
    // A description that cannot be read, or is being written, is left out.
    let _ = file.take(HOLDER_BYTES_MAX).read_to_string(&mut holder);
    let holder = holder.trim().to_owned();
    let holder = if holder.is_empty() { "another process".to_owned() } else { holder };
    IngestError::Locked { folder: folder.to_owned(), holder }
}

fn describe_this_process() -> String {
    let id = std::process::id();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim();
    let host = if host.is_empty() { "an unknown host" } else { host };
    let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let start = chrono::DateTime::from_timestamp(seconds.cast_signed(), 0).unwrap_or_default();
    format!("process {id} on {host} since {}\n", start.format("%Y-%m-%dT%H:%M:%SZ"))
}
