//! Compares what is on disk with what was written: of an open folder, and of one that no process writes to. Nothing is changed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use super::closed_tables::lost_tables;
use super::kept_records::{KeptRecords, RecordPlace};
use super::log_id::{had_segments, read_id};
use super::options::table_key;
use super::recovery::{FolderLock, LOCK_FILE, LOG_FOLDER};
use super::shared::FolderShared;
use super::state::LoggedRows;
use super::storage::{flushed_sequence, open_tables};
use super::write_record::{RecordDescription, decode_record, decode_stream};
use super::{IngestError, TIDEGATE_FOLDER};
use crate::delta::{DataFile, DeltaError, DeltaSnapshot, StopFlag, read_file, verify_file};
use crate::write_ahead_log::{LogChecker, RecoveredRecord, WriteAheadLogError, list_segments, read_log};

/// Rows of a batch while files are read.
const BATCH_ROWS: usize = 8192;
/// Problems that are listed of a table.
const PROBLEMS_MAX: usize = 100;

/// The result of the comparison. The size and CRC-32 of a file are compared with those that its writer stored in the tags
/// of the Delta table or in the log, its rows are read and counted. The records of the log, which all tables share, are
/// read and compared with their checksums, and the rows of the table in them are counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableVerification {
    /// Rows that were read from data files.
    pub file_rows: u64,
    /// Data files that were read.
    pub files: u64,
    /// Rows that only the log has.
    pub log_rows: u64,
    /// Files and folders with a problem, and what it is. At most 100.
    pub problems: Vec<(PathBuf, String)>,
}

impl TableVerification {
    /// Whether everything is as it was written.
    pub fn is_intact(&self) -> bool {
        self.problems.is_empty()
    }
}

impl FolderShared {
    pub(crate) async fn verify_table(&self, key: &str) -> Result<TableVerification, IngestError> {
        let (view, logged) = {
            let mut state = self.state.lock();
            let unknown = || IngestError::UnknownTable(key.to_owned());
            let table = state.tables.get_mut(key).ok_or_else(unknown)?;
            if let Some(closure) = &table.closure {
                return Err(closure.to_error(&table.name));
            }
            (table.view().ok_or_else(unknown)?, table.logged_rows())
        };
        let (log, key) = (self.log.checker(), key.to_owned());
        // It ends with the caller.
        let stop = StopFlag::default();
        let _guard = StopOnDrop(stop.clone());
        let verify = move || {
            let mut result = TableVerification {
                log_rows: view.batches().iter().map(|batch| batch.num_rows() as u64).sum(),
                ..TableVerification::default()
            };
            let snapshot = view.snapshot().map(Arc::as_ref);
            for file in view.files() {
                result.check_file(view.folder(), snapshot, file, &stop).map_err(IngestError::delta(&key))?;
            }
            result.problems.extend(verify_log(&log, &key, &logged)?);
            result.problems.truncate(PROBLEMS_MAX);
            Ok(result)
        };
        tokio::task::spawn_blocking(verify).await.map_err(|_| IngestError::Panicked)?
    }
}

impl TableVerification {
    /// Reads a data file. Without a version of the table, its rows cannot be read.
    fn check_file(
        &mut self,
        folder: &Path,
        snapshot: Option<&DeltaSnapshot>,
        file: &DataFile,
        stop: &StopFlag,
    ) -> Result<(), DeltaError> {
        self.files += 1;
        let mut rows = 0;
        let mut count = || -> Result<(), DeltaError> {
            verify_file(folder, file)?;
            let Some(snapshot) = snapshot else { return Ok(()) };
            for batch in read_file(folder, snapshot, file, BATCH_ROWS)? {
                stop.check()?;
                rows += batch?.num_rows() as u64;
            }
            Ok(())
        };
        let counted = count();
        self.file_rows += rows;
        stop.check()?;
        if let Err(error) = counted {
            self.add_problem(folder.join(&file.path), error.to_string());
        }
        Ok(())
    }

    fn add_problem(&mut self, path: PathBuf, problem: String) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push((path, problem));
        }
    }
}

