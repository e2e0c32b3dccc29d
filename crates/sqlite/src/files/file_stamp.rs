//! Detects whether a file was replaced after it was opened.
//!
//! The check never opens the file: closing any handle of it would drop the locks that SQLite holds in this process.

use std::io;
use std::path::Path;
use std::time::SystemTime;

/// Distinguishes a file from an earlier file at the same path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct FileStamp {
    identity: Option<(u64, u64)>,
    bytes: u64,
    modified: Option<SystemTime>,
}

impl FileStamp {
    /// The current stamp of the file at `path`; follows links.
    ///
    /// # Errors
    /// Fails if the file does not exist or cannot be accessed.
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        let metadata = std::fs::metadata(path)?;
        Ok(Self { identity: identity(&metadata), bytes: metadata.len(), modified: metadata.modified().ok() })
    }
}

/// The stamp of the write-ahead log beside the file. `None` if there is no log or if it is empty: readers create and
/// remove empty logs.
pub(crate) fn read_log_stamp(path: &Path) -> Option<FileStamp> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    FileStamp::read(Path::new(&log)).ok().filter(|stamp| stamp.bytes > 0)
}

/// The device and the inode number.
#[cfg(unix)]
fn identity(metadata: &std::fs::Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((metadata.dev(), metadata.ino()))
}

/// On other systems the standard library has no such identity; size and time have to be enough.
#[cfg(not(unix))]
fn identity(_metadata: &std::fs::Metadata) -> Option<(u64, u64)> {
    None
}
