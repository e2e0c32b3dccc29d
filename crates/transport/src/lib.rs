//! The adapters: they carry MCP between sockets or pipes and a [`tidegate_mcp::Service`]. No SQL.

mod batch;
pub mod bridge;
mod conversation;
pub mod http;
mod lines;
mod listening;
mod metrics;
mod outbox;
mod spool;
mod standing;
pub mod stdio;
pub mod tls;

pub use metrics::Metrics;