/// Ends the work on another thread when the caller is gone.
struct StopOnDrop(StopFlag);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Compares the log with its checksums, and its rows of a table with those that are visible.
fn verify_log(log: &LogChecker, key: &str, logged: &[LoggedRows]) -> Result<Vec<(PathBuf, String)>, IngestError> {
    let mut counts = vec![0; logged.len()];
    let check = log.check(|sequence, payload| {
        let part = logged.iter().zip(&mut counts).find(|(rows, _)| rows.sequences.contains(&sequence));
        if let Some((_, count)) = part {
            count_rows(&Bytes::copy_from_slice(payload), key, count);
        }
    })?;
    // Others were moved meanwhile, or acknowledged later.
    let is_read = |rows: &LoggedRows| {
        check.oldest_sequence > 0
            && *rows.sequences.start() >= check.oldest_sequence
            && *rows.sequences.end() <= check.last_sequence
    };
    let mut problems = check.problems;
    let differing = logged.iter().zip(counts).find(|(rows, count)| is_read(rows) && rows.rows != *count);
    if let Some((LoggedRows { rows, sequences }, count)) = differing.filter(|_| problems.is_empty()) {
        let (first, last) = (sequences.start(), sequences.end());
        let problem = format!("the records {first} to {last} have {count} rows of the table; {rows} are visible");
        problems.push((log.folder().to_owned(), problem));
    }
    Ok(problems)
}

/// Adds the rows of a record for a table to `count`.
fn count_rows(payload: &Bytes, key: &str, count: &mut u64) {
    let Some((RecordDescription::Write(write), streams)) = decode_record(payload) else { return };
    for (table, stream) in write.tables.iter().zip(streams).filter(|(table, _)| table_key(&table.table) == key) {
        let batches = decode_stream(stream).map(|(_, batches)| batches).unwrap_or_default();
        let rows = batches.iter().map(|batch| batch.num_rows() as u64).sum::<u64>();
        let rows = rows + table.staged.iter().map(|file| file.rows).sum::<u64>();
        *count = if table.replaces { rows } else { *count + rows };
    }
}

/// A table while it is read.
struct CheckedTable {
    name: String,
    folder: PathBuf,
    snapshot: Option<Arc<DeltaSnapshot>>,
    /// The Delta table has the rows of the records up to this one.
    flushed: u64,
    found: TableVerification,
}

/// Compares the tables of the folder at `path` with what was written: as
/// [`IngestFolder::verify`](super::IngestFolder::verify), without opening the folder for writing. With `only`, one table.
///
/// Blocks the thread while it reads all files.
///
/// # Errors
/// `Locked` if a process writes to the folder; `UnknownTable`; `Delta` with `Stopped` after `stop`; `Log` and `Io` if files
/// cannot be read at all.
pub fn verify_folder(
    path: &Path,
    only: Option<&str>,
    stop: &StopFlag,
) -> Result<Vec<(String, TableVerification)>, IngestError> {
    let own = path.join(TIDEGATE_FOLDER);
    let _lock = FolderLock::acquire_shared(path, &own.join(LOCK_FILE))?;
    let log_folder = own.join(LOG_FOLDER);
    let application = read_id(&log_folder)?;
    let mut tables = checked_tables(path, application.as_deref())?;
    let log_problems = match application {
        Some(application) => read_rows(path, &log_folder, &KeptRecords::load(path, &application)?, &mut tables, stop)?,
        None => Vec::new(),
    };
    let lost = lost_tables(path)?;
    // A table whose only record is lost has no folder.
    for name in lost.keys() {
        tables.entry(table_key(name)).or_insert_with(|| CheckedTable::new(path, name));
    }
    let only = only.map(table_key);
    if let Some(unknown) = only.as_ref().filter(|key| !tables.contains_key(*key)) {
        return Err(IngestError::UnknownTable(unknown.clone()));
    }
    let mut verified = Vec::new();
    for (key, CheckedTable { name, folder, snapshot, mut found, .. }) in tables {
        if only.as_ref().is_some_and(|only| *only != key) {
            continue;
        }
        for file in snapshot.iter().flat_map(|snapshot| &snapshot.files) {
            found.check_file(&folder, snapshot.as_deref(), file, stop).map_err(IngestError::delta(&name))?;
        }
        if let Some(reason) = lost.get(&name) {
            found.add_problem(own.clone(), reason.clone());
        }
        for (file, problem) in &log_problems {
            found.add_problem(file.clone(), problem.clone());
        }
        verified.push((name, found));
    }
    Ok(verified)
}

