//! The interface of a binary format.

use arrow::array::RecordBatch;
use bytes::Bytes;
use tidegate_core::Error;

/// Encodes batches into a binary body.
pub(crate) trait BatchBody: Send {
    /// Writes the rows of `batch`, which has at least one, and returns the bytes that can be sent.
    fn write(&mut self, batch: &RecordBatch) -> Result<Bytes, Error>;

    /// Returns the bytes of all rows so far, even if the format would buffer more.
    fn flush(&mut self) -> Result<Bytes, Error>;

    /// The size in bytes of a body of `batch` alone. A body of several batches, flushed after each, is never longer
    /// than the sum of these sizes.
    fn standalone_bytes(&self, batch: &RecordBatch) -> Result<usize, Error>;

    fn finish(&mut self) -> Result<Bytes, Error>;
}
