//! Transports: they carry MCP between sockets or pipes and a [`tidegate_mcp::McpService`]. They contain no SQL.

mod call_metrics;
pub mod http;
mod ingest_metrics;
mod mcp_connection;
mod metrics;
mod notifications;
mod outbox;
mod revalidation;
pub mod stdio;
pub mod tls;

pub use ingest_metrics::{FolderNumbers, IngestNumbers, IngestReader, IngestReading, ReceiverNumbers};
pub use metrics::{METRICS, MetricDescription, MetricType, Metrics};
