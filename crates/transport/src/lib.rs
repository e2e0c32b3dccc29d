//! Transports: they carry MCP between sockets or pipes and a [`tidegate_mcp::McpService`]. They contain no SQL.

pub mod http;
mod mcp_connection;
mod metrics;
mod outbox;
mod revalidation;
pub mod stdio;
pub mod tls;

pub use metrics::{
    FolderNumbers, IngestNumbers, IngestReader, IngestReading, METRICS, MetricDescription, MetricType, Metrics,
    ReceiverNumbers,
};
