//! From the bytes of rows to a table: decodes, stamps, writes and commits. All rows are stored, or none.
//!
//! Rows that do not fit become rows of the table of rejected rows. Their positions in the body are also known for rows
//! that a table refuses after they were decoded.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::SchemaRef;
use tidegate_core::{AuditedStatement, AuthMethod, Error, ErrorKind, quota_address};
use tidegate_ingest_formats::{BodyFormat, BodyOptions, REPORTED_ROWS_MAX, RejectMode, RejectedRow, RowPosition};
use tidegate_query::{
    NodeReservation, REJECTS_SUFFIX, RowWriter, TableWrite, WriteMode, WriteReceipt, WriteRequest, WriteStart,
    batch_bytes, rejected_rows_schema,
};
use tidegate_runtime::Job;

use super::IngestContext;
use super::body_decoder::{BodyRows, UndecodedBody, head_bytes, spool};
use super::row_arguments::{BodyArguments, BodyPieces};
use super::stamps::{Stamps, WriteSchemas};
use super::writable_table::WritableTable;

/// The positions of the tables of a write.
const ROWS: usize = 0;
const REJECTS: usize = 1;
/// How long decoded rows wait for memory, which queries may hold.
const MEMORY_WAIT: Duration = Duration::from_secs(10);

/// What a call stores, and how.
pub(super) struct StoreRequest<'a> {
    pub(super) writable_table: &'a WritableTable,
    pub(super) mode: WriteMode,
    pub(super) key: Option<&'a str>,
    pub(super) arguments: &'a BodyArguments,
}

/// What a call has stored.
#[derive(Debug)]
pub(super) struct StoredRows {
    pub(super) receipt: WriteReceipt,
    /// The first rows that were rejected.
    pub(super) rejections: Vec<RejectedRow>,
    /// How many rows were rejected.
    pub(super) rejected: u64,
    /// Whether an earlier call with the same key has stored the rows.
    pub(super) is_repeated: bool,
}

/// Stores the rows of a body.
///
/// # Errors
/// Those of the body, of the table and of its storage. Nothing was stored then, unless the message of the storage says so.
pub(super) async fn store_body(
    context: &IngestContext,
    job: &Arc<Job>,
    request: StoreRequest<'_>,
    mut pieces: BodyPieces,
) -> Result<StoredRows, Error> {
    let table = &request.writable_table.table;
    let options = request.arguments.options(pieces.media_type(), pieces.coding(), table)?;
    let (database, tables) = (request.writable_table.target.database(), std::iter::once(table.name.as_str()));
    record_write(job, database, tables, Some(options.format), request.key);
    let stamps = Stamps::new(&table.stamps, &table.name, job.principal())?;
    // A write whose columns are known begins before its body is read, so that a repeated one is recognised at once.
    let early = match &table.schema {
        Some(schema) => {
            let write = Write::begin(job, &request, stamps.schemas(schema, options.format), &options, &stamps).await?;
            Some(write)
        }
        None => None,
    };
    if let Some(Write { start: WriteStart::Repeated(receipt), .. }) = early {
        pieces.discard().await?;
        return Ok(repeated(receipt));
    }
    let mut source = match options.format {
        BodyFormat::Parquet => UndecodedBody::File(spool(&context.options.spool_folder, &mut pieces).await?),
        format => UndecodedBody::streamed(pieces, head_bytes(table.schema.is_some(), format)).await?,
    };
    let write = match early {
        Some(write) => write,
        None => {
            let inferred = source.infer_columns(&options).await?;
            let schema = stamps.correct_inferred(&inferred);
            Write::begin(job, &request, stamps.schemas(&schema, options.format), &options, &stamps).await?
        }
    };
    let Write { start, schemas, rejects } = write;
    let reserve = || context.options.memory.reserve(job.principal().tenant.as_deref());
    let mut rows = source.into_rows(&schemas.body, options, reserve()).await?;
    let writer = match start {
        WriteStart::Writer(writer) => writer,
        WriteStart::Repeated(receipt) => {
            while rows.next().await?.is_some() {}
            return Ok(repeated(receipt));
        }
    };
    let (table, rejections, positions, memory) = (schemas.table, Vec::new(), RowPositions::default(), reserve());
    let writing = Writing { job, stamps: &stamps, rejects, table, rejections, rejected: 0, positions, memory };
    let stored = writing.write(&mut rows, writer).await;
    if stored.is_err() {
        request.writable_table.target.count_rejected(rows.refused_rows());
    }
    stored
}

