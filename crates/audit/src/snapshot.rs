//! The files of a log with its head, as they stood at one moment: also of a log that is written and rotated meanwhile.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::chain;
use crate::files::{self, LINE_BYTES_MAX};
use crate::head::LogHead;
use crate::key::AuditKey;
use crate::verify::{VerifyError, broken_log};

/// How often it is tried while the log is rotated, and how long after the try before.
const TRIES_MAX: usize = 50;
const RETRY_AFTER: Duration = Duration::from_millis(5);

/// What belongs to a log, held open: what it is called later does not matter any more.
pub(crate) struct LogSnapshot {
    pub(crate) head: Option<LogHead>,
    /// Oldest first.
    pub(crate) files: Vec<LogFile>,
}

/// One file of it.
pub(crate) struct LogFile {
    pub(crate) path: PathBuf,
    pub(crate) lines: BufReader<File>,
    /// The number of its first line, if that can be read.
    first: Option<u64>,
    is_empty: bool,
}

impl LogSnapshot {
    /// Of the logs whose files are `named`, with the older ones and the head beside each.
    pub(crate) fn open_all(named: &[PathBuf], key: Option<&AuditKey>) -> Result<Self, VerifyError> {
        let mut missing = None;
        for _ in 0..TRIES_MAX {
            match Self::open_once(named, key) {
                Ok(collected) if collected.is_unchanged(named, key)? => return Ok(collected.sort_by_sequence()),
                Ok(_) => missing = None,
                // Perhaps it was listed, and is called something else by now.
                Err(VerifyError::Io { file, error }) if error.kind() == io::ErrorKind::NotFound => {
                    missing = Some(VerifyError::Io { file, error });
                }
                Err(error) => return Err(error),
            }
            std::thread::sleep(RETRY_AFTER);
        }
        Err(missing.unwrap_or(VerifyError::RotatedTooOften))
    }

    fn open_once(named: &[PathBuf], key: Option<&AuditKey>) -> Result<Self, VerifyError> {
        let head = read_head(named, key)?;
        let parts = list_paths(named).into_iter().map(|path| LogFile::open(path, key)).collect::<Result<_, _>>()?;
        Ok(Self { head, files: parts })
    }

    /// Whether nothing was rotated while it was collected.
    fn is_unchanged(&self, named: &[PathBuf], key: Option<&AuditKey>) -> Result<bool, VerifyError> {
        let now = list_paths(named).into_iter().map(|path| (files::first_seq(&path, key), path));
        let then = self.files.iter().map(|part| (part.first, part.path.clone()));
        Ok(now.eq(then) && read_head(named, key)? == self.head)
    }

    fn sort_by_sequence(mut self) -> Self {
        // A file whose first line cannot be read is looked at first, and found; one that was begun and not written
        // stands at the end.
        self.files.sort_by_key(|part| (part.is_empty, part.first.unwrap_or(0)));
        self
    }
}

impl LogFile {
    fn open(path: PathBuf, key: Option<&AuditKey>) -> Result<Self, VerifyError> {
        let opened = File::open(&path).and_then(|file| {
            let is_empty = file.metadata()?.len() == 0;
            let mut lines = BufReader::new(file);
            let first = read_first_seq(&mut lines, key)?;
            lines.rewind()?;
            Ok((lines, first, is_empty))
        });
        match opened {
            Ok((lines, first, is_empty)) => Ok(Self { path, lines, first, is_empty }),
            Err(error) => Err(VerifyError::Io { file: path, error }),
        }
    }
}

fn read_first_seq(lines: &mut BufReader<File>, key: Option<&AuditKey>) -> io::Result<Option<u64>> {
    let mut line = Vec::new();
    lines.take(LINE_BYTES_MAX as u64).read_until(b'\n', &mut line)?;
    Ok(line.strip_suffix(b"\n").and_then(|line| chain::parse_line(line, key).ok()).map(|read| read.link.seq))
}

fn list_paths(named: &[PathBuf]) -> BTreeSet<PathBuf> {
    let beside = named.iter().flat_map(|file| {
        let beside = files::existing_files(file);
        if beside.is_empty() { vec![file.clone()] } else { beside }
    });
    beside.collect()
}

/// The first head that there is.
fn read_head(named: &[PathBuf], key: Option<&AuditKey>) -> Result<Option<LogHead>, VerifyError> {
    let read = |file: &Path| {
        LogHead::read(file, key).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => broken_log(file, 0, error.to_string()).into(),
            _ => VerifyError::Io { file: file.to_owned(), error },
        })
    };
    named.iter().find_map(|file| read(file).transpose()).transpose()
}
