//! Whether a file is still the one that was opened.
//!
//! The file is never opened for this: closing any handle of it would drop the locks that SQLite holds in this process.

use std::io;
use std::path::Path;
use std::time::SystemTime;

/// What tells a file from the one that stood in its place before.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct FileStamp {
    identity: Option<(u64, u64)>,
    bytes: u64,
    modified: Option<SystemTime>,
}

impl FileStamp {
    /// The stamp of the file at `path` now; links are followed.
    ///
    /// # Errors
    /// When there is no file or it cannot be seen.
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        let metadata = std::fs::metadata(path)?;
        Ok(Self { identity: identity(&metadata), bytes: metadata.len(), modified: metadata.modified().ok() })
    }
}

/// The stamp of the log that stands beside a file in WAL mode, where what was written lies until it is carried over.
/// None without one, and of an empty one, which comes and goes with those who only read.
pub(crate) fn read_log_stamp(path: &Path) -> Option<FileStamp> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    FileStamp::read(Path::new(&log)).ok().filter(|stamp| stamp.bytes > 0)
}

/// The device and the number of the file on it.
#[cfg(unix)]
fn identity(metadata: &std::fs::Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((metadata.dev(), metadata.ino()))
}

/// Elsewhere the standard library tells no such thing; size and time must do.
#[cfg(not(unix))]
fn identity(_metadata: &std::fs::Metadata) -> Option<(u64, u64)> {
    None
}
