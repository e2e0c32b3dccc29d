//! The adapters: they carry MCP between sockets or pipes and a [`tidegate_mcp::Service`]. No SQL.

pub mod bridge;
pub mod http;
mod metrics;
mod spool;
pub mod stdio;

pub use metrics::Metrics;
