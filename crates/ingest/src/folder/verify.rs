//! Compares what is on disk with what was written.

use std::path::PathBuf;

use super::IngestError;
use super::shared::FolderShared;
use crate::delta::{DeltaError, read_file, verify_file};

/// Rows of a batch while files are read.
const BATCH_ROWS: usize = 8192;
/// Problems that are listed.
const PROBLEMS_MAX: usize = 100;

/// The result of the comparison. The size and CRC-32 of a file are compared with those that its writer stored in the tags
/// of the Delta table or in the log, its rows are read and counted. Rows in the log are those in memory: their checksums
/// are verified when the log is opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableVerification {
    /// Rows that were read from data files.
    pub file_rows: u64,
    /// Data files that were read.
    pub files: u64,
    /// Rows that only the log has.
    pub log_rows: u64,
    /// Files with a problem, and what it is. At most 100.
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
        let view = self.state.lock().tables.get_mut(key).and_then(|table| table.view());
        let view = view.ok_or_else(|| IngestError::UnknownTable(key.to_owned()))?;
        let verify = move || {
            let mut result = TableVerification {
                log_rows: view.batches().iter().map(|batch| batch.num_rows() as u64).sum(),
                ..TableVerification::default()
            };
            for file in view.files() {
                result.files += 1;
                let mut rows = 0;
                let mut count = || -> Result<(), DeltaError> {
                    verify_file(view.folder(), file)?;
                    // There is a version if there are files.
                    let Some(snapshot) = view.snapshot() else { return Ok(()) };
                    for batch in read_file(view.folder(), snapshot, file, BATCH_ROWS)? {
                        rows += batch?.num_rows() as u64;
                    }
                    Ok(())
                };
                if let Err(error) = count()
                    && result.problems.len() < PROBLEMS_MAX
                {
                    result.problems.push((view.folder().join(&file.path), error.to_string()));
                }
                result.file_rows += rows;
            }
            result
        };
        tokio::task::spawn_blocking(verify).await.map_err(|_| IngestError::Panicked)
    }
}
