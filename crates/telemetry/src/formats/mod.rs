//! What telemetry senders send, as record batches of tables; and the bodies of the answers. No HTTP, no SQL, no files.
//!
//! - [`decode_logs`], [`decode_metrics`], [`decode_traces`]: OTLP over HTTP, in Protocol Buffers and JSON.
//! - [`decode_remote_write`]: Prometheus remote write, versions 1.0 and 2.0.
//! - [`BulkRequest`]: the bulk API of Elasticsearch. Its documents are NDJSON for the decoder of `tidegate-ingest-formats`.
//! - [`TraceTree`]: the spans of one trace as a tree.
//!
//! Bodies are complete and not compressed, except with snappy, which belongs to remote write.
//!
//! # Exact or rejected
//!
//! A record that its table does not hold exactly is rejected: it has no row, and is counted with its reason, for the answer.
//! Others go on. A body that is not in its format is refused. Nothing is rounded or cut, with one exception: where a
//! standard has integers and floats in one field, the column of floats has the nearest float, and a column of integers
//! has the integer.
//!
//! # Bounds
//!
//! [`TelemetryLimits`] has all of them. Messages are measured before they are decoded, because an empty message of two bytes
//! takes hundreds in memory. The columns of a source are repeated in each of its rows, so that rows have a bound as well.
//!
//! # Why the messages are declared here
//!
//! They are few and their numbers never change. The generated crates bring a gRPC server with them, and read JSON without
//! a bound.

mod bulk;
mod error;
mod limits;
mod otlp;
mod prometheus;
mod tables;
mod text;
mod trace_tree;

pub use bulk::{
    BulkAction, BulkFailure, BulkItem, BulkRequest, BulkTable, ELASTIC_VERSION, cluster_health, cluster_info,
    cluster_license,
};
pub use error::{FormatError, REPORTED_REASONS_MAX, RejectedRecords};
pub use limits::TelemetryLimits;
pub use otlp::{OtlpEncoding, OtlpSignal, decode_logs, decode_metrics, decode_traces, success_body};
pub use prometheus::{RemoteWriteRows, RemoteWriteVersion, decode_remote_write};
pub use tables::{TableBatch, TableBatches, TelemetryTable};
pub use trace_tree::{TraceNode, TraceSpan, TraceTree, TraceTreeError, trace_spans};
