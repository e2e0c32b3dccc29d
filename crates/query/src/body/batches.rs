//! Bodies that are encoded by batches, Arrow IPC and Parquet.
//!
//! Arrow IPC is a stream whose batches are sent as they are encoded, or a file, which is a stream between a mark and an
//! index of its batches. Parquet is written sequentially: a row group is sent as soon as it is closed, and the footer
//! comes last. A truncated file has no footer and is invalid.
//!
//! Columns have the logical type UUID, which the Arrow types alone do not express. JSON text stays text. Readers reject
//! a whole Parquet file for one value that does not match its column type, and SQLite stores any text in a JSON column.
//!
//! [Arrow IPC Streaming Format](https://arrow.apache.org/docs/format/Columnar.html#ipc-streaming-format),
//! [Arrow IPC File Format](https://arrow.apache.org/docs/format/Columnar.html#ipc-file-format),
//! [Parquet](https://parquet.apache.org/docs/file-format/)

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::writer::{FileWriter, StreamWriter};
use bytes::Bytes;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::arrow::{ArrowSchemaConverter, ArrowWriter};
use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};
use tidegate_core::{Error, ErrorKind, Format};

use super::BatchBody;
use super::portable::PortableSchema;
use crate::format::{ExtensionType, MISSING_NODES_KEY, ROWS_ON_ALL_NODES_KEY};

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
        let writer = IpcWriter::new(portable.schema(), format).map_err(arrow_error)?;
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
        let batch = self.portable.convert(batch).map_err(arrow_error)?;
        self.writer.write(&batch).map_err(arrow_error)?;
        self.flush()
    }

    fn flush(&mut self) -> Result<Bytes, Error> {
        Ok(self.writer.take_bytes().into())
    }

    fn standalone_bytes(&self, batch: &RecordBatch) -> Result<usize, Error> {
        Ok(self.encode_standalone(batch).map_err(arrow_error)?.len())
    }

    fn finish(&mut self) -> Result<Bytes, Error> {
        self.writer.finish().map_err(arrow_error)?;
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

fn arrow_error(error: ArrowError) -> Error {
    Error::internal(format!("rows cannot be written as Arrow: {error}"))
}

/// Rows that are written between two checks of the memory use.
const SLICE_ROWS: usize = 8 * 1024;

/// When a row group is closed.
#[derive(Debug, Clone, Copy)]
struct GroupBounds {
    rows_max: usize,
    /// Buffered bytes of a row group. While it is sent, it is in memory twice.
    bytes_max: usize,
}

const GROUP_BOUNDS: GroupBounds = GroupBounds { rows_max: 1024 * 1024, bytes_max: 64 * 1024 * 1024 };

pub(super) struct ParquetBody {
    portable: PortableSchema,
    writer: ArrowWriter<Vec<u8>>,
    bounds: GroupBounds,
}

impl ParquetBody {
    pub(super) fn new(schema: &SchemaRef) -> Result<Self, Error> {
        if schema.fields().is_empty() {
            let message = "the answer has no columns, but a Parquet file needs at least one";
            return Err(Error::new(ErrorKind::InvalidArguments, message));
        }
        Self::with_bounds(schema, GROUP_BOUNDS).map_err(parquet_error)
    }

    fn with_bounds(schema: &SchemaRef, bounds: GroupBounds) -> Result<Self, ParquetError> {
        let portable = PortableSchema::new(schema, Format::Parquet);
        let schema = portable.schema();
        let options = ArrowWriterOptions::new()
            .with_properties(writer_properties(bounds, schema)?)
            .with_parquet_schema(parquet_columns(schema)?);
        let writer = ArrowWriter::try_new_with_options(Vec::new(), schema.clone(), options)?;
        Ok(Self { portable, writer, bounds })
    }

    fn push(&mut self, batch: &RecordBatch) -> Result<(), ParquetError> {
        let rows = batch.num_rows();
        for start in (0..rows).step_by(SLICE_ROWS) {
            let step = batch.slice(start, SLICE_ROWS.min(rows - start));
            self.writer.write(&self.portable.convert(&step)?)?;
            if self.writer.memory_size() >= self.bounds.bytes_max {
                self.writer.flush()?;
            }
        }
        Ok(())
    }

    fn take_closed_groups(&mut self) -> Result<Bytes, ParquetError> {
        // The magic bytes are sent with the first row group, so that nothing is sent before the first rows.
        if self.writer.flushed_row_groups().is_empty() {
            return Ok(Bytes::new());
        }
        self.writer.sync()?;
        Ok(std::mem::take(self.writer.inner_mut()).into())
    }

    fn encode_standalone(&self, batch: &RecordBatch) -> Result<Vec<u8>, ParquetError> {
        let mut body = Self::with_bounds(self.portable.schema(), self.bounds)?;
        body.push(&self.portable.convert(batch)?)?;
        body.writer.into_inner()
    }
}

impl BatchBody for ParquetBody {
    fn write(&mut self, batch: &RecordBatch) -> Result<Bytes, Error> {
        self.push(batch).and_then(|()| self.take_closed_groups()).map_err(parquet_error)
    }

    fn flush(&mut self) -> Result<Bytes, Error> {
        self.writer.flush().and_then(|()| self.take_closed_groups()).map_err(parquet_error)
    }

    fn standalone_bytes(&self, batch: &RecordBatch) -> Result<usize, Error> {
        Ok(self.encode_standalone(batch).map_err(parquet_error)?.len())
    }

    fn finish(&mut self) -> Result<Bytes, Error> {
        self.writer.finish().and_then(|_| Ok(self.writer.sync()?)).map_err(parquet_error)?;
        Ok(std::mem::take(self.writer.inner_mut()).into())
    }
}

/// The properties of the files.
///
/// Zstandard at its lowest level gives smaller files than Snappy at little cost, and current readers support it. Pages
/// have neither an index nor statistics, which would stay in memory until the footer and grow with the answer; row
/// groups have statistics.
fn writer_properties(bounds: GroupBounds, schema: &Schema) -> Result<WriterProperties, ParquetError> {
    let entry = |key: &str| Some(KeyValue::new(key.to_owned(), schema.metadata().get(key)?.clone()));
    // Readers that ignore the Arrow schema in the file know these too.
    let metadata: Vec<KeyValue> = [MISSING_NODES_KEY, ROWS_ON_ALL_NODES_KEY].into_iter().filter_map(entry).collect();
    Ok(WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_max_row_group_row_count(Some(bounds.rows_max))
        .set_max_row_group_bytes(None)
        .set_key_value_metadata((!metadata.is_empty()).then_some(metadata))
        .build())
}

fn parquet_error(error: ParquetError) -> Error {
    Error::internal(format!("an answer cannot be written as Parquet: {error}"))
}

fn parquet_columns(schema: &Schema) -> Result<SchemaDescriptor, ParquetError> {
    let converted = ArrowSchemaConverter::new().convert(schema)?;
    let root = converted.root_schema();
    let columns =
        root.get_fields().iter().zip(schema.fields()).map(|(column, field)| match ExtensionType::from_field(field) {
            Some(ExtensionType::Uuid) => uuid_column(field),
            Some(ExtensionType::Json | ExtensionType::Number) | None => Ok(column.clone()),
        });
    let columns = columns.collect::<Result<Vec<TypePtr>, _>>()?;
    let root = Type::group_type_builder(root.name()).with_fields(columns).build()?;
    Ok(SchemaDescriptor::new(Arc::new(root)))
}

fn uuid_column(field: &Field) -> Result<TypePtr, ParquetError> {
    let repetition = if field.is_nullable() { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    let column = Type::primitive_type_builder(field.name(), PhysicalType::FIXED_LEN_BYTE_ARRAY)
        .with_length(16)
        .with_repetition(repetition)
        .with_logical_type(Some(LogicalType::Uuid));
    Ok(Arc::new(column.build()?))
}

#[cfg(test)]
mod tests {
    use arrow::array::{BinaryArray, Int64Array};
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use parquet::file::metadata::ParquetMetaData;
    use proptest::prelude::*;

    use super::*;

    fn batch(rows: usize, row_bytes: usize) -> RecordBatch {
        let noise = |row: usize| {
            let mut state = row as u64 + 1;
            let mut byte = move |_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 56) as u8
            };
            (0..row_bytes).map(&mut byte).collect::<Vec<u8>>()
        };
        let bytes = BinaryArray::from_iter_values((0..rows).map(noise));
        let numbers = Int64Array::from_iter_values(0..rows as i64);
        RecordBatch::try_from_iter([("n", Arc::new(numbers) as _), ("bytes", Arc::new(bytes) as _)]).unwrap()
    }

    /// Writes `batches` and checks after each that the buffer stays within its bound.
    fn written(batches: &[RecordBatch], bounds: GroupBounds) -> (ParquetMetaData, Vec<usize>) {
        let mut body = ParquetBody::with_bounds(&batches[0].schema(), bounds).unwrap();
        let (mut file, mut pieces) = (Vec::new(), Vec::new());
        for batch in batches {
            let piece = body.write(batch).unwrap();
            assert!(body.writer.memory_size() < bounds.bytes_max && body.writer.inner().is_empty());
            pieces.push(piece.len());
            file.extend_from_slice(&piece);
        }
        file.extend_from_slice(&body.finish().unwrap());
        let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(file)).unwrap();
        (reader.metadata().as_ref().clone(), pieces)
    }

    #[test]
    fn flushes_row_groups_at_their_bounds() {
        let bounds = GroupBounds { rows_max: 1_000_000, bytes_max: 256 * 1024 };
        let batches = vec![batch(1_000, 100); 20];
        let (metadata, pieces) = written(&batches, bounds);
        assert!(metadata.num_row_groups() >= 6, "{}", metadata.num_row_groups());
        for group in metadata.row_groups() {
            assert!(group.compressed_size() < 400 * 1024, "{}", group.compressed_size());
        }
        assert!(pieces.iter().filter(|bytes| **bytes > 0).count() >= 6, "{pieces:?}");
        assert_eq!(pieces[0], 0);

        let bounds = GroupBounds { rows_max: 1_500, bytes_max: 1024 * 1024 };
        let (metadata, _) = written(&batches, bounds);
        let rows: Vec<i64> = metadata.row_groups().iter().map(|group| group.num_rows()).collect();
        assert_eq!((rows.iter().sum::<i64>(), rows.iter().max()), (20_000, Some(&1_500)));
    }

    #[test]
    fn splits_batch_larger_than_row_group() {
        let bounds = GroupBounds { rows_max: 1_000_000, bytes_max: 1024 * 1024 };
        let (metadata, _) = written(&[batch(5 * SLICE_ROWS, 200)], bounds);
        let rows: Vec<i64> = metadata.row_groups().iter().map(|group| group.num_rows()).collect();
        assert_eq!(rows, [SLICE_ROWS as i64; 5]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn a_file_flushed_after_each_batch_is_no_longer_than_those_of_each(
            batches in prop::collection::vec((1_usize..200, 0_usize..50), 1..12),
        ) {
            let batches: Vec<RecordBatch> = batches.into_iter().map(|(rows, bytes)| batch(rows, bytes)).collect();
            let mut body = ParquetBody::with_bounds(&batches[0].schema(), GROUP_BOUNDS).unwrap();
            let (mut bytes, mut bytes_max) = (0, 0);
            for batch in &batches {
                bytes_max += body.standalone_bytes(batch).unwrap();
                bytes += body.write(batch).unwrap().len() + body.flush().unwrap().len();
            }
            bytes += body.finish().unwrap().len();
            prop_assert!(bytes <= bytes_max, "{bytes} of {bytes_max}");
        }
    }
}
