//! What bodies reserve while they are decoded.

use std::io::Cursor;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Fields};
use arrow_ipc::CompressionType;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use tidegate_core::{MemoryRefusal, MemoryReservation};
use tidegate_ingest_formats::{BodyDecoder, BodyError, BodyFormat, BodyLimits, BodyOptions, DecodedRows, ParquetBody};

use super::expansion::{compressed, parquet, peak_bytes, repeated, texts};
use super::fixture::{decode_pieces, row_options, schema};

const ROWS: usize = 20_000;
const TEXT_BYTES: usize = 1_000;

/// Memory with a limit, which records what is reserved.
#[derive(Debug, Clone)]
struct RecordedMemory {
    limit_bytes: usize,
    reserved: Arc<AtomicUsize>,
    highest: Arc<AtomicUsize>,
}

impl RecordedMemory {
    fn new(limit_bytes: usize) -> Self {
        Self { limit_bytes, reserved: Arc::default(), highest: Arc::default() }
    }

    fn reserved(&self) -> usize {
        self.reserved.load(Ordering::SeqCst)
    }

    /// The most that was reserved since the last time.
    fn take_highest(&self) -> usize {
        self.highest.swap(0, Ordering::SeqCst)
    }

    fn reservation(&self) -> Box<dyn MemoryReservation> {
        Box::new(RecordedReservation(self.clone()))
    }
}

#[derive(Debug)]
struct RecordedReservation(RecordedMemory);

impl MemoryReservation for RecordedReservation {
    fn resize(&mut self, bytes: usize) -> Result<(), MemoryRefusal> {
        let limit_bytes = self.0.limit_bytes;
        if bytes > limit_bytes {
            return Err(MemoryRefusal { is_of_tenant: false, requested_bytes: bytes, used_bytes: 0, limit_bytes });
        }
        self.0.reserved.store(bytes, Ordering::SeqCst);
        self.0.highest.fetch_max(bytes, Ordering::SeqCst);
        Ok(())
    }
}

impl Drop for RecordedReservation {
    fn drop(&mut self) {
        self.0.reserved.store(0, Ordering::SeqCst);
    }
}

fn without_ratio(format: BodyFormat) -> BodyOptions {
    let limits = BodyLimits { expansion_max: 1_000_000_000, ..BodyLimits::default() };
    BodyOptions { limits, ..BodyOptions::new(format) }
}

/// The body with this many equal texts in each format.
fn bodies() -> Vec<(BodyFormat, Vec<u8>)> {
    let text = "x".repeat(TEXT_BYTES);
    let sent = repeated(ROWS, &text);
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default()));
    let objects = vec![format!("{{\"v\":\"{text}\"}}"); ROWS];
    vec![
        (BodyFormat::Json, format!("[{}]", objects.join(",")).into_bytes()),
        (BodyFormat::Ndjson, (objects.join("\n") + "\n").into_bytes()),
        (BodyFormat::Csv, format!("v\n{}", format!("{text}\n").repeat(ROWS)).into_bytes()),
        (BodyFormat::Arrow, compressed(&sent, CompressionType::ZSTD)),
        (BodyFormat::Parquet, parquet(&sent, properties.build())),
    ]
}

/// Decodes a body within `memory`, and passes each of its batches to `check`.
fn decode_within(
    format: BodyFormat,
    body: &[u8],
    memory: &RecordedMemory,
    mut check: impl FnMut(&DecodedRows),
) -> Result<usize, BodyError> {
    let mut rows = 0;
    let mut count = |decoded: DecodedRows| {
        check(&decoded);
        rows += decoded.batch.num_rows();
    };
    if format == BodyFormat::Parquet {
        let file = Cursor::new(body.to_vec());
        let mut body = ParquetBody::new(file, &texts(), without_ratio(format))?.with_memory(memory.reservation());
        while let Some(decoded) = body.next_rows()? {
            count(decoded);
        }
        assert_eq!(memory.reserved(), 0, "{format:?}");
        return Ok(rows);
    }
    let mut decoder = BodyDecoder::new(&texts(), without_ratio(format))?.with_memory(memory.reservation());
    for piece in body.chunks(1 << 18) {
        decoder.push(piece);
        while let Some(decoded) = decoder.next_rows()? {
            count(decoded);
        }
    }
    decoder.finish();
    while let Some(decoded) = decoder.next_rows()? {
        count(decoded);
    }
    assert_eq!(memory.reserved(), 0, "{format:?}");
    Ok(rows)
}

