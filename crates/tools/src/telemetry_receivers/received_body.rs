//! The body of a request as a whole, within limits and the memory of the node: read, decompressed and decoded. Its rows
//! for several tables are one write.

use std::io::Read;
use std::sync::Arc;

use arrow::array::{Array, RecordBatch, RecordBatchOptions, new_null_array};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use sha2::{Digest, Sha256};
use tidegate_core::{Error, ErrorKind, MemoryReservation};
use tidegate_ingest_formats::BodyFormat;
use tidegate_query::{IngestTable, NodeReservation, TableWrite, WriteMode, WriteReceipt, WriteRequest, WriteStart};
use tidegate_runtime::{Job, RequestBodyReader};
use tidegate_telemetry::formats::{FormatError, TableBatch, TelemetryLimits};

use super::{RETRY_AFTER, ReceiverContext, format_error};
use crate::ingest_tools::{Stamps, commit, record_write};

/// The codings of bodies that are decompressed here.
pub(super) const CODINGS: &[&str] = &["identity", "gzip"];
/// So many bytes are decompressed at once.
const DECOMPRESSED_BYTES: usize = 64 << 10;
/// What the messages of a body may take at first: so many bytes for each of its bytes, and so many at least.
const DECODED_EXPANSION: usize = 4;
const DECODED_BYTES_MIN: usize = 128 << 10;
/// What the messages, and the rows, of a body may take at most: so many bytes for each byte as it was sent, and so many
/// in any case. An attribute of a resource is written once in a body, and is in each of its rows.
const SENT_EXPANSION_MAX: usize = 500;
const UNCHECKED_BYTES: usize = 64 << 20;
/// A body is in memory as its bytes without their coding, as messages, and as rows.
const DECODED_FORMS: usize = 3;

/// The body of the request that made the call.
///
/// # Errors
/// `InvalidArguments` if it has none.
pub(super) fn take_body(job: &Arc<Job>) -> Result<RequestBodyReader, Error> {
    let absent = || Error::new(ErrorKind::InvalidArguments, "the request has no body");
    job.take_request_body().ok_or_else(absent)
}

/// Reads a body of at most `bytes_max` bytes as it was sent. It draws on `memory`.
///
/// # Errors
/// Those of the body, `TooLarge`, and `Unavailable` if there is no memory.
pub(super) async fn read_body(
    reader: &mut RequestBodyReader,
    bytes_max: usize,
    memory: &mut NodeReservation,
) -> Result<Bytes, Error> {
    let mut only = Bytes::new();
    let mut joined: Vec<u8> = Vec::new();
    while let Some(piece) = reader.next().await? {
        let bytes = if joined.is_empty() { only.len() } else { joined.len() };
        if bytes + piece.len() > bytes_max {
            return Err(too_large(bytes_max));
        }
        memory.resize(bytes + piece.len())?;
        if bytes == 0 {
            only = piece;
            continue;
        }
        if joined.is_empty() {
            joined.extend_from_slice(&std::mem::take(&mut only));
        }
        joined.extend_from_slice(&piece);
    }
    Ok(if joined.is_empty() { only } else { joined.into() })
}

/// Decompresses a body. The result has at most `bytes_max` bytes. It draws on `memory`, with the body as it was sent.
///
/// # Errors
/// `InvalidArguments` if the body is not in its coding; `TooLarge`; `Unavailable` if there is no memory.
pub(super) fn decompress(
    body: Bytes,
    coding: Option<&str>,
    bytes_max: usize,
    memory: &mut NodeReservation,
) -> Result<Bytes, Error> {
    if !coding.is_some_and(|coding| coding.trim().eq_ignore_ascii_case("gzip")) {
        return Ok(body);
    }
    let not_gzip = |error: std::io::Error| {
        Error::new(ErrorKind::InvalidArguments, format!("the body is not gzip: {error}; nothing was stored"))
    };
    let mut decoder = MultiGzDecoder::new(&*body);
    let mut decompressed = Vec::new();
    loop {
        // Twice, as the bytes move when they need more room.
        memory.resize(body.len() + 2 * (decompressed.len() + DECOMPRESSED_BYTES))?;
        let mut step = decoder.by_ref().take(DECOMPRESSED_BYTES as u64);
        if step.read_to_end(&mut decompressed).map_err(not_gzip)? == 0 {
            return Ok(decompressed.into());
        }
        if decompressed.len() > bytes_max {
            return Err(too_large(bytes_max));
        }
    }
}

