//! Connects MCP clients to this server: prints what their configuration must say, or writes it there.
//!
//! [`snippet`] gives the text to paste, [`install`] puts the same entry into the client's file and
//! keeps everything else in it. What each client's documentation says is in `docs/reference/clients.md`.

mod catalog;
mod config_locations;
mod connection;
mod edit;
mod entry;
mod error;
mod files;
mod install;
mod json_file;
mod toml_file;

#[cfg(test)]
mod tests;

pub(crate) use catalog::McpClient;
pub(crate) use config_locations::{ConfigLocations, InstallScope};
pub(crate) use connection::{BearerSource, McpServerConnection};
pub(crate) use install::{InstallOutcome, Installation, install, snippet};