fn checked_tables(path: &Path, application: Option<&str>) -> Result<BTreeMap<String, CheckedTable>, IngestError> {
    let mut tables = BTreeMap::new();
    for (name, opened) in open_tables(path)? {
        let (folder, mut found) = (path.join(&name), TableVerification::default());
        let (snapshot, flushed) = match opened {
            Ok(table) => {
                let flushed = application.and_then(|application| flushed_sequence(&table, application));
                (Some(table.snapshot()), flushed.unwrap_or(0))
            }
            Err(error) => {
                found.add_problem(folder.clone(), error.to_string());
                (None, u64::MAX)
            }
        };
        tables.insert(table_key(&name), CheckedTable { name, folder, snapshot, flushed, found });
    }
    Ok(tables)
}

/// Counts the rows that only the log has, and checks the data files that only its records name. Returns what is wrong with
/// the log itself.
fn read_rows(
    path: &Path,
    log_folder: &Path,
    kept: &KeptRecords,
    tables: &mut BTreeMap<String, CheckedTable>,
    stop: &StopFlag,
) -> Result<Vec<(PathBuf, String)>, IngestError> {
    let flushed = tables.values().map(|table| table.flushed).filter(|flushed| *flushed < u64::MAX);
    let acknowledged = flushed.chain(kept.last_sequences().into_values()).max();
    let mut problems = Vec::new();
    if list_segments(log_folder)?.is_empty() && (had_segments(log_folder) || acknowledged > Some(0)) {
        problems.push((log_folder.to_owned(), "its segments are missing".to_owned()));
    }
    let mut visit = |record: RecoveredRecord, source: RecordPlace<'_>| match record {
        RecoveredRecord::Whole { sequence, payload } => {
            let is_read = |table: &str| kept.is_read_from(source, table, sequence);
            let added = add_record(path, sequence, &payload, tables, is_read, stop);
            added.map_err(|error| WriteAheadLogError::replay(sequence, error))
        }
        RecoveredRecord::Lost(lost) => {
            let (first, last) = (lost.sequences.start(), lost.sequences.end());
            let problem =
                format!("the records {first} to {last} are lost, from byte {} on: {}", lost.offset, lost.problem);
            problems.push((lost.file, problem));
            Ok(())
        }
    };
    let mut read = || {
        for (key, parts) in kept.tables() {
            for part in parts {
                part.read(&mut |record| visit(record, RecordPlace::KeptFor(key)))?;
            }
        }
        read_log(log_folder, acknowledged.unwrap_or(0), &mut |record| visit(record, RecordPlace::Log))
    };
    let read = read();
    stop.check().map_err(IngestError::delta(""))?;
    read?;
    Ok(problems)
}

fn add_record(
    path: &Path,
    sequence: u64,
    payload: &Bytes,
    tables: &mut BTreeMap<String, CheckedTable>,
    is_read: impl Fn(&str) -> bool,
    stop: &StopFlag,
) -> Result<(), IngestError> {
    match decode_record(payload) {
        Some((RecordDescription::Write(write), streams)) => {
            let tables_with_rows = write.tables.into_iter().zip(streams);
            for (description, stream) in tables_with_rows.filter(|(table, _)| is_read(&table.table)) {
                let key = table_key(&description.table);
                let table = tables.entry(key).or_insert_with(|| CheckedTable::new(path, &description.table));
                if sequence <= table.flushed {
                    continue;
                }
                if description.replaces {
                    table.found.log_rows = 0;
                }
                let (_, batches) = decode_stream(stream)?;
                table.found.log_rows += batches.iter().map(|batch| batch.num_rows() as u64).sum::<u64>();
                let snapshot = table.snapshot.clone();
                for file in description.staged.into_iter().filter_map(|file| file.into_data_file()) {
                    let checked = table.found.check_file(&table.folder, snapshot.as_deref(), &file, stop);
                    checked.map_err(IngestError::delta(&table.name))?;
                }
            }
        }
        Some((RecordDescription::DropTable { table }, _)) => {
            let key = table_key(&table);
            if is_read(&table) && tables.get(&key).is_some_and(|known| known.flushed < sequence) {
                tables.remove(&key);
            }
        }
        None => {
            let problem = "its content is not that of a write".to_owned();
            return Err(IngestError::Record { sequence, problem });
        }
    }
    Ok(())
}

impl CheckedTable {
    /// A table that only the log has.
    fn new(path: &Path, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            folder: path.join(name),
            snapshot: None,
            flushed: 0,
            found: TableVerification::default(),
        }
    }
}
