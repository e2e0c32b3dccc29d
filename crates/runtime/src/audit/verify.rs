//! Verifies a log and reports the first altered line. Its files and its head are read as a consistent set, also while the log is
//! written and rotated.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fmt, io};

use crate::audit::chain::{AuditKey, ChainLink, GENESIS_HASH};
use crate::audit::sink::{LINE_BYTES_MAX, LogHead};
use crate::audit::{chain, sink};

/// What the verifier has besides the log.
#[derive(Debug, Clone, Default)]
pub struct VerifyOptions {
    /// The key of the hash chain.
    pub key: Option<AuditKey>,
    /// The hash of a line that the log must contain, noted earlier and kept elsewhere.
    pub required_hash: Option<String>,
}

/// The result for an intact log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedLog {
    /// The number of lines.
    pub lines: u64,
    /// The number of the first line.
    pub first: u64,
    /// The last line.
    pub last: ChainLink,
    /// Whether a head file was available to detect truncation.
    pub has_head: bool,
    /// Notices about the log.
    pub notices: Vec<VerifyNotice>,
}

/// Something in an intact log that its reader should notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerifyNotice {
    /// The log begins at this line; earlier ones were rotated away.
    BeginsAt(u64),
    /// An incomplete line before this one was removed when the log was opened.
    Truncated {
        /// The line with the notice.
        seq: u64,
        /// The number of bytes.
        bytes: u64,
    },
    /// Lines before this one were dropped.
    Dropped {
        /// The line with the notice.
        seq: u64,
        /// The number of dropped lines.
        lines: u64,
    },
}

impl fmt::Display for VerifyNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BeginsAt(seq) => write!(f, "the log begins at {seq}: earlier lines are not in these files"),
            Self::Truncated { seq, bytes } => {
                write!(f, "before {seq} an incomplete line ({bytes} bytes) was removed, as after a crash")
            }
            Self::Dropped { seq, lines } => write!(f, "before {seq} lines were dropped: {lines}"),
        }
    }
}

/// Verifies the log with the files `files`, in any order, including the rotated files and the head beside each.
///
/// # Errors
/// The first altered line, or a file that cannot be read.
pub fn verify(files: &[PathBuf], options: &VerifyOptions) -> Result<VerifiedLog, VerifyError> {
    let LogSnapshot { head, files: parts } = LogSnapshot::open_all(files, options.key.as_ref())?;
    let mut verifier = LogVerifier {
        options,
        head,
        last: None,
        first: 1,
        lines: 0,
        notices: Vec::new(),
        missing_hash: options.required_hash.as_ref().map(|hash| hash.trim().to_lowercase()),
    };
    let mut end = (files.first().cloned().unwrap_or_default(), 0);
    let newest = parts.len().saturating_sub(1);
    for (number, mut part) in parts.into_iter().enumerate() {
        let lines = verifier.verify_file(&mut part, number == newest)?;
        end = (part.path, lines);
    }
    verifier.finish(&end.0, end.1)
}

struct LogVerifier<'a> {
    options: &'a VerifyOptions,
    head: Option<LogHead>,
    last: Option<ChainLink>,
    first: u64,
    lines: u64,
    notices: Vec<VerifyNotice>,
    missing_hash: Option<String>,
}

