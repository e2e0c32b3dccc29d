//! Compares what is on disk with what was written.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use super::IngestError;
use super::names::table_key;
use super::shared::FolderShared;
use super::table_state::LoggedRows;
use super::write_record::{RecordDescription, decode_record, decode_stream};
use crate::delta::{DataFile, DeltaError, DeltaSnapshot, StopFlag, read_file, verify_file};
use crate::write_ahead_log::LogChecker;

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
    pub(super) fn check_file(
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

    pub(super) fn add_problem(&mut self, path: PathBuf, problem: String) {
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
