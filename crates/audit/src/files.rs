//! The files of a log: the one that is written, the older ones beside it, and how each ends.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use crate::chain::{self, ChainLink};
use crate::key::AuditKey;

/// No line is longer, in bytes.
pub(crate) const LINE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The file beside `log` with that ending.
pub(crate) fn with_suffix(log: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(log.as_os_str());
    name.push(ending);
    name.into()
}

/// The file that was `log` so many rotations ago.
pub(crate) fn rotated_path(log: &Path, rotations: usize) -> PathBuf {
    with_suffix(log, &format!(".{rotations}"))
}

/// The files of `log` that are there, oldest first.
pub(crate) fn existing_files(log: &Path) -> Vec<PathBuf> {
    let older = (1..).map(|rotations| rotated_path(log, rotations)).take_while(|path| path.exists());
    let mut files: Vec<PathBuf> = older.collect();
    files.reverse();
    files.extend(log.exists().then(|| log.to_owned()));
    files
}

/// Opens the file to add to its end; only its owner may read it.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    open_private(OpenOptions::new().read(true).append(true).create(true), path)
}

/// Opens `path` by `options`; a new file is its owner's alone, who else could lock it against a start.
pub(crate) fn open_private(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options.open(path)
}

/// How a file ends.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FileTail {
    /// The last whole line; none where there is none.
    pub(crate) last: Option<ChainLink>,
    /// Bytes up to the end of that line.
    pub(crate) whole_bytes: u64,
    /// Bytes behind it.
    pub(crate) torn_bytes: u64,
}

/// How `file` ends.
///
/// # Errors
/// Of reading; `InvalidData` when the last whole line is none of this chain.
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
    let wrong = |why| io::Error::new(io::ErrorKind::InvalidData, format!("its last line {why}"));
    let read = chain::parse_line(&tail[start..end], key).map_err(wrong)?;
    let torn_bytes = (tail.len() - end - 1) as u64;
    Ok(FileTail { last: Some(read.link), whole_bytes: bytes - torn_bytes, torn_bytes })
}

/// The number of the first line of `path`, as far as it can be told.
pub(crate) fn first_seq(path: &Path, key: Option<&AuditKey>) -> Option<u64> {
    let mut line = Vec::new();
    let file = File::open(path).ok()?;
    BufReader::new(file).take(LINE_BYTES_MAX as u64).read_until(b'\n', &mut line).ok()?;
    chain::parse_line(line.strip_suffix(b"\n")?, key).ok().map(|read| read.link.seq)
}

/// Whether some process writes the log whose newest file this is.
pub(crate) fn has_writer(log: &Path) -> bool {
    File::open(with_suffix(log, ".lock"))
        .is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Whether both are of the same file; where that cannot be told, it is taken for granted.
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

/// Makes room for a new `log`: what it was is the first of the older ones, of which `kept_files` stay.
pub(crate) fn rotate(log: &Path, kept: usize) -> io::Result<()> {
    // Of a time when more were kept. The oldest goes first, so that the chain has no hole whatever ends us.
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
