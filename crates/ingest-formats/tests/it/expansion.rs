//! Small bodies with large values, and bodies that claim to have more or fewer bytes than they have.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, DictionaryArray, Int8Array, Int32Array, Int64Array, ListArray, RecordBatch, StringArray,
    StringViewArray,
};
use arrow::datatypes::{DataType, Int32Type, Schema};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use parquet::arrow::ArrowWriter;
use parquet::basic::{BrotliLevel, Compression, Encoding, GzipLevel, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterVersion};
use tidegate_ingest_formats::{BodyDecoder, BodyError, BodyFormat, BodyLimits, BodyOptions};

use super::fixture::{decode_parquet, decode_pieces, row_options, schema};

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
}

/// Rows that all have this text.
pub(super) fn repeated(rows: usize, text: &str) -> RecordBatch {
    let keys = Int8Array::from(vec![0; rows]);
    let values = Arc::new(StringArray::from(vec![text]));
    batch(vec![("v", Arc::new(DictionaryArray::new(keys, values)))])
}

pub(super) fn compressed(sent: &RecordBatch, codec: CompressionType) -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(Some(codec)).unwrap();
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), &sent.schema(), options).unwrap();
    writer.write(sent).unwrap();
    writer.into_inner().unwrap()
}

pub(super) fn parquet(sent: &RecordBatch, properties: WriterProperties) -> Vec<u8> {
    let mut writer = ArrowWriter::try_new(Vec::new(), sent.schema(), Some(properties)).unwrap();
    writer.write(sent).unwrap();
    writer.into_inner().unwrap()
}

pub(super) fn texts() -> Schema {
    schema(&[("v", DataType::Utf8)])
}

/// The largest memory of this process so far.
pub(super) fn peak_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<usize>().unwrap() * 1_024
}

#[test]
fn values_of_dictionaries_count_for_each_row() {
    for (rows, bytes) in [(10_000_000, 1_000), (3_000_000, 1_500)] {
        let body = compressed(&repeated(rows, &"x".repeat(bytes)), CompressionType::ZSTD);
        assert!(body.len() < 4_000, "{}", body.len());
        let before = peak_bytes();
        let error = decode_pieces(&texts(), &BodyOptions::new(BodyFormat::Arrow), &body, usize::MAX).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the values of the body have more than 500 times as many bytes as the body; send them with less compression"
        );
        let grown = peak_bytes() - before;
        assert!(grown < 128 << 20, "{} MiB", grown >> 20);
    }
}

#[test]
fn batches_of_the_table_have_bounded_bytes() {
    // The body is as long as a body of its values would be, so that only its batches are large.
    let filling: Vec<String> = (0..20_000).map(|row| format!("{row:0>2000}")).collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("v", repeated(20_000, &"y".repeat(5_000)).column(0).clone()),
        ("w", Arc::new(StringViewArray::from_iter_values(&filling))),
    ];
    let body = compressed(&batch(columns), CompressionType::LZ4_FRAME);
    let table = schema(&[("v", DataType::Utf8), ("w", DataType::Utf8)]);
    let limits = BodyLimits { expansion_max: 1_000_000, ..BodyLimits::default() };
    let mut decoder = BodyDecoder::new(&table, BodyOptions { limits, ..BodyOptions::new(BodyFormat::Arrow) }).unwrap();
    decoder.push(&body);
    decoder.finish();
    let mut rows = 0;
    while let Some(decoded) = decoder.next_rows().unwrap() {
        rows += decoded.batch.num_rows();
        let bytes: usize = decoded.batch.columns().iter().map(Array::get_array_memory_size).sum();
        assert!(bytes < 24 << 20, "{bytes}");
    }
    assert_eq!(rows, 20_000);
}

#[test]
fn rows_that_are_too_large_are_rejected_before_they_are_made() {
    let large = repeated(3, &"x".repeat(20 << 20));
    let reason = "bytes; at most 16777216 are allowed";
    let expected =
        |bytes: usize| (0..3).map(|row| format!("row {row}: the row has {bytes} {reason}")).collect::<Vec<_>>();
    let mut options = row_options(BodyFormat::Arrow);
    options.limits.expansion_max = 1_000_000;
    let arrow = compressed(&large, CompressionType::ZSTD);
    assert_eq!(decode_pieces(&texts(), &options, &arrow, 1 << 16).unwrap().reasons(), expected(20 << 20));
    let file = parquet(&large, WriterProperties::builder().set_compression(Compression::SNAPPY).build());
    assert_eq!(decode_parquet(&texts(), &options, file).unwrap().reasons(), expected((20 << 20) + 4));
}

#[test]
fn lengths_of_compressed_buffers_are_counted() {
    let zeros = 40_000_000_usize;
    let sent = batch(vec![("v", Arc::new(Int64Array::from(vec![0; zeros / 8])))]);
    let mut body = compressed(&sent, CompressionType::LZ4_FRAME);
    let declared = (zeros as u64).to_le_bytes();
    let position = body.windows(8).position(|bytes| bytes == declared).unwrap();
    body[position..position + 8].copy_from_slice(&1_000_u64.to_le_bytes());
    let table = schema(&[("v", DataType::Int64)]);
    let error = decode_pieces(&table, &BodyOptions::new(BodyFormat::Arrow), &body, usize::MAX).unwrap_err();
    let reason = "a buffer has not as many bytes as it declares";
    assert_eq!(error, BodyError::Malformed(format!("the body is no valid Arrow stream: {reason}")));
}

