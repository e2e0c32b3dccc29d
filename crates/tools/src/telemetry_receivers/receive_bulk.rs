//! `receive_bulk`: documents of the bulk API of Elasticsearch, and answers to what shippers ask before they send.

use std::sync::Arc;
use std::time::Instant;

use arrow::array::RecordBatch;
use serde::Deserialize;
use serde_json::json;
use tidegate_core::{Error, ErrorKind, MemoryReservation, WriteRows};
use tidegate_ingest_formats::{
    BodyDecoder, BodyError, BodyFormat, BodyOptions, INFERENCE_BYTES, RejectMode, RejectedRow, RowPosition,
    UnknownColumns, infer_schema,
};
use tidegate_query::{IngestTable, NodeReservation, batch_bytes};
use tidegate_runtime::{Answer, Job, ReceiverOutcome, RequestBodyTypes, RunningCall, Tool};
use tidegate_telemetry::formats::{BulkItem, BulkRequest, cluster_health, cluster_info, cluster_license};

use super::received_body::{CODINGS, TableRows, decompress, read_body, store_batches, take_body};
use super::{ReceiverContext, format_error};
use crate::arguments::parse_arguments;
use crate::ingest_tools::{Stamps, on_blocking_thread};
use crate::tool_definition::{InputSchemaBuilder, built_in_tool, changing_hints, context_handler};

/// The documents of a table in one request, decoded. An empty document has a null for each column.
const TABLE_BYTES_MAX: usize = 256 << 20;
/// What an action takes in memory, with the name of its index.
const ACTION_BYTES: usize = 512;
const FORBIDDEN: u16 = 403;
const NOT_FOUND: u16 = 404;
const BAD_REQUEST: u16 = 400;
const TOO_MANY: u16 = 429;
/// Tables of one write. Documents for further ones are refused until they are sent again.
const TABLES_MAX: usize = 50;
const JSON: &str = "application/json";
const BODY_TYPES: RequestBodyTypes = RequestBodyTypes {
    media_types: &[
        "application/x-ndjson",
        "application/json",
        "application/vnd.elasticsearch+x-ndjson",
        "application/vnd.elasticsearch+json",
    ],
    codings: CODINGS,
};

pub(super) fn tool(context: &Arc<ReceiverContext>) -> Tool {
    let schema = InputSchemaBuilder::new()
        .with("index", json!({"type": "string", "description": "The index of actions that name none"}))
        .with("probe", json!({"type": "string", "enum": ["info", "license", "health"]}));
    built_in_tool(
        WriteRows::ReceiveBulk.name(),
        "Receive documents",
        "Store the documents in the body of the request, as clients of the bulk API of Elasticsearch send them.",
        schema,
        changing_hints(false, false),
        context_handler(context, handle),
    )
    .with_request_body(BODY_TYPES)
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Probe {
    Info,
    License,
    Health,
}

#[derive(Deserialize)]
struct Arguments {
    index: Option<String>,
    probe: Option<Probe>,
}

async fn handle(context: Arc<ReceiverContext>, call: RunningCall) -> Result<Answer, Error> {
    let started = Instant::now();
    let Arguments { index, probe } = parse_arguments(&call)?;
    let outcome = ReceiverOutcome { media_type: JSON, ..ReceiverOutcome::default() };
    if let Some(probe) = probe {
        let answer = match probe {
            Probe::Info => cluster_info(&context.node_name),
            Probe::License => cluster_license(),
            Probe::Health => cluster_health(&context.node_name),
        };
        return Ok(context.answer(outcome, answer.to_string(), 0));
    }
    let mut reader = take_body(call.job())?;
    let mut memory = context.reserve(call.principal());
    let body = read_body(&mut reader, context.limits.body_bytes_max, &mut memory).await?;
    let coding = reader.coding().map(str::to_owned);
    let _permit = context.decoding.acquire().await.map_err(|error| Error::internal(error.to_string()))?;
    let limits = context.limits.clone();
    let (mut request, mut memory) = on_blocking_thread(move || {
        let body = decompress(body, coding.as_deref(), limits.body_bytes_max, &mut memory)?;
        // Documents are copied, each for its table.
        let actions = body.iter().filter(|byte| **byte == b'\n').count().min(limits.bulk_items_max);
        memory.resize(2 * body.len() + actions * ACTION_BYTES)?;
        let request = BulkRequest::decode(&body, index.as_deref(), &limits).map_err(format_error)?;
        Ok((request, memory))
    })
    .await?;
    let mut tables = Vec::new();
    for position in 0..request.tables().len() {
        let Some(table) = admit_table(&context, &mut request, position, &call).await else { continue };
        let stamps = Stamps::new(&table.stamps, &table.name, call.principal())?;
        let decoding = context.reserve(call.principal());
        let (decoded_request, rows, held) = on_blocking_thread(move || {
            let rows = decode_table(&mut request, position, (&table, &stamps), (decoding, &mut memory));
            Ok((request, rows, memory))
        })
        .await?;
        (request, memory) = (decoded_request, held);
        tables.extend(rows);
    }
    let rows = tables.iter().flat_map(|table| &table.batches).map(|batch| batch.num_rows() as u64).sum();
    store_batches(&context, call.job(), tables, None).await?;
    // A sender repeats documents with this status.
    let is_rejected = |item: &&BulkItem| item.failure.as_ref().is_some_and(|failure| failure.status != TOO_MANY);
    let rejected = request.items().iter().filter(is_rejected).count() as u64;
    let took = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(context.answer(ReceiverOutcome { rejected, ..outcome }, request.answer(took), rows))
}

/// The table of the documents at `position`, or a failure of each of them.
async fn admit_table(
    context: &ReceiverContext,
    request: &mut BulkRequest,
    position: usize,
    job: &Job,
) -> Option<IngestTable> {
    let name = request.tables().get(position)?.table.clone();
    let failure = match context.require_granted(&name, job.principal()) {
        _ if position >= TABLES_MAX => {
            let reason = format!("a request has documents for at most {TABLES_MAX} tables; send these again");
            (TOO_MANY, "es_rejected_execution_exception", reason)
        }
        Err(error) => (FORBIDDEN, "security_exception", error.message().to_owned()),
        Ok(()) => match context.target.table(&name).await {
            Ok(table) => return Some(table),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                (NOT_FOUND, "index_not_found_exception", error.message().to_owned())
            }
            Err(error) => (TOO_MANY, "es_rejected_execution_exception", error.message().to_owned()),
        },
    };
    let (status, error_type, reason) = failure;
    request.fail_table(position, status, error_type, &reason);
    None
}