/// A write that has begun.
struct Write {
    start: WriteStart,
    schemas: WriteSchemas,
    rejects: Option<RejectedRows>,
}

impl Write {
    async fn begin(
        job: &Job,
        request: &StoreRequest<'_>,
        schemas: WriteSchemas,
        options: &BodyOptions,
        stamps: &Stamps,
    ) -> Result<Self, Error> {
        let WritableTable { target, table, .. } = request.writable_table;
        let rejects =
            (options.reject_mode == RejectMode::Row).then(|| RejectedRows::new(stamps, &job.principal().subject));
        let mut tables = vec![TableWrite { table: table.name.clone(), schema: schemas.table.clone() }];
        tables.extend(rejects.as_ref().map(|rejects| TableWrite {
            table: format!("{}{REJECTS_SUFFIX}", table.name),
            schema: rejects.schema.clone(),
        }));
        let key = request.key.map(|key| write_key(job, request, key));
        let start = target.begin(WriteRequest { tables, mode: request.mode, key }).await?;
        Ok(Self { start, schemas, rejects })
    }
}

/// Rows on their way to a writer.
struct Writing<'a> {
    job: &'a Arc<Job>,
    stamps: &'a Stamps,
    rejects: Option<RejectedRows>,
    table: SchemaRef,
    rejections: Vec<RejectedRow>,
    rejected: u64,
    positions: RowPositions,
    /// Of the rows that the decoder has returned and that are not on disk.
    memory: NodeReservation,
}

impl Writing<'_> {
    async fn write(mut self, rows: &mut BodyRows, writer: Box<dyn RowWriter>) -> Result<StoredRows, Error> {
        let mut writer = Some(writer);
        while let Some(decoded) = rows.next().await? {
            let count = decoded.batch.num_rows() + decoded.rejected.len();
            self.job.usage().count_rows(count as u64);
            if let Some(writer) = &mut writer {
                let mut rejected = decoded.rejected;
                if decoded.batch.num_rows() > 0 {
                    let batch = self.stamps.apply(decoded.batch, &self.table)?;
                    let bytes = batch_bytes(&batch).saturating_add(writer.memory_bytes());
                    self.memory.resize_within(bytes, MEMORY_WAIT).await?;
                    self.positions.extend(&decoded.positions);
                    let refused = self.write_fitting(writer, &batch, &decoded.positions).await;
                    rejected.extend(refused.map_err(|error| self.positions.with_position(error))?);
                }
                // A row that was written before may be refused only now.
                let written = self.write_rejected(writer, rejected).await;
                written.map_err(|error| self.positions.with_position(error))?;
            }
            if rows.is_refused() {
                // The rest is read for further reasons only.
                writer = None;
            }
        }
        let Some(writer) = writer else { return Err(Error::internal("a refused body ended without its reason")) };
        let receipt = commit(self.job, writer).await.map_err(|error| self.positions.with_position(error))?;
        let Self { rejections, rejected, .. } = self;
        Ok(StoredRows { receipt, rejections, rejected, is_repeated: false })
    }

    /// Writes the rows of `batch`. Where the sender wants to have single rows rejected, returns those that the table
    /// refuses.
    async fn write_fitting(
        &self,
        writer: &mut Box<dyn RowWriter>,
        batch: &RecordBatch,
        positions: &[RowPosition],
    ) -> Result<Vec<RejectedRow>, Error> {
        let mut rejected = Vec::new();
        let mut is_first = true;
        let mut parts: Vec<Range<usize>> = std::iter::once(0..batch.num_rows()).collect();
        while let Some(part) = parts.pop() {
            let Err(error) = writer.write(ROWS, batch.slice(part.start, part.len())).await else { continue };
            let is_refusal = error.kind() == ErrorKind::InvalidArguments;
            if self.rejects.is_none() || !is_refusal || !writer.takes_parts(ROWS) {
                return Err(error);
            }
            // Without a row, only what is wrong for all rows is refused.
            if std::mem::take(&mut is_first) && writer.write(ROWS, batch.slice(0, 0)).await.is_err() {
                return Err(error);
            }
            if part.len() > 1 {
                let middle = part.start + part.len() / 2;
                parts.extend([middle..part.end, part.start..middle]);
                continue;
            }
            let Some(position) = positions.get(part.start) else { return Err(error) };
            rejected.push(refused_row(*position, &error));
        }
        Ok(rejected)
    }

    async fn write_rejected(&mut self, writer: &mut Box<dyn RowWriter>, rows: Vec<RejectedRow>) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        if let Some(rejects) = &self.rejects {
            writer.write(REJECTS, rejects.batch(&rows, self.stamps, SystemTime::now())?).await?;
        }
        self.rejected += rows.len() as u64;
        let room = REPORTED_ROWS_MAX.saturating_sub(self.rejections.len());
        self.rejections.extend(rows.into_iter().take(room));
        Ok(())
    }
}

