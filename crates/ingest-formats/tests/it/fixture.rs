//! Schemas, bodies in pieces, and rows as text.

use std::io::{Cursor, Write};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use arrow_ipc::convert::IpcSchemaEncoder;
use arrow_ipc::writer::StreamWriter;
use arrow_ipc::{
    Endianness, FieldBuilder, IntBuilder, MessageBuilder, MessageHeader, MetadataVersion, SchemaBuilder, Type,
};
use flate2::Compression;
use flate2::write::GzEncoder;
use parquet::arrow::ArrowWriter;
use tidegate_ingest_formats::{
    BodyDecoder, BodyError, BodyFormat, BodyOptions, ParquetBody, RejectMode, RejectedRow, RowPosition,
};

/// All that a body gave.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub(crate) batches: Vec<RecordBatch>,
    pub(crate) positions: Vec<RowPosition>,
    pub(crate) rejected: Vec<RejectedRow>,
    pub(crate) schema: SchemaRef,
}

impl Decoded {
    pub(crate) fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    pub(crate) fn batch(&self) -> RecordBatch {
        let schema = self.batches.last().map_or_else(|| self.schema.clone(), RecordBatch::schema);
        concat_batches(&schema, &self.batches).expect("batches have one schema")
    }

    /// The rows, with `·` for null.
    pub(crate) fn text(&self) -> Vec<String> {
        self.batches.iter().flat_map(rows_of).collect()
    }

    pub(crate) fn reasons(&self) -> Vec<String> {
        self.rejected.iter().map(ToString::to_string).collect()
    }
}

pub(crate) fn rows_of(batch: &RecordBatch) -> Vec<String> {
    let options = FormatOptions::default().with_null("·");
    let columns: Vec<_> =
        batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options).unwrap()).collect();
    let row = |index: usize| columns.iter().map(|column| column.value(index).to_string()).collect::<Vec<_>>().join("|");
    (0..batch.num_rows()).map(row).collect()
}

/// The message at the beginning of an Arrow stream of a big-endian machine, whose only column `name` has integers of 64 bits.
pub(crate) fn big_endian_schema(name: &str) -> Vec<u8> {
    // A builder without contents; the library writes the byte order of this machine.
    let mut builder = IpcSchemaEncoder::new().schema_to_fb(&Schema::empty());
    builder.reset();
    let name = builder.create_string(name);
    let mut integer = IntBuilder::new(&mut builder);
    integer.add_bitWidth(64);
    integer.add_is_signed(true);
    let integer = integer.finish();
    let mut field = FieldBuilder::new(&mut builder);
    field.add_name(name);
    field.add_nullable(true);
    field.add_type_type(Type::Int);
    field.add_type_(integer.as_union_value());
    let field = field.finish();
    let fields = builder.create_vector(&[field]);
    let mut schema = SchemaBuilder::new(&mut builder);
    schema.add_endianness(Endianness::Big);
    schema.add_fields(fields);
    let schema = schema.finish();
    let mut message = MessageBuilder::new(&mut builder);
    message.add_version(MetadataVersion::V5);
    message.add_header_type(MessageHeader::Schema);
    message.add_header(schema.as_union_value());
    let message = message.finish();
    builder.finish(message, None);
    let description = builder.finished_data();
    let length = description.len().next_multiple_of(8);
    let mut bytes = [[0xFF; 4], (length as u32).to_le_bytes()].concat();
    bytes.extend_from_slice(description);
    bytes.resize(8 + length, 0);
    bytes
}

/// Decodes a body that arrives in pieces of this size.
pub(crate) fn decode_pieces(
    schema: &Schema,
    options: &BodyOptions,
    body: &[u8],
    piece_bytes: usize,
) -> Result<Decoded, BodyError> {
    let mut decoder = BodyDecoder::new(schema, options.clone())?;
    let mut decoded =
        Decoded { batches: Vec::new(), positions: Vec::new(), rejected: Vec::new(), schema: decoder.schema() };
    let mut take = |decoder: &mut BodyDecoder| {
        while let Some(rows) = decoder.next_rows()? {
            assert_eq!(rows.batch.num_rows(), rows.positions.len());
            if rows.batch.num_rows() > 0 {
                decoded.batches.push(rows.batch);
            }
            decoded.positions.extend(rows.positions);
            decoded.rejected.extend(rows.rejected);
        }
        Ok(())
    };
    for piece in body.chunks(piece_bytes.max(1)) {
        decoder.push(piece);
        take(&mut decoder)?;
    }
    decoder.finish();
    take(&mut decoder)?;
    decoded.schema = decoder.schema();
    let counts = decoder.counts();
    assert_eq!(counts.accepted, decoded.rows() as u64);
    assert_eq!(counts.rejected, decoded.rejected.len() as u64);
    Ok(decoded)
}

pub(crate) fn decode(schema: &Schema, options: &BodyOptions, body: &str) -> Result<Decoded, BodyError> {
    let whole = decode_pieces(schema, options, body.as_bytes(), usize::MAX);
    for piece_bytes in [1, 3] {
        let pieces = decode_pieces(schema, options, body.as_bytes(), piece_bytes);
        match (&whole, pieces) {
            (Ok(whole), Ok(pieces)) => {
                assert_eq!(whole.text(), pieces.text());
                assert_eq!(whole.reasons(), pieces.reasons());
                assert_eq!(whole.positions, pieces.positions);
            }
            (Err(whole), Err(pieces)) => assert_eq!(whole, &pieces),
            (whole, pieces) => panic!("{whole:?} is not {pieces:?} in pieces of {piece_bytes}"),
        }
    }
    whole
}

/// Options that reject single rows.
pub(crate) fn row_options(format: BodyFormat) -> BodyOptions {
    BodyOptions { reject_mode: RejectMode::Row, ..BodyOptions::new(format) }
}

pub(crate) fn schema(fields: &[(&str, DataType)]) -> Schema {
    Schema::new(fields.iter().map(|(name, data_type)| Field::new(*name, data_type.clone(), true)).collect::<Vec<_>>())
}

/// `time`, `device` (which takes no nulls) and `value`.
pub(crate) fn sensors() -> Schema {
    Schema::new(vec![
        Field::new("time", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), true),
        Field::new("device", DataType::Utf8, false),
        Field::new("value", DataType::Float64, true),
    ])
}

pub(crate) fn list_of(data_type: DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(data_type, true)))
}

pub(crate) fn map_of(key: DataType, value: DataType) -> DataType {
    let entries = vec![Field::new("key", key, false), Field::new("value", value, true)];
    DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entries.into()), false)), false)
}

/// Decodes a Parquet file.
pub(crate) fn decode_parquet(schema: &Schema, options: &BodyOptions, file: Vec<u8>) -> Result<Decoded, BodyError> {
    let mut body = ParquetBody::new(Cursor::new(file), schema, options.clone())?;
    let mut decoded =
        Decoded { batches: Vec::new(), positions: Vec::new(), rejected: Vec::new(), schema: body.schema() };
    while let Some(rows) = body.next_rows()? {
        assert_eq!(rows.batch.num_rows(), rows.positions.len());
        if rows.batch.num_rows() > 0 {
            decoded.batches.push(rows.batch);
        }
        decoded.positions.extend(rows.positions);
        decoded.rejected.extend(rows.rejected);
    }
    assert_eq!(body.counts().accepted, decoded.rows() as u64);
    Ok(decoded)
}

pub(crate) fn write_arrow(batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

pub(crate) fn write_parquet(batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = ArrowWriter::try_new(Vec::new(), batches[0].schema(), None).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}