impl LogVerifier<'_> {
    fn verify_file(&mut self, part: &mut LogFile, is_newest: bool) -> Result<u64, VerifyError> {
        let LogFile { path, lines, .. } = part;
        let failed = |error| VerifyError::Io { file: path.clone(), error };
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            let limit = LINE_BYTES_MAX as u64 + 1;
            if lines.by_ref().take(limit).read_until(b'\n', &mut line).map_err(failed)? == 0 {
                return Ok(number - 1);
            }
            let Some(whole) = line.strip_suffix(b"\n") else {
                // The line is being written.
                if is_newest && line.len() <= LINE_BYTES_MAX && sink::has_writer(path) {
                    return Ok(number - 1);
                }
                return Err(broken_log(path, number, "is incomplete").into());
            };
            self.verify_line(whole).map_err(|reason| broken_log(path, number, reason))?;
        }
        Ok(0)
    }

    fn verify_line(&mut self, line: &[u8]) -> Result<(), String> {
        let line = chain::parse_line(line, self.options.key.as_ref())?;
        let link = line.link();
        let seq = link.seq;
        match &self.last {
            None => self.begin_chain(seq, &line.previous_hash)?,
            Some(last) if seq != last.seq + 1 => {
                return Err(format!("is number {seq} and follows {}: lines were removed, added or moved", last.seq));
            }
            Some(last) if line.previous_hash != last.hash => {
                return Err("does not continue the line before it: one of them was altered".to_owned());
            }
            Some(_) => {}
        }
        if let Some(until) = line.missing_until {
            return Err(format!("records that lines up to {until} were missing before it when the log was opened"));
        }
        self.notices.extend(line.mended_bytes.map(|bytes| VerifyNotice::Truncated { seq, bytes }));
        self.notices.extend(line.dropped.map(|lines| VerifyNotice::Dropped { seq, lines }));
        if let Some(head) = self.head.as_ref().filter(|head| head.seq == seq)
            && head.hash != link.hash
        {
            return Err("does not match the hash in the head of the log".to_owned());
        }
        self.missing_hash.take_if(|hash| *hash == link.hash);
        self.lines += 1;
        self.last = Some(link);
        Ok(())
    }

    fn begin_chain(&mut self, seq: u64, previous_hash: &str) -> Result<(), String> {
        self.first = seq;
        if seq == 1 && previous_hash != GENESIS_HASH {
            return Err("is the first line, but names one before it".to_owned());
        }
        if let Some(head) = self.head.as_ref().filter(|head| seq > head.first && seq <= head.seq) {
            return Err(format!("is number {seq}, but the head of the log begins at line {}", head.first));
        }
        self.notices.extend((seq > 1).then_some(VerifyNotice::BeginsAt(seq)));
        Ok(())
    }

    fn finish(self, file: &Path, lines: u64) -> Result<VerifiedLog, VerifyError> {
        let after = |reason: String| VerifyError::from(broken_log(file, lines + 1, reason));
        let last = self.last.unwrap_or_else(ChainLink::genesis);
        if let Some(head) = self.head.as_ref().filter(|head| head.seq > last.seq) {
            let reason =
                format!("is missing: the log ends at {}, but its head records lines up to {}", last.seq, head.seq);
            return Err(after(reason));
        }
        if let Some(hash) = self.missing_hash {
            return Err(after(format!("is missing: the line with the hash {hash} is not in the log")));
        }
        let has_head = self.head.is_some();
        Ok(VerifiedLog { lines: self.lines, first: self.first, last, has_head, notices: self.notices })
    }
}

/// Attempts while the log is rotated, and the delay between them.
const TRIES_MAX: usize = 50;
const RETRY_AFTER: Duration = Duration::from_millis(5);

struct LogSnapshot {
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
    fn open_all(named: &[PathBuf], key: Option<&AuditKey>) -> Result<Self, VerifyError> {
        let mut missing = None;
        let mut incomplete = None;
        for _ in 0..TRIES_MAX {
            match Self::open_once(named, key) {
                Ok(collected) if collected.is_unchanged(named, key)? => {
                    if collected.reaches_head() || !named.iter().any(|file| sink::has_writer(file)) {
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
        let now = list_paths(named).into_iter().map(|path| (sink::first_seq(&path, key), path));
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
            let first = sink::read_first_seq(&mut lines, key)?;
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
        let beside = sink::existing_files(file);
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

fn broken_log(file: &Path, line: u64, reason: impl Into<String>) -> BrokenLog {
    BrokenLog { file: file.to_owned(), line, reason: reason.into() }
}