/// A row that the transform of its table does not compute, or whose computed values do not fit.
fn refused_row(position: RowPosition, error: &Error) -> RejectedRow {
    let violations = error.violations().iter().map(|violation| format!("; {}: {}", violation.path, violation.message));
    let reason = format!("{}{}", error.message(), violations.collect::<String>());
    RejectedRow { position, column: None, reason, text: String::new() }
}

/// The receipt of an earlier call with the same key.
fn repeated(receipt: WriteReceipt) -> StoredRows {
    let rejected = receipt.rows.get(REJECTS).copied().unwrap_or_default();
    StoredRows { receipt, rejections: Vec::new(), rejected, is_repeated: true }
}

/// A key that no other caller, tool or table has.
fn write_key(job: &Job, request: &StoreRequest<'_>, key: &str) -> String {
    let caller = job.caller();
    let principal = &caller.principal;
    // Anonymous callers are distinguished by their addresses.
    let address = caller.origin.peer.filter(|_| principal.auth_method == AuthMethod::Anonymous);
    let parts = serde_json::json!([
        principal.auth_method.name(),
        principal.tenant,
        principal.subject,
        address.map(quota_address),
        job.target().name(),
        request.writable_table.table.name,
        key,
    ]);
    parts.to_string()
}

/// The audit line names the database, the tables, the format and the key.
pub(crate) fn record_write<'a>(
    job: &Job,
    database: &str,
    tables: impl Iterator<Item = &'a str>,
    format: Option<BodyFormat>,
    key: Option<&str>,
) {
    job.record_statement(|| {
        let format = format.map(|format| format!(" of {}", format.name())).unwrap_or_default();
        let key = key.map(|key| format!(", key {key}")).unwrap_or_default();
        let fingerprint = format!("{}{format}{key}", job.target().name());
        AuditedStatement {
            database: database.to_owned(),
            tables: tables.map(str::to_owned).collect(),
            fingerprint: Box::new(move || fingerprint),
        }
    });
}

/// Commits the rows that `writer` has.
///
/// # Errors
/// `Cancelled` when a daily limit has ended the call with its last rows, and those of the storage.
pub(crate) async fn commit(job: &Job, writer: Box<dyn RowWriter>) -> Result<WriteReceipt, Error> {
    if job.is_cancelled() {
        return Err(Error::new(ErrorKind::Cancelled, "the call was cancelled; nothing was stored"));
    }
    // A commit that has begun ends, also when the client leaves meanwhile.
    let committed = tokio::spawn(writer.commit()).await;
    committed.unwrap_or_else(|error| Err(Error::internal(format!("a commit failed: {error}"))))
}

