//! The destination of lines: a rotated file. The files of a log are the current one and the rotated ones beside it. The head
//! file records how far the log reaches, so that truncation is detected.

use std::ffi::OsString;
use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io::{BufRead as _, BufReader, Read, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::{Deserialize, Serialize};

use crate::audit::chain::{self, AuditKey, ChainLink, compute_hash};

/// The destination of lines. Its methods may block; they are called on the writer thread.
pub trait AuditSink: Send {
    /// Appends `lines`, all of them complete. After an error none of them is written.
    ///
    /// # Errors
    /// When they cannot be written; the writer tries again later.
    fn append(&mut self, lines: &[u8]) -> io::Result<()>;

    /// Bytes of the current file.
    fn bytes(&self) -> u64;

    /// Starts a new file after the line `last`. After an error the current file stays in use.
    ///
    /// # Errors
    /// When the new file cannot be created.
    fn rotate(&mut self, last: &ChainLink) -> io::Result<()>;

    /// Syncs all lines to disk and records `last` as the last one.
    ///
    /// # Errors
    /// When the sync fails, so that it is unknown whether the lines are on the disk.
    fn sync(&mut self, last: &ChainLink) -> io::Result<()>;
}

/// A file with rotated ones beside it.
#[derive(Debug)]
pub(crate) struct FileSink {
    path: PathBuf,
    kept_files: usize,
    key: Option<AuditKey>,
    file: File,
    bytes: u64,
    /// Whether an incomplete line may follow the last one.
    is_torn: bool,
    first: u64,
    /// The lock, held while the log is open.
    _lock: File,
}

impl FileSink {
    /// The sink of the log at `path`. `file` has `bytes` bytes; the oldest line of the log is `first`.
    pub(crate) fn new(
        path: PathBuf,
        kept_files: usize,
        key: Option<AuditKey>,
        (file, bytes): (File, u64),
        first: u64,
        lock: File,
    ) -> Self {
        Self { path, kept_files, key, file, bytes, is_torn: false, first, _lock: lock }
    }

    fn truncate_torn_line(&mut self) -> io::Result<()> {
        if self.is_torn {
            self.file.set_len(self.bytes)?;
            self.is_torn = false;
        }
        Ok(())
    }

    fn is_in_place(&self) -> bool {
        let here = self.path.metadata().and_then(|here| Ok(is_same_file(&here, &self.file.metadata()?)));
        here.unwrap_or(false)
    }

    /// The number of the oldest line after a rotation behind the line `last`.
    fn first_after_rotation(&self, last: &ChainLink) -> u64 {
        let files = existing_files(&self.path);
        let Some(gone) = files.len().checked_sub(self.kept_files).filter(|gone| *gone > 0) else { return self.first };
        match files.get(gone) {
            Some(oldest) => first_seq(oldest, self.key.as_ref()).unwrap_or(self.first),
            None => last.seq + 1,
        }
    }

    fn write_head(&self, last: &ChainLink) -> io::Result<()> {
        LogHead::new(self.first, last, self.key.as_ref()).write(&self.path)
    }
}

impl AuditSink for FileSink {
    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        self.truncate_torn_line()?;
        if let Err(error) = self.file.write_all(lines) {
            self.is_torn = true;
            // If this fails, the next `append` tries again before it writes.
            let _ = self.truncate_torn_line();
            return Err(error);
        }
        self.bytes += lines.len() as u64;
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn rotate(&mut self, last: &ChainLink) -> io::Result<()> {
        self.truncate_torn_line()?;
        self.file.sync_data()?;
        // The head is updated before old lines are removed, so that a concurrent reader misses none.
        self.first = self.first_after_rotation(last);
        self.write_head(last)?;
        // A previous attempt may already have moved the file.
        if self.path.exists() {
            rotate(&self.path, self.kept_files)?;
        }
        self.file = open_file(&self.path)?;
        self.bytes = 0;
        Ok(())
    }

    fn sync(&mut self, last: &ChainLink) -> io::Result<()> {
        self.file.sync_data()?;
        self.write_head(last)?;
        if !self.is_in_place() {
            let file = self.path.display();
            tracing::error!(%file, "the audit log was moved or deleted while in use; writing continues in a new file");
            self.file = open_file(&self.path)?;
            self.bytes = self.file.metadata()?.len();
        }
        Ok(())
    }
}

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
pub(crate) fn open_file(path: &Path) -> io::Result<File> {
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
    Read::by_ref(file).take(tail_bytes).read_to_end(&mut tail)?;
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
fn is_same_file(one: &Metadata, other: &Metadata) -> bool {
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

/// How far a log reached when the head was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogHead {
    /// The number of the oldest kept line.
    pub first: u64,
    /// The number of the last line.
    pub seq: u64,
    /// The hash of the last line.
    pub hash: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mac: Option<String>,
}

impl LogHead {
    pub(crate) fn new(first: u64, last: &ChainLink, key: Option<&AuditKey>) -> Self {
        let head = Self { first, seq: last.seq, hash: last.hash.clone(), mac: None };
        Self { mac: key.map(|key| head.compute_mac(key)), ..head }
    }

    /// The head of `log`; `None` if there is no head file.
    ///
    /// # Errors
    /// Read errors; `InvalidData` when the file is malformed or not signed with `key`.
    pub fn read(log: &Path, key: Option<&AuditKey>) -> io::Result<Option<Self>> {
        let text = match fs::read(with_suffix(log, ".head")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text?,
        };
        let invalid = |problem| io::Error::new(io::ErrorKind::InvalidData, format!("the head of the log {problem}"));
        let head: Self = serde_json::from_slice(&text).map_err(|_| invalid("cannot be read"))?;
        if let Some(key) = key
            && head.mac.as_ref() != Some(&head.compute_mac(key))
        {
            return Err(invalid("was changed, or written with another key"));
        }
        Ok(Some(head))
    }

    /// Writes the head beside `log`, atomically.
    pub(crate) fn write(&self, log: &Path) -> io::Result<()> {
        let draft = with_suffix(log, ".head.new");
        let mut file = open_private(OpenOptions::new().write(true).create(true).truncate(true), &draft)?;
        serde_json::to_writer(&mut file, self)?;
        file.write_all(b"\n")?;
        file.sync_data()?;
        fs::rename(draft, with_suffix(log, ".head"))
    }

    fn compute_mac(&self, key: &AuditKey) -> String {
        compute_hash(format!("head {} {} {}", self.first, self.seq, self.hash).as_bytes(), Some(key))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn torn_line_is_truncated_before_the_next_append() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let file = (open_file(&path).unwrap(), 0);
        let lock = open_file(&folder.path().join("lock")).unwrap();
        let mut sink = FileSink::new(path.clone(), 1, None, file, 1, lock);
        sink.append(b"one\n").unwrap();
        open_file(&path).unwrap().write_all(b"tw").unwrap();
        sink.is_torn = true;
        sink.append(b"three\n").unwrap();
        assert_eq!((fs::read(&path).unwrap(), sink.bytes()), (b"one\nthree\n".to_vec(), 10));
    }
}
