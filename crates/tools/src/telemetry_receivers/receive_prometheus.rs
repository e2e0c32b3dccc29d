//! `receive_prometheus`: samples and exemplars of Prometheus remote write.

use std::sync::Arc;

use tidegate_core::{Error, WriteRows};
use tidegate_runtime::{Answer, ReceiverOutcome, RequestBodyTypes, RunningCall, Tool, WrittenRecords};
use tidegate_telemetry_formats::{RemoteWriteVersion, TelemetryLimits, TelemetryTable, decode_remote_write};

use super::received_body::{decode_reserved, read_body, take_body};
use super::store_batches::{TableRows, key_of, store_batches};
use super::{ReceiverContext, format_error};
use crate::ingest_tools::on_blocking_thread;
use crate::tool_definition::{InputSchemaBuilder, built_in_tool, changing_hints, context_handler};

const BODY_TYPES: RequestBodyTypes =
    RequestBodyTypes { media_types: &["application/x-protobuf"], codings: &["snappy"] };

pub(super) fn tool(context: &Arc<ReceiverContext>) -> Tool {
    built_in_tool(
        WriteRows::ReceivePrometheus.name(),
        "Receive Prometheus samples",
        "Store the samples in the body of the request, as the remote write of Prometheus sends them.",
        InputSchemaBuilder::new(),
        changing_hints(false, false),
        context_handler(context, handle),
    )
    .with_request_body(BODY_TYPES)
}

async fn handle(context: Arc<ReceiverContext>, call: RunningCall) -> Result<Answer, Error> {
    let mut reader = take_body(call.job())?;
    let version = RemoteWriteVersion::from_headers(Some(reader.media_type()), reader.coding()).map_err(format_error)?;
    let mut memory = context.reserve(call.principal());
    let body = read_body(&mut reader, context.limits.body_bytes_max, &mut memory).await?;
    let _permit = context.decoding.acquire().await.map_err(|error| Error::internal(error.to_string()))?;
    let (limits, decoding_job) = (context.limits.clone(), call.job().clone());
    let (mut decoded, key, _memory) = on_blocking_thread(move || {
        let key = key_of(&decoding_job, &body);
        let decode = |limits: &TelemetryLimits| decode_remote_write(&body, version, limits);
        Ok((decode_reserved(body.len(), &limits, &mut memory, decode)?, key, memory))
    })
    .await?;
    let batches = std::mem::take(&mut decoded.tables.batches);
    let row_count = |table: TelemetryTable| -> u64 {
        batches.iter().filter(|batch| batch.table == table).map(|batch| batch.rows.num_rows() as u64).sum()
    };
    let written = WrittenRecords {
        samples: row_count(TelemetryTable::PrometheusSamples),
        exemplars: row_count(TelemetryTable::PrometheusExemplars),
    };
    let tables = batches.into_iter().map(TableRows::from);
    store_batches(&context, call.job(), tables.collect(), Some(key)).await?;
    let outcome = ReceiverOutcome {
        media_type: "text/plain; charset=utf-8",
        rejected: decoded.tables.rejected.count,
        written: (version == RemoteWriteVersion::V2).then_some(written),
    };
    Ok(context.answer(outcome, decoded.rejection_message(), written.samples + written.exemplars))
}