/// Decodes a body of `body_bytes`, which had `sent_bytes` in its coding, within the memory that is reserved for it. If that
/// is not enough, more is reserved, and `decode` is called again, so that a body holds no more than about twice what it
/// needs.
///
/// # Errors
/// Those of the format; `TooLarge` if the body needs much more than was sent; `Unavailable` if there is no memory.
pub(super) fn decode_reserved<T>(
    sent_bytes: usize,
    body_bytes: usize,
    limits: &TelemetryLimits,
    memory: &mut NodeReservation,
    decode: impl Fn(&TelemetryLimits) -> Result<T, FormatError>,
) -> Result<T, Error> {
    let most = sent_bytes.saturating_mul(SENT_EXPANSION_MAX).max(UNCHECKED_BYTES).min(limits.decoded_bytes_max);
    let mut decoded_bytes_max = body_bytes.saturating_mul(DECODED_EXPANSION).max(DECODED_BYTES_MIN).min(most);
    loop {
        memory.resize(body_bytes.saturating_add(decoded_bytes_max.saturating_mul(DECODED_FORMS)))?;
        match decode(&TelemetryLimits { decoded_bytes_max, ..limits.clone() }) {
            Err(FormatError::OutOfMemory(_)) if decoded_bytes_max < most => {
                decoded_bytes_max = decoded_bytes_max.saturating_mul(2).min(most);
            }
            decoded => return decoded.map_err(format_error),
        }
    }
}

fn too_large(bytes_max: usize) -> Error {
    let message = format!("the body is larger than {bytes_max} bytes; nothing was stored");
    Error::new(ErrorKind::TooLarge, message).with_hint("Send smaller batches.")
}

/// Rows that are passed to the storage at once.
const WRITTEN_ROWS_MAX: usize = 8_192;

/// The rows of one table. Batches may lack the last columns of the schema; these are null.
#[derive(Debug)]
pub(super) struct TableRows {
    pub(super) table: String,
    pub(super) schema: SchemaRef,
    pub(super) batches: Vec<RecordBatch>,
}

impl From<TableBatch> for TableRows {
    fn from(TableBatch { table, rows }: TableBatch) -> Self {
        Self { table: table.name().to_owned(), schema: table.schema(), batches: vec![rows] }
    }
}

