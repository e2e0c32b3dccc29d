//! The destination of lines: a rotated file.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::PathBuf;

use crate::chain::ChainLink;
use crate::files;
use crate::head::LogHead;
use crate::options::AuditKey;

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
        let here = self.path.metadata().and_then(|here| Ok(files::is_same_file(&here, &self.file.metadata()?)));
        here.unwrap_or(false)
    }

    /// The number of the oldest line after a rotation behind the line `last`.
    fn first_after_rotation(&self, last: &ChainLink) -> u64 {
        let files = files::existing_files(&self.path);
        let Some(gone) = files.len().checked_sub(self.kept_files).filter(|gone| *gone > 0) else { return self.first };
        match files.get(gone) {
            Some(oldest) => files::first_seq(oldest, self.key.as_ref()).unwrap_or(self.first),
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
            files::rotate(&self.path, self.kept_files)?;
        }
        self.file = files::open(&self.path)?;
        self.bytes = 0;
        Ok(())
    }

    fn sync(&mut self, last: &ChainLink) -> io::Result<()> {
        self.file.sync_data()?;
        self.write_head(last)?;
        if !self.is_in_place() {
            let file = self.path.display();
            tracing::error!(%file, "the audit log was moved or deleted while in use; writing continues in a new file");
            self.file = files::open(&self.path)?;
            self.bytes = self.file.metadata()?.len();
        }
        Ok(())
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
        let file = (files::open(&path).unwrap(), 0);
        let lock = files::open(&folder.path().join("lock")).unwrap();
        let mut sink = FileSink::new(path.clone(), 1, None, file, 1, lock);
        sink.append(b"one\n").unwrap();
        files::open(&path).unwrap().write_all(b"tw").unwrap();
        sink.is_torn = true;
        sink.append(b"three\n").unwrap();
        assert_eq!((fs::read(&path).unwrap(), sink.bytes()), (b"one\nthree\n".to_vec(), 10));
    }
}
