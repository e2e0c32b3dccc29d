//! Tools that receive telemetry: `receive_otlp`, `receive_prometheus` and `receive_bulk`; and `get_trace`, which reads
//! it.
//!
//! The receivers are called over REST only, at the paths where senders expect them. Each request is one call and one
//! write: its rows are stored together, and acknowledged once they are on disk. An error is one of two kinds for a
//! sender: `InvalidArguments` and `Forbidden` for what never succeeds, `Unavailable` for what may succeed later. A
//! table that does not fit counts as the latter, because it is the matter of the operator and the sender should keep
//! its rows.
//!
//! `receive_otlp` takes log records, data points and spans of OpenTelemetry, and `receive_prometheus` samples and
//! exemplars of Prometheus remote write.

mod get_trace;
mod receive_bulk;
mod received_body;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;
use tidegate_core::{
    Access, Acl, AllowedNames, Budget, DatabaseTenants, Error, ErrorKind, Principal, TransportKind, WriteRows,
};
use tidegate_query::{NodeMemory, NodeReservation, WriteTarget};
use tidegate_runtime::{
    AdapterDetail, Answer, AnswerMeta, BodyMetadata, ReceiverOutcome, RequestBodyTypes, RunningCall, SnapshotBuilder,
    Tool, WrittenRecords,
};
use tidegate_telemetry::formats::{
    FormatError, OtlpEncoding, OtlpSignal, RemoteWriteVersion, TableBatches, TelemetryLimits, TelemetryTable,
    decode_logs, decode_metrics, decode_remote_write, decode_traces, success_body,
};
use tokio::sync::Semaphore;

use self::received_body::{
    CODINGS, TableRows, decode_reserved, decompress, key_of, read_body, store_batches, take_body,
};
use crate::arguments::parse_arguments;
use crate::ingest_tools::on_blocking_thread;
use crate::tool_definition::{InputSchemaBuilder, add_tools, built_in_tool, changing_hints, context_handler};

pub use self::get_trace::{TraceSource, register_traces};

/// The tools of a server that receives OTLP.
pub const OTLP_TOOLS: [&str; 2] = ["receive_otlp", "get_trace"];
/// Bodies that are decoded and stored concurrently. Each may take [`TelemetryLimits::decoded_bytes_max`] twice.
const DECODED_AT_ONCE: usize = 2;
/// When a sender may try again after the tables could not take its rows.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// The tables that receive telemetry, by the protocol of the sender.
#[derive(Debug, Clone, Default)]
pub struct TelemetryReceivers {
    /// OTLP over HTTP.
    pub otlp: Option<Arc<dyn WriteTarget>>,
    /// Prometheus remote write.
    pub prometheus: Option<Arc<dyn WriteTarget>>,
    /// The bulk API of Elasticsearch.
    pub bulk: Option<Arc<dyn WriteTarget>>,
    /// The tenants of the databases.
    pub tenancy: DatabaseTenants,
    /// The memory that bodies draw on.
    pub memory: Arc<NodeMemory>,
}

/// What one of the tools needs.
struct ReceiverContext {
    target: Arc<dyn WriteTarget>,
    tenancy: DatabaseTenants,
    limits: TelemetryLimits,
    memory: Arc<NodeMemory>,
    decoding: Arc<Semaphore>,
    /// The name of the node, for answers to probes.
    node_name: String,
}

/// Adds a tool for each configured receiver to `builder`, as far as `allowed` includes its name. `node_name` is what senders
/// that ask for it see as the name of the server.
pub fn register_telemetry_receivers(
    builder: SnapshotBuilder,
    receivers: TelemetryReceivers,
    node_name: &str,
    allowed: &AllowedNames,
) -> SnapshotBuilder {
    let TelemetryReceivers { otlp, prometheus, bulk, tenancy, memory } = receivers;
    let decoding = Arc::new(Semaphore::new(DECODED_AT_ONCE));
    let context = |target: Arc<dyn WriteTarget>| {
        Arc::new(ReceiverContext {
            target,
            tenancy: tenancy.clone(),
            limits: TelemetryLimits::default(),
            memory: memory.clone(),
            decoding: decoding.clone(),
            node_name: node_name.to_owned(),
        })
    };
    let tools = [
        otlp.map(|target| receive_otlp_tool(&context(target))),
        prometheus.map(|target| receive_prometheus_tool(&context(target))),
        bulk.map(|target| receive_bulk::tool(&context(target))),
    ];
    let acl = Acl { transports: Some(vec![TransportKind::Rest]), networks: None };
    // Whether a caller may write is checked by the tables of its request, so that the refusal says what is missing.
    let access = Access { acl, is_for_senders: true, ..Access::default() };
    add_tools(builder, tools.into_iter().flatten(), &access, allowed)
}

impl ReceiverContext {
    /// The memory of one body, which is empty yet.
    fn reserve(&self, principal: &Principal) -> NodeReservation {
        self.memory.reserve(principal.tenant.as_deref())
    }

