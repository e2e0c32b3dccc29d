//! A body as a stream of Arrow's IPC format: batches leave as they come.
//!
//! [Arrow IPC Streaming Format](https://arrow.apache.org/docs/format/Columnar.html#ipc-streaming-format)

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ipc::writer::StreamWriter;
use bytes::Bytes;
use tidegate_core::Error;

use super::BatchBody;
use super::portable::Portable;
use crate::format::BatchFormat;

/// Batches on their way into a stream.
pub(super) struct ArrowBody {
    portable: Portable,
    /// Holds what has not left.
    writer: StreamWriter<Vec<u8>>,
}

impl ArrowBody {
    pub(super) fn new(schema: &SchemaRef) -> Result<Self, Error> {
        let portable = Portable::new(schema, BatchFormat::Arrow);
        let writer = StreamWriter::try_new(Vec::new(), portable.schema()).map_err(fault)?;
        Ok(Self { portable, writer })
    }

    /// The whole stream of one batch. Dictionaries that were sent before are in it again.
    fn alone(&self, batch: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
        let mut writer = StreamWriter::try_new(Vec::new(), self.portable.schema())?;
        writer.write(&self.portable.batch(batch)?)?;
        writer.into_inner()
    }
}

impl BatchBody for ArrowBody {
    fn write(&mut self, batch: &RecordBatch) -> Result<Bytes, Error> {
        let batch = self.portable.batch(batch).map_err(fault)?;
        self.writer.write(&batch).map_err(fault)?;
        self.flush()
    }

    fn flush(&mut self) -> Result<Bytes, Error> {
        Ok(std::mem::take(self.writer.get_mut()).into())
    }

    fn alone_bytes(&self, batch: &RecordBatch) -> Result<usize, Error> {
        Ok(self.alone(batch).map_err(fault)?.len())
    }

    fn finish(mut self: Box<Self>) -> Result<Bytes, Error> {
        self.writer.finish().map_err(fault)?;
        self.flush()
    }
}

fn fault(error: ArrowError) -> Error {
    Error::internal(format!("an answer cannot be written as Arrow: {error}"))
}
