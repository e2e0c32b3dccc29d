//! Arrow Flight SQL as a transport: statements and catalog requests become calls of the registry.
//!
//! [Arrow Flight SQL](https://arrow.apache.org/docs/format/FlightSql.html)

mod answer;
mod caller;
mod catalog;
mod ingest;
mod ipc_messages;
mod message_size;
mod node_actions;
mod prepared_statements;
mod request_size;
mod server;
mod service;
mod sql_info;
mod state;
mod statement;
mod status;
mod ticket;
mod whole_body;

pub use self::server::{FlightOptions, RunningFlightServer, serve_flight};