#[test]
fn large_pages_of_parquet_are_refused() {
    let sent = batch(vec![("v", Arc::new(StringArray::from(vec!["x".repeat(200_000), "y".repeat(200_000)])))]);
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default()));
    let file = parquet(&sent, properties.set_dictionary_enabled(false).build());
    let limits = BodyLimits { message_bytes_max: 100_000, ..BodyLimits::default() };
    let options = BodyOptions { limits, ..BodyOptions::new(BodyFormat::Parquet) };
    let error = decode_parquet(&texts(), &options, file).unwrap_err().to_string();
    assert!(error.starts_with("column \"v\": a page has ") && error.ends_with("write smaller pages"), "{error}");
}

/// A row may have all values of a page, whose equal values take no bytes there.
#[test]
fn values_of_lists_in_one_page_of_parquet_are_bounded() {
    for (values, problem) in [
        (100_000, None),
        (5_000_000, Some("a page has 5000000 values; at most 4194304 are allowed; write smaller pages")),
    ] {
        let items = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(0); values])]);
        let sent = batch(vec![("l", Arc::new(items))]);
        let file = parquet(&sent, WriterProperties::builder().build());
        assert!(file.len() < 100_000, "{}", file.len());
        let decoded = decode_parquet(&sent.schema(), &BodyOptions::new(BodyFormat::Parquet), file);
        match (decoded, problem) {
            (Ok(decoded), None) => assert_eq!((decoded.rows(), decoded.rejected.len()), (1, 0)),
            (Err(error), Some(problem)) => assert!(error.to_string().contains(problem), "{error}"),
            (decoded, _) => panic!("{values}: {:?}", decoded.map(|decoded| decoded.reasons())),
        }
    }
}

#[test]
fn counts_within_pages_of_parquet_are_checked() {
    let sent = batch(vec![("v", Arc::new(Int32Array::from_iter_values(0..200)))]);
    let properties = WriterProperties::builder().set_dictionary_enabled(false);
    let mut file = parquet(&sent, properties.set_encoding(Encoding::DELTA_BINARY_PACKED).build());
    // Blocks of 128 values in 4 parts, and 200 values.
    let counts = [0x80, 0x01, 0x04, 0xC8, 0x01];
    let position = file.windows(5).position(|bytes| bytes == counts).unwrap();
    file[position + 3..position + 5].copy_from_slice(&[0xFF, 0x7F]);
    let table = schema(&[("v", DataType::Int32)]);
    let error = decode_parquet(&table, &BodyOptions::new(BodyFormat::Parquet), file).unwrap_err().to_string();
    assert!(error.contains("a page has other values than its header says"), "{error}");
}

/// Values of all kinds, long enough for several pages.
fn mixed() -> RecordBatch {
    let rows = 3_000;
    let text =
        |row: usize| (!row.is_multiple_of(7)).then(|| format!("{}{}", "same beginning ".repeat(row % 5), row % 900));
    let items = (0..rows as i32).map(|row| (row % 5 > 0).then(|| (0..row % 4).map(move |item| Some(row * item))));
    batch(vec![
        ("n", Arc::new(Int32Array::from_iter((0..rows as i32).map(|row| (row % 3 > 0).then_some(row * row))))),
        ("t", Arc::new(StringArray::from_iter((0..rows).map(text)))),
        ("l", Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(items))),
    ])
}

#[test]
fn each_codec_and_encoding_of_parquet_is_read() {
    let sent = mixed();
    let expected = super::fixture::decode_pieces(
        &sent.schema(),
        &BodyOptions::new(BodyFormat::Arrow),
        &super::fixture::write_arrow(std::slice::from_ref(&sent)),
        usize::MAX,
    );
    let expected = expected.unwrap().text();
    let codecs = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::BROTLI(BrotliLevel::default()),
        Compression::LZ4_RAW,
        Compression::ZSTD(ZstdLevel::default()),
    ];
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        for codec in codecs {
            for (text, number) in [
                (None, None),
                (Some(Encoding::PLAIN), Some(Encoding::PLAIN)),
                (Some(Encoding::DELTA_BYTE_ARRAY), Some(Encoding::DELTA_BINARY_PACKED)),
                (Some(Encoding::DELTA_LENGTH_BYTE_ARRAY), Some(Encoding::BYTE_STREAM_SPLIT)),
            ] {
                let mut properties = WriterProperties::builder()
                    .set_writer_version(version)
                    .set_compression(codec)
                    .set_dictionary_enabled(text.is_none())
                    .set_data_page_size_limit(4_000)
                    .set_write_batch_size(256);
                if let (Some(text), Some(number)) = (text, number) {
                    properties = properties
                        .set_column_encoding("t".into(), text)
                        .set_column_encoding("n".into(), number)
                        .set_column_encoding("l.list.element".into(), number);
                }
                let decoded = decode_parquet(
                    &sent.schema(),
                    &BodyOptions::new(BodyFormat::Parquet),
                    parquet(&sent, properties.build()),
                );
                let decoded = decoded.unwrap_or_else(|error| panic!("{version:?} {codec} {text:?}: {error}"));
                assert!(decoded.text() == expected, "{version:?} {codec} {text:?}");
            }
        }
    }
}
