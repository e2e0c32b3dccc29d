//! Reads a log through and finds the first place at which it is not what was written.

use std::fmt;
use std::io::{self, BufRead as _, Read as _};
use std::path::{Path, PathBuf};

use crate::chain::{self, ChainLink, GENESIS_HASH};
use crate::files::{self, LINE_BYTES_MAX};
use crate::head::LogHead;
use crate::key::AuditKey;
use crate::snapshot::{LogFile, LogSnapshot};

/// What is known of a log beside itself.
#[derive(Debug, Clone, Default)]
pub struct VerifyOptions {
    /// The key of its chain.
    pub key: Option<AuditKey>,
    /// The hash of a line that must be in it: it was read from the log earlier and kept elsewhere.
    pub required_hash: Option<String>,
}

/// A log that is what was written, as far as can be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedLog {
    /// Lines that were read.
    pub lines: u64,
    /// The number of the first.
    pub first: u64,
    /// The last.
    pub last: ChainLink,
    /// Whether the head of the log was there to tell how far it reached.
    pub has_head: bool,
    /// What its reader should know.
    pub notices: Vec<VerifyNotice>,
}

/// What a log says of itself that its reader should know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerifyNotice {
    /// Lines before the first are not here: they were rotated away.
    BeginsAt(u64),
    /// A part of a line was cut off when the log was opened, before that line.
    Truncated {
        /// The line that says so.
        seq: u64,
        /// So many bytes.
        bytes: u64,
    },
    /// Lines were dropped before that line.
    Dropped {
        /// The line that says so.
        seq: u64,
        /// So many.
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

/// The first place at which a log is not what was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: line {line}: {reason}", .file.display())]
pub struct BrokenLog {
    /// Which file.
    pub file: PathBuf,
    /// Which line of it, from 1 on; one more than it has when something is missing at its end.
    pub line: u64,
    /// What is wrong.
    pub reason: String,
}

/// Why a log is not verified.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// It is not what was written.
    #[error(transparent)]
    Broken(#[from] BrokenLog),
    /// It cannot be read.
    #[error("{}: {error}", .file.display())]
    Io {
        /// Which file.
        file: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is rotated all the time.
    #[error("the log is rotated faster than its files can be opened; verify a copy, or raise audit.max_size")]
    RotatedTooOften,
}

/// Verifies the log whose files are `files`, in any order; with each come the older ones and the head beside it.
///
/// # Errors
/// The first break, or a file that cannot be read.
pub fn verify(files: &[PathBuf], options: &VerifyOptions) -> Result<VerifiedLog, VerifyError> {
    let LogSnapshot { head, files: parts } = LogSnapshot::open_all(files, options.key.as_ref())?;
    let mut walk = LogVerifier {
        options,
        head,
        last: None,
        first: 1,
        lines: 0,
        notices: Vec::new(),
        missing: RequiredHash::new(options),
    };
    let mut place = (files.first().cloned().unwrap_or_default(), 0);
    let newest = parts.len().saturating_sub(1);
    for (number, mut part) in parts.into_iter().enumerate() {
        let lines = walk.verify_file(&mut part, number == newest)?;
        place = (part.path, lines);
    }
    walk.finish(&place.0, place.1)
}

pub(crate) fn broken_log(file: &Path, line: u64, reason: impl Into<String>) -> BrokenLog {
    BrokenLog { file: file.to_owned(), line, reason: reason.into() }
}

/// What was not seen yet of what must be there.
struct RequiredHash {
    hash: Option<String>,
}

impl RequiredHash {
    fn new(options: &VerifyOptions) -> Self {
        Self { hash: options.required_hash.as_ref().map(|hash| hash.trim().to_lowercase()) }
    }

    fn observe(&mut self, hash: &str) {
        self.hash.take_if(|expected| expected == hash);
    }
}

/// The way through a log.
struct LogVerifier<'a> {
    options: &'a VerifyOptions,
    head: Option<LogHead>,
    last: Option<ChainLink>,
    first: u64,
    lines: u64,
    notices: Vec<VerifyNotice>,
    missing: RequiredHash,
}

impl LogVerifier<'_> {
    /// Reads `part` and says how many lines it has.
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
                // The rest of it is written right now.
                if is_newest && line.len() <= LINE_BYTES_MAX && files::has_writer(path) {
                    return Ok(number - 1);
                }
                return Err(broken_log(path, number, "is incomplete").into());
            };
            self.verify_line(whole).map_err(|reason| broken_log(path, number, reason))?;
        }
        Ok(0)
    }

    fn verify_line(&mut self, line: &[u8]) -> Result<(), String> {
        let read = chain::parse_line(line, self.options.key.as_ref())?;
        let seq = read.link.seq;
        match &self.last {
            None => self.begin_chain(&read)?,
            Some(last) if seq != last.seq + 1 => {
                return Err(format!("is number {seq} and follows {}: lines were removed, added or moved", last.seq));
            }
            Some(last) if read.previous_hash != last.hash => {
                return Err("does not continue the line before it: one of them was altered".to_owned());
            }
            Some(_) => {}
        }
        if let Some(until) = read.missing_until {
            return Err(format!("records that lines up to {until} were missing before it when the log was opened"));
        }
        self.notices.extend(read.mended_bytes.map(|bytes| VerifyNotice::Truncated { seq, bytes }));
        self.notices.extend(read.dropped.map(|lines| VerifyNotice::Dropped { seq, lines }));
        if let Some(head) = self.head.as_ref().filter(|head| head.seq == seq)
            && head.hash != read.link.hash
        {
            return Err("does not match the hash in the head of the log".to_owned());
        }
        self.missing.observe(&read.link.hash);
        self.lines += 1;
        self.last = Some(read.link);
        Ok(())
    }

    fn begin_chain(&mut self, read: &chain::ParsedLine) -> Result<(), String> {
        let seq = read.link.seq;
        self.first = seq;
        if seq == 1 && read.previous_hash != GENESIS_HASH {
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
        if let Some(hash) = self.missing.hash {
            return Err(after(format!("is missing: the line with the hash {hash} is not in the log")));
        }
        let has_head = self.head.is_some();
        Ok(VerifiedLog { lines: self.lines, first: self.first, last, has_head, notices: self.notices })
    }
}
