//! A body as Arrow IPC: a stream whose batches are sent as they are encoded, or a file, which is a stream between a mark
//! and an index of its batches.
//!
//! [Arrow IPC Streaming Format](https://arrow.apache.org/docs/format/Columnar.html#ipc-streaming-format),
//! [Arrow IPC File Format](https://arrow.apache.org/docs/format/Columnar.html#ipc-file-format)

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::writer::{FileWriter, StreamWriter};
use bytes::Bytes;
use tidegate_core::{Error, Format};

use super::BatchBody;
use super::portable::PortableSchema;

pub(super) struct ArrowBody {
    format: Format,
    portable: PortableSchema,
    writer: IpcWriter,
}

enum IpcWriter {
    Stream(StreamWriter<Vec<u8>>),
    File(FileWriter<Vec<u8>>),
}

impl ArrowBody {
    /// A file for [`Format::ArrowFile`], and otherwise a stream.
    pub(super) fn new(schema: &SchemaRef, format: Format) -> Result<Self, Error> {
        let portable = PortableSchema::new(schema, format);
        let writer = IpcWriter::new(portable.schema(), format).map_err(encoding_error)?;
        Ok(Self { format, portable, writer })
    }

    /// Encodes the complete body of one batch, including dictionaries that were sent before.
    fn encode_standalone(&self, batch: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
        let mut writer = IpcWriter::new(self.portable.schema(), self.format)?;
        writer.write(&self.portable.convert(batch)?)?;
        writer.finish()?;
        Ok(writer.take_bytes())
    }
}

impl BatchBody for ArrowBody {
    fn write(&mut self, batch: &RecordBatch) -> Result<Bytes, Error> {
        let batch = self.portable.convert(batch).map_err(encoding_error)?;
        self.writer.write(&batch).map_err(encoding_error)?;
        self.flush()
    }

    fn flush(&mut self) -> Result<Bytes, Error> {
        Ok(self.writer.take_bytes().into())
    }

    fn standalone_bytes(&self, batch: &RecordBatch) -> Result<usize, Error> {
        Ok(self.encode_standalone(batch).map_err(encoding_error)?.len())
    }

    fn finish(&mut self) -> Result<Bytes, Error> {
        self.writer.finish().map_err(encoding_error)?;
        self.flush()
    }
}

impl IpcWriter {
    fn new(schema: &Schema, format: Format) -> Result<Self, ArrowError> {
        Ok(match format {
            Format::ArrowFile => Self::File(FileWriter::try_new(Vec::new(), schema)?),
            _ => Self::Stream(StreamWriter::try_new(Vec::new(), schema)?),
        })
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        match self {
            Self::Stream(writer) => writer.write(batch),
            Self::File(writer) => writer.write(batch),
        }
    }

    fn finish(&mut self) -> Result<(), ArrowError> {
        match self {
            Self::Stream(writer) => writer.finish(),
            Self::File(writer) => writer.finish(),
        }
    }

    fn take_bytes(&mut self) -> Vec<u8> {
        std::mem::take(match self {
            Self::Stream(writer) => writer.get_mut(),
            Self::File(writer) => writer.get_mut(),
        })
    }
}

fn encoding_error(error: ArrowError) -> Error {
    Error::internal(format!("rows cannot be written as Arrow: {error}"))
}
