//! `receive_otlp`: log records, data points and spans of OpenTelemetry.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;
use tidegate_core::{Error, ErrorKind, WriteRows};
use tidegate_runtime::{Answer, ReceiverOutcome, RequestBodyTypes, RunningCall, Tool};
use tidegate_telemetry_formats::{
    OtlpEncoding, OtlpSignal, TableBatches, decode_logs, decode_metrics, decode_traces, success_body,
};

use super::ReceiverContext;
use super::received_body::{CODINGS, decode_reserved, decompress, read_body, take_body};
use super::store_batches::{TableRows, key_of, store_batches};
use crate::arguments::parse_arguments;
use crate::ingest_tools::on_blocking_thread;
use crate::tool_definition::{InputSchemaBuilder, built_in_tool, changing_hints, context_handler};

const BODY_TYPES: RequestBodyTypes =
    RequestBodyTypes { media_types: &["application/x-protobuf", "application/json"], codings: CODINGS };

pub(super) fn tool(context: &Arc<ReceiverContext>) -> Tool {
    let schema = InputSchemaBuilder::new()
        .with_required("signal", json!({"type": "string", "enum": ["logs", "metrics", "traces"]}));
    built_in_tool(
        WriteRows::ReceiveOtlp.name(),
        "Receive OpenTelemetry",
        "Store the logs, metrics or traces in the body of the request, as OTLP exporters send them.",
        schema,
        changing_hints(false, false),
        context_handler(context, handle),
    )
    .with_request_body(BODY_TYPES)
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Signal {
    Logs,
    Metrics,
    Traces,
}

#[derive(Deserialize)]
struct Arguments {
    signal: Signal,
}

async fn handle(context: Arc<ReceiverContext>, call: RunningCall) -> Result<Answer, Error> {
    let Arguments { signal } = parse_arguments(&call)?;
    let mut reader = take_body(call.job())?;
    let Some(encoding) = OtlpEncoding::from_media_type(reader.media_type()) else {
        return Err(Error::new(ErrorKind::InvalidArguments, format!("{:?} is not OTLP", reader.media_type())));
    };
    let mut memory = context.reserve(call.principal());
    let body = read_body(&mut reader, context.limits.body_bytes_max, &mut memory).await?;
    let coding = reader.coding().map(str::to_owned);
    let _permit = context.decoding.acquire().await.map_err(|error| Error::internal(error.to_string()))?;
    let (limits, decoding_job) = (context.limits.clone(), call.job().clone());
    let (decoded, key, _memory) = on_blocking_thread(move || {
        let body = decompress(body, coding.as_deref(), limits.body_bytes_max, &mut memory)?;
        let decoded = decode_reserved(body.len(), &limits, &mut memory, |limits| match signal {
            Signal::Logs => decode_logs(&body, encoding, limits),
            Signal::Metrics => decode_metrics(&body, encoding, limits),
            Signal::Traces => decode_traces(&body, encoding, limits),
        })?;
        // Data points and spans have times and identifiers, so that equal bodies are the same ones. Log records need not.
        let key = (!matches!(signal, Signal::Logs)).then(|| key_of(&decoding_job, &body));
        Ok((decoded, key, memory))
    })
    .await?;
    let TableBatches { batches, rejected } = decoded;
    let rows = batches.iter().map(|batch| batch.rows.num_rows() as u64).sum();
    let tables = batches.into_iter().map(TableRows::from);
    store_batches(&context, call.job(), tables.collect(), key).await?;
    let signal = match signal {
        Signal::Logs => OtlpSignal::Logs,
        Signal::Metrics => OtlpSignal::Metrics,
        Signal::Traces => OtlpSignal::Traces,
    };
    let body = success_body(signal, encoding, rejected.count, &rejected.to_string());
    let outcome = ReceiverOutcome { media_type: encoding.media_type(), rejected: rejected.count, written: None };
    Ok(context.answer(outcome, body, rows))
}