    /// Checks that `principal` may write to `table`.
    ///
    /// # Errors
    /// `Forbidden`.
    fn require_granted(&self, table: &str, principal: &Principal) -> Result<(), Error> {
        let database = self.target.database();
        if principal.grants.may_ingest(database, table) && self.tenancy.admits(database, principal) {
            return Ok(());
        }
        // A caller that may write nothing there does not learn the name of the database.
        let may_know = principal.grants.may_ingest_into(database) && self.tenancy.admits(database, principal);
        let target = if may_know { format!("to {database}.{table}") } else { "what this server receives".to_owned() };
        let message = format!("you may not write {target}; nothing was stored");
        Err(Error::new(ErrorKind::Forbidden, message).with_hint("A role grants it with its key ingest."))
    }

    /// The answer to a request whose `rows` are stored. Counts its rejected records.
    fn answer(&self, outcome: ReceiverOutcome, body: impl Into<Bytes>, rows: u64) -> Answer {
        self.target.count_rejected(outcome.rejected);
        let adapter = Some(Box::new(AdapterDetail::Receiver(outcome)));
        let meta = AnswerMeta { rows: Some(rows), adapter, ..AnswerMeta::default() };
        let body = body.into();
        Answer::written(move |reply| async move {
            reply.begin_body(BodyMetadata::new(outcome.media_type, Budget::default())).await?;
            reply.send_bytes(body).await?;
            Ok(meta)
        })
    }
}

/// The error of a body that is refused.
fn format_error(error: FormatError) -> Error {
    match error {
        FormatError::TooLarge(message) | FormatError::OutOfMemory(message) => {
            Error::new(ErrorKind::TooLarge, format!("{message}; nothing was stored"))
        }
        FormatError::Malformed(message) | FormatError::Unsupported(message) => {
            Error::new(ErrorKind::InvalidArguments, format!("{message}; nothing was stored"))
        }
        FormatError::Internal(detail) => Error::internal(detail),
    }
}

const OTLP_BODY_TYPES: RequestBodyTypes =
    RequestBodyTypes { media_types: &["application/x-protobuf", "application/json"], codings: CODINGS };

fn receive_otlp_tool(context: &Arc<ReceiverContext>) -> Tool {
    let schema = InputSchemaBuilder::new()
        .with_required("signal", json!({"type": "string", "enum": ["logs", "metrics", "traces"]}));
    built_in_tool(
        WriteRows::ReceiveOtlp.name(),
        "Receive OpenTelemetry",
        "Store the logs, metrics or traces in the body of the request, as OTLP exporters send them.",
        schema,
        changing_hints(false, false),
        context_handler(context, handle_receive_otlp),
    )
    .with_request_body(OTLP_BODY_TYPES)
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Signal {
    Logs,
    Metrics,
    Traces,
}

#[derive(Deserialize)]
struct OtlpArguments {
    signal: Signal,
}

async fn handle_receive_otlp(context: Arc<ReceiverContext>, call: RunningCall) -> Result<Answer, Error> {
    let OtlpArguments { signal } = parse_arguments(&call)?;
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
        let sent_bytes = body.len();
        let body = decompress(body, coding.as_deref(), limits.body_bytes_max, &mut memory)?;
        let decoded = decode_reserved(sent_bytes, body.len(), &limits, &mut memory, |limits| match signal {
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

const PROMETHEUS_BODY_TYPES: RequestBodyTypes =
    RequestBodyTypes { media_types: &["application/x-protobuf"], codings: &["snappy"] };

fn receive_prometheus_tool(context: &Arc<ReceiverContext>) -> Tool {
    built_in_tool(
        WriteRows::ReceivePrometheus.name(),
        "Receive Prometheus samples",
        "Store the samples in the body of the request, as the remote write of Prometheus sends them.",
        InputSchemaBuilder::new(),
        changing_hints(false, false),
        context_handler(context, handle_receive_prometheus),
    )
    .with_request_body(PROMETHEUS_BODY_TYPES)
}

async fn handle_receive_prometheus(context: Arc<ReceiverContext>, call: RunningCall) -> Result<Answer, Error> {
    let mut reader = take_body(call.job())?;
    let version = RemoteWriteVersion::from_headers(Some(reader.media_type()), reader.coding()).map_err(format_error)?;
    let mut memory = context.reserve(call.principal());
    let body = read_body(&mut reader, context.limits.body_bytes_max, &mut memory).await?;
    let _permit = context.decoding.acquire().await.map_err(|error| Error::internal(error.to_string()))?;
    let (limits, decoding_job) = (context.limits.clone(), call.job().clone());
    let (mut decoded, key, _memory) = on_blocking_thread(move || {
        let key = key_of(&decoding_job, &body);
        let decode = |limits: &TelemetryLimits| decode_remote_write(&body, version, limits);
        Ok((decode_reserved(body.len(), body.len(), &limits, &mut memory, decode)?, key, memory))
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
