//! One write of the rows of several tables.

use std::sync::Arc;

use arrow::array::{Array, RecordBatch, RecordBatchOptions, new_null_array};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use sha2::{Digest, Sha256};
use tidegate_core::{Error, ErrorKind};
use tidegate_ingest_formats::BodyFormat;
use tidegate_query::{IngestTable, TableWrite, WriteMode, WriteReceipt, WriteRequest, WriteStart};
use tidegate_runtime::Job;
use tidegate_telemetry_formats::TableBatch;

use super::{RETRY_AFTER, ReceiverContext};
use crate::ingest_tools::{Stamps, commit, record_write};

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