#[test]
fn rows_are_reserved_before_they_are_returned() {
    for (format, body) in bodies() {
        let memory = RecordedMemory::new(usize::MAX);
        let mut highest = 0;
        let rows = decode_within(format, &body, &memory, |decoded| {
            let bytes = decoded.batch.column(0).as_string::<i32>().value_data().len();
            assert_eq!(bytes, decoded.batch.num_rows() * TEXT_BYTES, "{format:?}");
            let reserved = memory.take_highest();
            assert!(reserved >= bytes, "{format:?}: {reserved} of {bytes}");
            highest = highest.max(reserved);
        });
        assert_eq!(rows, Ok(ROWS), "{format:?}");
        assert!(highest < 64 << 20, "{format:?}: {} MiB", highest >> 20);
    }
}

#[test]
fn a_body_without_memory_is_refused() {
    for (format, body) in bodies() {
        let memory = RecordedMemory::new(2 << 20);
        let error = decode_within(format, &body, &memory, |_| {}).unwrap_err();
        assert!(
            matches!(error, BodyError::Memory(refusal) if refusal.requested_bytes > 2 << 20),
            "{format:?}: {error}"
        );
        assert_eq!(memory.reserved(), 0, "{format:?}");
    }
}

/// Each page has one text, and a batch is a view of all pages that it is in.
#[test]
fn long_texts_of_parquet_are_read_a_few_at_a_time() {
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_dictionary_enabled(false)
        .set_write_batch_size(1)
        .set_data_page_size_limit(1 << 19);
    let mut writer = ArrowWriter::try_new(Vec::new(), Arc::new(texts()), Some(properties.build())).unwrap();
    for row in 0..200 {
        let text: ArrayRef = Arc::new(StringArray::from(vec![format!("{}{row}", "0".repeat(1_000_000))]));
        writer.write(&RecordBatch::try_new(Arc::new(texts()), vec![text]).unwrap()).unwrap();
    }
    let file = writer.into_inner().unwrap();
    let (memory, before) = (RecordedMemory::new(usize::MAX), peak_bytes());
    let mut next = 0_u32;
    let rows = decode_within(BodyFormat::Parquet, &file, &memory, |decoded| {
        for text in decoded.batch.column(0).as_string::<i32>() {
            assert_eq!(text.unwrap().trim_start_matches('0').parse().unwrap_or(0), next);
            next += 1;
        }
    });
    assert_eq!(rows, Ok(200));
    assert!(memory.take_highest() < 64 << 20);
    assert!(peak_bytes() - before < 64 << 20, "{} MiB", (peak_bytes() - before) >> 20);
}

/// Three bytes are an object of a hundred members.
#[test]
fn items_of_lists_count_for_their_row_and_their_batch() {
    let members: Fields = (0..100).map(|member| Field::new(format!("m{member}"), DataType::Int64, true)).collect();
    let table = schema(&[("l", DataType::new_list(DataType::Struct(members), true))]);
    let row = |items: usize| format!("{{\"l\":[{}]}}\n", vec!["{}"; items].join(","));
    let body = row(60_000) + &row(1_000).repeat(200);
    let decoded = decode_pieces(&table, &row_options(BodyFormat::Ndjson), body.as_bytes(), usize::MAX).unwrap();
    let reasons = decoded.reasons();
    let reason = "the lists of the row take more memory than a row may have; split the row";
    assert!(
        matches!(reasons.as_slice(), [first] if first.starts_with("line 1, ") && first.ends_with(reason)),
        "{reasons:?}"
    );
    assert_eq!(decoded.rows(), 200);
    assert!(decoded.batches.iter().all(|batch| batch.num_rows() <= 12), "{}", decoded.batches.len());
}