/// Stores `tables` with one write. Nothing is written without rows. A repeat with the same `key` stores nothing.
///
/// # Errors
/// `Forbidden` if the caller may not write to one of the tables or lacks an attribute that its rows get; `Unavailable` if a
/// table does not exist, if its columns do not fit, and if the storage fails. Nothing was stored then, unless the message of
/// the storage says so.
pub(super) async fn store_batches(
    context: &ReceiverContext,
    job: &Arc<Job>,
    tables: Vec<TableRows>,
    key: Option<String>,
) -> Result<Option<WriteReceipt>, Error> {
    if tables.is_empty() {
        return Ok(None);
    }
    for rows in &tables {
        context.require_granted(&rows.table, job.principal())?;
    }
    let database = context.target.database();
    job.record_database(database);
    record_write(job, database, tables.iter().map(|rows| rows.table.as_str()), None, key.as_deref());
    let mut stamped = Vec::with_capacity(tables.len());
    for rows in tables {
        let table = context.target.table(&rows.table).await.map_err(retryable)?;
        context.require_granted(&table.name, job.principal())?;
        stamped.push(stamp(rows, &table, job)?);
    }
    let writes = stamped.iter().map(|rows| TableWrite { table: rows.table.clone(), schema: rows.schema.clone() });
    let request = WriteRequest { tables: writes.collect(), mode: WriteMode::Append, key };
    let mut writer = match context.target.begin(request).await.map_err(retryable)? {
        WriteStart::Writer(writer) => writer,
        WriteStart::Repeated(receipt) => return Ok(Some(receipt)),
    };
    for (index, rows) in stamped.into_iter().enumerate() {
        for batch in rows.batches {
            for start in (0..batch.num_rows()).step_by(WRITTEN_ROWS_MAX) {
                let piece = batch.slice(start, WRITTEN_ROWS_MAX.min(batch.num_rows() - start));
                job.usage().count_rows(piece.num_rows() as u64);
                writer.write(index, piece).await.map_err(retryable)?;
            }
        }
    }
    commit(job, writer).await.map(Some)
}

/// A key that only a repeat of the same body by the same caller has.
pub(super) fn key_of(job: &Job, body: &[u8]) -> String {
    let principal = job.principal();
    let caller =
        serde_json::json!([principal.auth_method.name(), principal.tenant, principal.subject, job.target().name()]);
    let caller = caller.to_string();
    let mut digest = Sha256::new();
    digest.update(u64::try_from(caller.len()).unwrap_or(u64::MAX).to_be_bytes());
    digest.update(caller.as_bytes());
    digest.update(body);
    format!("telemetry {}", hex::encode(digest.finalize()))
}

/// An error of the table as one after which the sender keeps its rows and tries again.
fn retryable(error: Error) -> Error {
    match error.kind() {
        ErrorKind::InvalidArguments | ErrorKind::NotFound | ErrorKind::Conflict => {
            let violations = error.violations().iter().take(1);
            let first: String = violations.map(|first| format!(" {}: {}", first.path, first.message)).collect();
            Error::new(ErrorKind::Unavailable, format!("{}{first}; nothing was stored", error.message()))
                .with_retry_after(RETRY_AFTER)
        }
        ErrorKind::Unavailable if error.retry_after().is_none() => error.with_retry_after(RETRY_AFTER),
        _ => error,
    }
}

/// The rows with the attributes of the caller in the columns that get them.
fn stamp(rows: TableRows, table: &IngestTable, job: &Job) -> Result<TableRows, Error> {
    let stamps = Stamps::new(&table.stamps, &table.name, job.principal())?;
    // A document may have anything in the place of such a column, and it is replaced.
    let fields = rows.schema.fields().iter().map(|field| match stamps.names().any(|name| name == field.name()) {
        true => {
            let own = table.schema.as_ref().and_then(|schema| schema.field_with_name(field.name()).ok());
            Arc::new(own.cloned().unwrap_or_else(|| Field::new(field.name(), DataType::Utf8, true))) as FieldRef
        }
        false => field.clone(),
    });
    let schema = stamps.schemas(&Schema::new(fields.collect::<Vec<_>>()), BodyFormat::Arrow).table;
    let batches = rows.batches.into_iter().map(|batch| stamps.apply(with_columns(&batch, &schema)?, &schema));
    Ok(TableRows { table: table.name.clone(), batches: batches.collect::<Result<_, _>>()?, schema })
}

