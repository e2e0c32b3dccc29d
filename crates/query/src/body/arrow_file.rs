//! A body as an Arrow IPC file: a stream between a mark and an index of its batches.
//!
//! [Arrow IPC File Format](https://arrow.apache.org/docs/format/Columnar.html#ipc-file-format)

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ipc::writer::FileWriter;
use bytes::Bytes;
use tidegate_core::Error;

use super::batch_body::BatchBody;
use super::portable::PortableSchema;
use crate::format::BinaryFormat;

pub(super) struct ArrowFileBody {
    portable: PortableSchema,
    writer: FileWriter<Vec<u8>>,
}

impl ArrowFileBody {
    pub(super) fn new(schema: &SchemaRef) -> Result<Self, Error> {
        let portable = PortableSchema::new(schema, BinaryFormat::ArrowFile);
        let writer = FileWriter::try_new(Vec::new(), portable.schema()).map_err(encoding_error)?;
        Ok(Self { portable, writer })
    }

    fn encode_standalone(&self, batch: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
        let mut writer = FileWriter::try_new(Vec::new(), self.portable.schema())?;
        writer.write(&self.portable.convert(batch)?)?;
        writer.into_inner()
    }
}

impl BatchBody for ArrowFileBody {
    fn write(&mut self, batch: &RecordBatch) -> Result<Bytes, Error> {
        let batch = self.portable.convert(batch).map_err(encoding_error)?;
        self.writer.write(&batch).map_err(encoding_error)?;
        self.flush()
    }

    fn flush(&mut self) -> Result<Bytes, Error> {
        Ok(std::mem::take(self.writer.get_mut()).into())
    }

    fn standalone_bytes(&self, batch: &RecordBatch) -> Result<usize, Error> {
        Ok(self.encode_standalone(batch).map_err(encoding_error)?.len())
    }

    fn finish(&mut self) -> Result<Bytes, Error> {
        self.writer.finish().map_err(encoding_error)?;
        self.flush()
    }
}

fn encoding_error(error: ArrowError) -> Error {
    Error::internal(format!("rows cannot be written as an Arrow file: {error}"))
}