/// The rows of the documents at `position`. Documents that do not fit fail, and the others go on.
///
/// The decoder draws on the first memory, and the rows of all tables on the second one.
fn decode_table(
    request: &mut BulkRequest,
    position: usize,
    table: (&IngestTable, &Stamps),
    memory: (NodeReservation, &mut NodeReservation),
) -> Option<TableRows> {
    let documents = request.tables().get(position)?;
    match decode_documents(&documents.documents, table, memory) {
        Ok((rows, rejected)) => {
            for row in rejected {
                let RowPosition::Line(line) = row.position else { continue };
                let reason = match &row.column {
                    Some(column) => format!("{column}: {}", row.reason),
                    None => row.reason.clone(),
                };
                request.reject_document(position, line, &reason);
            }
            Some(rows).filter(|rows| rows.batches.iter().any(|batch| batch.num_rows() > 0))
        }
        Err(error) => {
            let (status, error_type, reason) = table_failure(error);
            request.fail_table(position, status, error_type, &reason);
            None
        }
    }
}

/// The status, the type and the reason of documents that were not decoded.
fn table_failure(error: BodyError) -> (u16, &'static str, String) {
    if let BodyError::Memory(refusal) = error {
        let error = Error::from(refusal);
        let status = if error.kind() == ErrorKind::Unavailable { TOO_MANY } else { BAD_REQUEST };
        return (status, "circuit_breaking_exception", error.to_string());
    }
    (BAD_REQUEST, "document_parsing_exception", error.to_string())
}

fn decode_documents(
    documents: &[u8],
    (table, stamps): (&IngestTable, &Stamps),
    (decoding, memory): (NodeReservation, &mut NodeReservation),
) -> Result<(TableRows, Vec<RejectedRow>), BodyError> {
    let mut options = BodyOptions::new(BodyFormat::Ndjson);
    options.reject_mode = RejectMode::Row;
    let schema = match &table.schema {
        Some(schema) => schema.clone(),
        None => infer_schema(documents.get(..INFERENCE_BYTES).unwrap_or(documents), &options)?.schema,
    };
    // The first documents of a table make its columns, all of those in one request.
    if table.adds_columns || table.schema.is_none() {
        options.unknown_columns = UnknownColumns::Add;
    }
    let schema = stamps.schemas(&schema, BodyFormat::Ndjson).body;
    let mut decoder = BodyDecoder::new(&schema, options)?.with_memory(Box::new(decoding));
    decoder.push(documents);
    decoder.finish();
    let (mut batches, mut rejected): (Vec<RecordBatch>, _) = (Vec::new(), Vec::new());
    let (held_bytes, mut bytes) = (memory.bytes(), 0);
    while let Some(rows) = decoder.next_rows()? {
        bytes += batch_bytes(&rows.batch);
        memory.resize(held_bytes + bytes).map_err(BodyError::Memory)?;
        if bytes > TABLE_BYTES_MAX {
            let reason = format!("the documents take more than {TABLE_BYTES_MAX} bytes; send fewer in a request");
            return Err(BodyError::TooLarge(reason));
        }
        rejected.extend(rows.rejected);
        batches.push(rows.batch);
    }
    // Columns are only added at the end, so that the last batch has all of them.
    let schema = batches.last().map_or(schema, |batch| batch.schema());
    batches.retain(|batch| batch.num_rows() > 0);
    Ok((TableRows { table: table.name.clone(), schema, batches }, rejected))
}