/// So many runs of successive positions are kept. Of rows after them, errors say no position.
const RUNS_MAX: usize = 65_536;

/// The positions of the rows that were written, in their order.
#[derive(Debug, Default)]
struct RowPositions {
    /// Of each run of successive positions the number of its first row, and where that row is.
    runs: Vec<(u64, RowPosition)>,
    rows: u64,
    is_full: bool,
}

impl RowPositions {
    /// Adds the positions of the next rows.
    fn extend(&mut self, positions: &[RowPosition]) {
        for position in positions {
            if self.is_full {
                return;
            }
            let expected = self.runs.last().map(|(first, start)| after(*start, self.rows - first));
            if expected != Some(*position) {
                self.is_full = self.runs.len() == RUNS_MAX;
                if self.is_full {
                    return;
                }
                self.runs.push((self.rows, *position));
            }
            self.rows += 1;
        }
    }

    /// The same error with the position of the row that a table refuses, if both are known.
    fn with_position(&self, error: Error) -> Error {
        let Some(position) = error.refused_row().and_then(|row| self.find(row)) else { return error };
        let placed = Error::new(error.kind(), format!("{position}: {}", error.message()));
        let placed = match error.hint() {
            Some(hint) => placed.with_hint(hint),
            None => placed,
        };
        match error.detail() {
            Some(detail) => placed.with_detail(detail),
            None => placed,
        }
    }

    fn find(&self, row: u64) -> Option<RowPosition> {
        if row >= self.rows {
            return None;
        }
        let run = self.runs.partition_point(|(first, _)| *first <= row).checked_sub(1)?;
        self.runs.get(run).map(|(first, start)| after(*start, row - first))
    }
}

/// The position that is `rows` rows after `start`, where each row is in the next position.
fn after(start: RowPosition, rows: u64) -> RowPosition {
    match start {
        RowPosition::Line(line) => RowPosition::Line(line.saturating_add(rows)),
        RowPosition::Index(index) => RowPosition::Index(index.saturating_add(rows)),
    }
}

const TIME_ZONE: &str = "UTC";

/// Makes batches of rejected rows.
#[derive(Debug)]
struct RejectedRows {
    schema: SchemaRef,
    subject: String,
}

impl RejectedRows {
    fn new(stamps: &Stamps, subject: &str) -> Self {
        Self { schema: rejected_rows_schema(stamps.names()), subject: subject.to_owned() }
    }

    /// The batch of `rows`, rejected at `time`.
    fn batch(&self, rows: &[RejectedRow], stamps: &Stamps, time: SystemTime) -> Result<RecordBatch, Error> {
        let since_epoch = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let microseconds = i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX);
        let times = TimestampMicrosecondArray::from(vec![microseconds; rows.len()]).with_timezone(TIME_ZONE);
        let line = |row: &RejectedRow| match row.position {
            RowPosition::Line(line) => i64::try_from(line).ok(),
            RowPosition::Index(_) => None,
        };
        let index = |row: &RejectedRow| match row.position {
            RowPosition::Index(index) => i64::try_from(index).ok(),
            RowPosition::Line(_) => None,
        };
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(times),
            Arc::new(StringArray::from_iter_values(rows.iter().map(|_| self.subject.as_str()))),
            Arc::new(rows.iter().map(line).collect::<Int64Array>()),
            Arc::new(rows.iter().map(index).collect::<Int64Array>()),
            Arc::new(rows.iter().map(|row| row.column.as_deref()).collect::<StringArray>()),
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.reason.as_str()))),
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.text.as_str()))),
        ];
        columns.extend(stamps.columns(rows.len()));
        RecordBatch::try_new(self.schema.clone(), columns)
            .map_err(|error| Error::internal(format!("a batch of rejected rows is invalid: {error}")))
    }
}
