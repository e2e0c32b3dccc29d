//! MCP over Streamable HTTP in every revision that has it, over HTTP+SSE and over WebSocket; also REST, stored results,
//! rows that are sent, health and metrics.
//!
//! [MCP 2026-07-28, Streamable HTTP](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http)

mod answer;
mod authorization;
mod body;
mod browser_page;
mod caller;
mod connections;
mod cors;
mod data;
mod endpoints;
mod get;
mod health;
mod host_check;
mod http_sse;
mod listen;
mod mirrored_headers;
mod post;
mod protected_resource;
mod replay;
mod response;
mod rest;
mod results;
mod routes;
mod security_headers;
mod server;
mod session;
mod sse;
mod state;
mod telemetry;
mod transfer_encoding;
mod web_socket;
mod write_timeout;

pub use answer::problem_types;
pub use endpoints::is_reserved_toolset_name;
pub use protected_resource::{ProtectedResource, SharedProtectedResource};
pub use routes::router;
pub use server::{OptionsReloader, RunningServer, serve, serve_addresses};
pub use state::{EVENT_BYTES_MAX, HttpOptions, PeerAddress, ReadinessCheck};
