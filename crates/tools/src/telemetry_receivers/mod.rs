//! Tools that receive telemetry: `receive_otlp`, `receive_prometheus` and `receive_bulk`; and `get_trace`, which reads it.
//!
//! The receivers are called over REST only, at the paths where senders expect them. Each request is one call and one write:
//! its rows are stored together, and acknowledged once they are on disk. An error is one of two kinds for a sender:
//! `InvalidArguments` and `Forbidden` for what never succeeds, `Unavailable` for what may succeed later. A table that does
//! not fit counts as the latter, because it is the matter of the operator and the sender should keep its rows.

mod get_trace;
mod receive_bulk;
mod receive_otlp;
mod receive_prometheus;
mod received_body;
mod store_batches;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tidegate_core::{Access, Acl, AllowedNames, Budget, DatabaseTenants, Error, ErrorKind, Principal, TransportKind};
use tidegate_query::{IngestTarget, NodeMemory, NodeReservation};
use tidegate_runtime::{AdapterDetail, Answer, AnswerMeta, BodyMetadata, ReceiverOutcome, SnapshotBuilder};
use tidegate_telemetry_formats::{FormatError, TelemetryLimits};
use tokio::sync::Semaphore;

pub use self::get_trace::{TraceSource, register_traces};
use crate::tool_definition::add_tools;

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
    pub otlp: Option<Arc<dyn IngestTarget>>,
    /// Prometheus remote write.
    pub prometheus: Option<Arc<dyn IngestTarget>>,
    /// The bulk API of Elasticsearch.
    pub bulk: Option<Arc<dyn IngestTarget>>,
    /// The tenants of the databases.
    pub tenancy: DatabaseTenants,
    /// The memory that bodies draw on.
    pub memory: Arc<NodeMemory>,
}

/// What one of the tools needs.
pub(crate) struct ReceiverContext {
    target: Arc<dyn IngestTarget>,
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
    let context = |target: Arc<dyn IngestTarget>| {
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
        otlp.map(|target| receive_otlp::tool(&context(target))),
        prometheus.map(|target| receive_prometheus::tool(&context(target))),
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
