//! A consistent set of the files of a log and its head, also while the log is written and rotated, and why a
//! verification fails.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufReader, Seek as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::files;
use crate::head::LogHead;
use crate::options::AuditKey;

/// Attempts while the log is rotated, and the delay between them.
const TRIES_MAX: usize = 50;
const RETRY_AFTER: Duration = Duration::from_millis(5);

pub(crate) struct LogSnapshot {
    pub(crate) head: Option<LogHead>,
    /// Oldest first.
    pub(crate) files: Vec<LogFile>,
}

pub(crate) struct LogFile {
    pub(crate) path: PathBuf,
    pub(crate) lines: BufReader<File>,
    first: Option<u64>,
    is_empty: bool,
}

impl LogSnapshot {
    /// Opens the files in `named`, with the rotated files and the head beside each.
    pub(crate) fn open_all(named: &[PathBuf], key: Option<&AuditKey>) -> Result<Self, VerifyError> {
        let mut missing = None;
        let mut incomplete = None;
        for _ in 0..TRIES_MAX {
            match Self::open_once(named, key) {
                Ok(collected) if collected.is_unchanged(named, key)? => {
                    if collected.reaches_head() || !named.iter().any(|file| files::has_writer(file)) {
                        return Ok(collected.sort_by_sequence());
                    }
                    incomplete = Some(collected);
                }
                Ok(_) => missing = None,
                // The file may have been renamed since the listing.
                Err(VerifyError::Io { file, error }) if error.kind() == io::ErrorKind::NotFound => {
                    missing = Some(VerifyError::Io { file, error });
                }
                Err(error) => return Err(error),
            }
            std::thread::sleep(RETRY_AFTER);
        }
        if let Some(collected) = incomplete {
            return Ok(collected.sort_by_sequence());
        }
        Err(missing.unwrap_or(VerifyError::RotatedTooOften))
    }

    fn open_once(named: &[PathBuf], key: Option<&AuditKey>) -> Result<Self, VerifyError> {
        let head = read_head(named, key)?;
        let parts = list_paths(named).into_iter().map(|path| LogFile::open(path, key)).collect::<Result<_, _>>()?;
        Ok(Self { head, files: parts })
    }

    fn is_unchanged(&self, named: &[PathBuf], key: Option<&AuditKey>) -> Result<bool, VerifyError> {
        let now = list_paths(named).into_iter().map(|path| (files::first_seq(&path, key), path));
        let then = self.files.iter().map(|part| (part.first, part.path.clone()));
        Ok(now.eq(then) && read_head(named, key)? == self.head)
    }

    /// A rotation renames file after file, and between two renames the oldest line of the head may be missing.
    fn reaches_head(&self) -> bool {
        let oldest = self.files.iter().filter_map(|part| part.first).min();
        self.head.as_ref().is_none_or(|head| oldest.is_some_and(|oldest| oldest <= head.first))
    }

    fn sort_by_sequence(mut self) -> Self {
        // A file with an unreadable first line comes first, so that it is reported; an empty file comes last.
        self.files.sort_by_key(|part| (part.is_empty, part.first.unwrap_or(0)));
        self
    }
}

impl LogFile {
    fn open(path: PathBuf, key: Option<&AuditKey>) -> Result<Self, VerifyError> {
        let opened = File::open(&path).and_then(|file| {
            let is_empty = file.metadata()?.len() == 0;
            let mut lines = BufReader::new(file);
            let first = files::read_first_seq(&mut lines, key)?;
            lines.rewind()?;
            Ok((lines, first, is_empty))
        });
        match opened {
            Ok((lines, first, is_empty)) => Ok(Self { path, lines, first, is_empty }),
            Err(error) => Err(VerifyError::Io { file: path, error }),
        }
    }
}

fn list_paths(named: &[PathBuf]) -> BTreeSet<PathBuf> {
    let beside = named.iter().flat_map(|file| {
        let beside = files::existing_files(file);
        if beside.is_empty() { vec![file.clone()] } else { beside }
    });
    beside.collect()
}

fn read_head(named: &[PathBuf], key: Option<&AuditKey>) -> Result<Option<LogHead>, VerifyError> {
    let read = |file: &Path| {
        LogHead::read(file, key).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => broken_log(file, 0, error.to_string()).into(),
            _ => VerifyError::Io { file: file.to_owned(), error },
        })
    };
    named.iter().find_map(|file| read(file).transpose()).transpose()
}

/// The first altered line of a log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: line {line}: {reason}", .file.display())]
pub struct BrokenLog {
    /// The file.
    pub file: PathBuf,
    /// The line in the file, from 1. If the end is missing, one more than the number of lines.
    pub line: u64,
    /// What is wrong.
    pub reason: String,
}

/// Why verification failed.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The log was altered.
    #[error(transparent)]
    Broken(#[from] BrokenLog),
    /// A file cannot be read.
    #[error("{}: {error}", .file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The log was rotated during every attempt.
    #[error("the log is rotated faster than its files can be opened; verify a copy, or raise audit.max_size")]
    RotatedTooOften,
}

pub(crate) fn broken_log(file: &Path, line: u64, reason: impl Into<String>) -> BrokenLog {
    BrokenLog { file: file.to_owned(), line, reason: reason.into() }
}
