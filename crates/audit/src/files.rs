//! The files of a log: the current one, the rotated ones beside it, and the end of each.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use crate::chain::{self, ChainLink};
use crate::options::AuditKey;

pub(crate) const LINE_BYTES_MAX: usize = 4 * 1024 * 1024;

pub(crate) fn with_suffix(log: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(log.as_os_str());
    name.push(ending);
    name.into()
}

/// The name of a file after so many rotations.
pub(crate) fn rotated_path(log: &Path, rotations: usize) -> PathBuf {
    with_suffix(log, &format!(".{rotations}"))
}

pub(crate) fn existing_files(log: &Path) -> Vec<PathBuf> {
    let older = (1..).map(|rotations| rotated_path(log, rotations)).take_while(|path| path.exists());
    let mut files: Vec<PathBuf> = older.collect();
    files.reverse();
    files.extend(log.exists().then(|| log.to_owned()));
    files
}

/// Opens the file for appending; only its owner can read it.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    open_private(OpenOptions::new().read(true).append(true).create(true), path)
}

/// A new file is its owner's alone: another user could otherwise lock it and prevent a start.
pub(crate) fn open_private(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    tidegate_core::private_file::set_owner_only(options).open(path)
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FileTail {
    pub(crate) last: Option<ChainLink>,
    pub(crate) whole_bytes: u64,
    pub(crate) torn_bytes: u64,
}

/// Reads the end of `file`; `InvalidData` when the last complete line does not belong to this chain.
pub(crate) fn read_tail(file: &mut File, key: Option<&AuditKey>) -> io::Result<FileTail> {
    let bytes = file.metadata()?.len();
    let tail_bytes = bytes.min(2 * LINE_BYTES_MAX as u64);
    file.seek(SeekFrom::Start(bytes - tail_bytes))?;
    let mut tail = Vec::new();
    file.by_ref().take(tail_bytes).read_to_end(&mut tail)?;
    let Some(end) = tail.iter().rposition(|byte| *byte == b'\n') else {
        if tail_bytes < bytes {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "its end is not a line of an audit log"));
        }
        return Ok(FileTail { last: None, whole_bytes: 0, torn_bytes: bytes });
    };
    let start = tail[..end].iter().rposition(|byte| *byte == b'\n').map_or(0, |before| before + 1);
    let invalid = |problem| io::Error::new(io::ErrorKind::InvalidData, format!("its last line {problem}"));
    let line = chain::parse_line(&tail[start..end], key).map_err(invalid)?;
    let torn_bytes = (tail.len() - end - 1) as u64;
    Ok(FileTail { last: Some(line.link()), whole_bytes: bytes - torn_bytes, torn_bytes })
}

pub(crate) fn first_seq(path: &Path, key: Option<&AuditKey>) -> Option<u64> {
    read_first_seq(&mut BufReader::new(File::open(path).ok()?), key).ok()?
}

/// The number of the first line of `lines`; `None` if it is invalid.
pub(crate) fn read_first_seq(lines: &mut BufReader<File>, key: Option<&AuditKey>) -> io::Result<Option<u64>> {
    let mut line = Vec::new();
    lines.take(LINE_BYTES_MAX as u64).read_until(b'\n', &mut line)?;
    let parsed = line.strip_suffix(b"\n").and_then(|line| chain::parse_line(line, key).ok());
    Ok(parsed.map(|parsed| parsed.link().seq))
}

pub(crate) fn has_writer(log: &Path) -> bool {
    File::open(with_suffix(log, ".lock"))
        .is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Whether both are the same file. If that is unknown, they count as the same.
pub(crate) fn is_same_file(one: &Metadata, other: &Metadata) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        (one.dev(), one.ino()) == (other.dev(), other.ino())
    }
    #[cfg(not(unix))]
    {
        one.file_type() == other.file_type()
    }
}

pub(crate) fn rotate(log: &Path, kept: usize) -> io::Result<()> {
    // Left from a time with a larger limit. The oldest is removed first, so that an interruption leaves no gap in the
    // chain.
    let beyond = (kept + 1..).map(|rotations| rotated_path(log, rotations)).take_while(|path| path.exists());
    for path in beyond.collect::<Vec<_>>().iter().rev() {
        fs::remove_file(path)?;
    }
    if kept == 0 {
        return fs::remove_file(log);
    }
    for rotations in (1..kept).rev() {
        match fs::rename(rotated_path(log, rotations), rotated_path(log, rotations + 1)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    fs::rename(log, rotated_path(log, 1))
}
