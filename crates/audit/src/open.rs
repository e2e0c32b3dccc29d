//! Opens a log and continues after its last complete line.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::chain::ChainLink;
use crate::files::{self, FileTail, with_suffix};
use crate::head::LogHead;
use crate::options::AuditOptions;
use crate::record::RecordKind;
use crate::sink::FileSink;

/// Why a log cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process writes the log.
    #[error("another process writes the audit log {}; give each its own file", .0.display())]
    Locked(PathBuf),
    /// The end of the log is invalid.
    #[error(
        "cannot append to the audit log {}: {reason}; move it and the files beside it away, and verify them",
        .file.display()
    )]
    NotAppendable {
        /// The log.
        file: PathBuf,
        /// What is wrong with its end.
        reason: String,
    },
    /// A file of the log cannot be read or written.
    #[error("the audit log {} cannot be used: {error}", .file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
}

impl OpenError {
    fn from_io(file: &Path, error: io::Error) -> Self {
        let file = file.to_owned();
        match error.kind() {
            io::ErrorKind::InvalidData => Self::NotAppendable { file, reason: error.to_string() },
            _ => Self::Io { file, error },
        }
    }
}

pub(crate) struct OpenLog {
    pub(crate) sink: FileSink,
    pub(crate) last: ChainLink,
    pub(crate) opened: RecordKind,
}

/// Opens the log in `options`. An incomplete line at its end, as after a crash, is removed.
pub(crate) fn open(options: &AuditOptions) -> Result<OpenLog, OpenError> {
    let (path, key) = (&options.file, options.key.as_ref());
    let failed = |error: io::Error| OpenError::from_io(path, error);
    let lock = acquire_lock(options)?;
    let mut file = files::open(path).map_err(failed)?;
    let FileTail { last, whole_bytes, torn_bytes } = files::read_tail(&mut file, key).map_err(failed)?;
    if torn_bytes > 0 {
        file.set_len(whole_bytes).map_err(failed)?;
        tracing::warn!(file = %path.display(), bytes = torn_bytes, "an incomplete line at the end of the audit log was removed");
    }
    let last = match last {
        Some(last) => last,
        // The file is new, or nothing was written to it.
        None => match File::open(files::rotated_path(path, 1)) {
            Ok(mut older) => files::read_tail(&mut older, key).map_err(failed)?.last.unwrap_or_else(ChainLink::genesis),
            Err(_) => ChainLink::genesis(),
        },
    };
    let head = LogHead::read(path, key).map_err(failed)?;
    // Lines in the head that are not in the log were not rotated away; they are reported missing until they are.
    let first =
        head.as_ref().map(|head| head.first).or_else(|| files::first_seq(files::existing_files(path).first()?, key));
    let missing_until = head.map(|head| head.seq).filter(|seq| *seq > last.seq);
    if let Some(seq) = missing_until {
        let (file, last) = (path.display(), last.seq);
        tracing::error!(%file, last, missing_until = seq, "lines at the end of the audit log are missing");
    }
    let opened = RecordKind::Opened { mended_bytes: torn_bytes, missing_until };
    let sink = FileSink::new(
        path.clone(),
        options.kept_files,
        options.key.clone(),
        (file, whole_bytes),
        first.unwrap_or(1),
        lock,
    );
    Ok(OpenLog { sink, last, opened })
}

/// Checks whether the log in `options` can be opened, now or after its current writer ends. It leaves no file behind.
pub(crate) fn check_openable(options: &AuditOptions) -> Result<(), OpenError> {
    let (path, key) = (&options.file, options.key.as_ref());
    let failed = |error: io::Error| OpenError::from_io(path, error);
    let is_there = |opened: io::Result<File>| match opened {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(error)),
    };
    is_there(OpenOptions::new().write(true).open(with_suffix(path, ".lock")))?;
    if let Some(mut file) = is_there(OpenOptions::new().read(true).append(true).open(path))? {
        files::read_tail(&mut file, key).map_err(failed)?;
    }
    LogHead::read(path, key).map_err(failed)?;
    // The head is written as a new file each time. This test file has no name, or is unlinked at once.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    folder.metadata().map_err(failed)?;
    tempfile::tempfile_in(folder).map(drop).map_err(failed)
}

fn acquire_lock(options: &AuditOptions) -> Result<File, OpenError> {
    let path = with_suffix(&options.file, ".lock");
    let failed = |error| OpenError::Io { file: options.file.clone(), error };
    let lock =
        files::open_private(OpenOptions::new().write(true).create(true).truncate(false), &path).map_err(failed)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(OpenError::Locked(options.file.clone())),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}
