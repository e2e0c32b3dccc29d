//! An answer that is kept until it is complete: in memory while it is small, in a file without a name beyond that.
//!
//! On a connection that all calls share, a message cannot be interrupted: an answer that is
//! written while it is produced would hold every other answer back for as long as its query runs.

use bytes::Bytes;
use thiserror::Error;
use tokio::fs::File;
use tokio::io::{AsyncSeekExt, AsyncWrite, AsyncWriteExt, BufReader};

/// Larger answers go to a file.
const MEMORY_BYTES_MAX: usize = 256 * 1024;

/// Why an answer could not be kept.
#[derive(Debug, Error)]
pub(crate) enum SpoolError {
    /// Beyond the bound.
    #[error("the answer is larger than {0} bytes")]
    TooLarge(u64),
    /// The disk.
    #[error("cannot keep the answer: {0}")]
    Io(#[from] std::io::Error),
}

/// A growing answer.
#[derive(Debug)]
pub(crate) struct Spool {
    bytes_max: u64,
    written_bytes: u64,
    memory: Vec<u8>,
    file: Option<File>,
}

impl Spool {
    /// An empty one that may grow to `bytes_max`.
    pub(crate) fn new(bytes_max: u64) -> Self {
        Self { bytes_max, written_bytes: 0, memory: Vec::new(), file: None }
    }

    /// Adds `piece`.
    pub(crate) async fn push(&mut self, piece: Bytes) -> Result<(), SpoolError> {
        self.written_bytes += piece.len() as u64;
        if self.written_bytes > self.bytes_max {
            return Err(SpoolError::TooLarge(self.bytes_max));
        }
        self.memory.extend_from_slice(&piece);
        if self.memory.len() > MEMORY_BYTES_MAX {
            self.flush_to_file().await?;
        }
        Ok(())
    }

    /// Writes everything to `writer`.
    pub(crate) async fn write_to(mut self, writer: &mut (impl AsyncWrite + Unpin)) -> std::io::Result<()> {
        if let Some(file) = &mut self.file {
            file.flush().await?;
            file.rewind().await?;
            let mut reader = BufReader::with_capacity(MEMORY_BYTES_MAX, file);
            tokio::io::copy_buf(&mut reader, writer).await?;
        }
        writer.write_all(&self.memory).await
    }

    async fn flush_to_file(&mut self) -> Result<(), SpoolError> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(File::from_std(tempfile::tempfile()?)),
        };
        file.write_all(&self.memory).await?;
        self.memory.clear();
        Ok(())
    }
}