/// The batch with the columns of `schema`, of which it has the first ones.
fn with_columns(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, Error> {
    let rows = batch.num_rows();
    let missing = schema.fields().iter().skip(batch.num_columns());
    let missing = missing.map(|field| new_null_array(field.data_type(), rows));
    let columns: Vec<_> = batch.columns().iter().cloned().chain(missing).collect();
    // A column that gets an attribute of the caller may be null, or text for another layout of text, until then.
    let fields = schema.fields().iter().zip(&columns).map(|(field, column)| {
        let own = field.data_type() == column.data_type() && column.null_count() == 0;
        match own {
            true => field.clone(),
            false => {
                let field = field.as_ref().clone().with_data_type(column.data_type().clone());
                Arc::new(field.with_nullable(true)) as FieldRef
            }
        }
    });
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields.collect::<Vec<_>>())), columns, &options)
        .map_err(|error| Error::internal(format!("received rows do not fit their columns: {error}")))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use tidegate_query::NodeMemory;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn bodies_are_decompressed_within_their_limit() {
        let memory = NodeMemory::default();
        let decompress =
            |body: Bytes, coding, bytes_max| decompress(body, coding, bytes_max, &mut memory.reserve(None));
        let text = vec![b'x'; 1_000];
        let decompress_up_to = |bytes_max| decompress(gzip(&text).into(), Some("gzip"), bytes_max);
        assert_eq!(decompress_up_to(1_000).unwrap(), text);
        assert_eq!(decompress_up_to(999).unwrap_err().kind(), ErrorKind::TooLarge);
        let two = [gzip(b"a"), gzip(b"b")].concat();
        assert_eq!(decompress(two.into(), Some("GZIP"), 2).unwrap(), "ab");
        assert_eq!(decompress(Bytes::from_static(b"a"), Some("identity"), 1).unwrap(), "a");
        let cut = gzip(&text)[..15].to_vec();
        for wrong in [cut, b"text".to_vec()] {
            assert_eq!(decompress(wrong.into(), Some("gzip"), 2_000).unwrap_err().kind(), ErrorKind::InvalidArguments);
        }
    }

    #[test]
    fn a_body_is_decompressed_and_decoded_within_the_memory_of_the_node() {
        let memory = NodeMemory::new(4 << 20);
        let (mut other, mut own) = (memory.reserve(None), memory.reserve(None));
        let body = gzip(&vec![0; 1 << 20]);
        let mut decompress_now = || decompress(body.clone().into(), Some("gzip"), 64 << 20, &mut own);
        other.resize(3 << 20).unwrap();
        assert_eq!(decompress_now().unwrap_err().kind(), ErrorKind::Unavailable);
        other.resize(0).unwrap();
        assert_eq!(decompress_now().unwrap().len(), 1 << 20);

        let limits = TelemetryLimits::default();
        let needs = |bytes: usize| {
            move |limits: &TelemetryLimits| match limits.decoded_bytes_max < bytes {
                true => Err(FormatError::OutOfMemory("it needs more".to_owned())),
                false => Ok(limits.decoded_bytes_max),
            }
        };
        assert_eq!(decode_reserved(1_000, 1_000, &limits, &mut own, needs(300 << 10)).unwrap(), 512 << 10);
        assert_eq!(own.bytes(), 1_000 + DECODED_FORMS * (512 << 10));
        let refused = decode_reserved(1_000, 1_000, &limits, &mut own, needs(2 << 20)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::TooLarge);
        drop((other, own));
        assert_eq!(memory.used_bytes(), 0);
    }

    #[test]
    fn a_body_that_needs_much_more_than_was_sent_is_refused() {
        let memory = NodeMemory::new(8 << 30);
        let mut own = memory.reserve(None);
        let limits = TelemetryLimits::default();
        let needs_300_mib = |limits: &TelemetryLimits| match limits.decoded_bytes_max < 300 << 20 {
            true => Err(FormatError::OutOfMemory("it needs more".to_owned())),
            false => Ok(()),
        };
        let refused = decode_reserved(1_000, 3 << 20, &limits, &mut own, needs_300_mib).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::TooLarge);
        assert!(own.bytes() <= (3 << 20) + DECODED_FORMS * UNCHECKED_BYTES, "{}", own.bytes());
        decode_reserved(1 << 20, 3 << 20, &limits, &mut own, needs_300_mib).unwrap();
    }
}
