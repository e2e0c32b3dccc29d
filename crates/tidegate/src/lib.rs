//! Tidegate, a data server for the Model Context Protocol: its binary and its library.
//!
//! A host program builds a [`Node`] with its own databases and tools and serves it over stdio or Streamable HTTP:
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use tidegate::runtime::{Answer, Tool, handler_fn};
//! use tidegate::Node;
//!
//! let hello = handler_fn(|_call| async { Ok(Answer::text("hello")) });
//! let node = Node::builder().entries(|entries| entries.tool(Tool::new("hello", "Says hello", hello))).build();
//! # let _: Arc<tidegate::mcp::McpService> = node.service().clone();
//! ```
//!
//! `docs/how-to/embed-in-a-program.md` says more.

mod application;
mod argument_secrets;
mod bearer;
mod command_error;
mod commands;
mod config;
mod database_argument;
mod download_flags;
mod file_limit;
mod flight;
mod idle_memory;
mod ingest;
mod init;
mod log_fields;
mod log_writer;
mod logging;
mod mcp_clients;
mod metric_recorder;
mod network_nodes;
mod node;
mod open_browser;
mod options;
mod output;
mod quantity;
mod readiness;
mod reload;
mod server_tables;
mod shutdown;
mod standard_stream;
mod startup_checks;
mod startup_help;
mod system_functions;
mod table_problems;
mod terminal;

/// The code of the page for host programs, as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/how-to/embed-in-a-program.md")]
pub struct PageForHostPrograms;

/// The command line, for the binary and for its reference page. Not part of the stable interface.
#[doc(hidden)]
pub mod command_line {
    pub use crate::command_error::CommandError;
    pub use crate::commands::Cli;
}

pub use node::{Node, NodeBuilder, ServedState};

pub use tidegate_auth as auth;
pub use tidegate_core as core;
pub use tidegate_engines as engines;
pub use tidegate_mcp as mcp;
pub use tidegate_query as query;
pub use tidegate_results as results;
pub use tidegate_runtime as runtime;
pub use tidegate_sql as sql;
pub use tidegate_tools as tools;
pub use tidegate_transport as transport;
