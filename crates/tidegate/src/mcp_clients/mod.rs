//! The configuration of MCP clients for this server, printed ([`snippet`]) or written ([`install`]).
//! `docs/reference/clients.md` summarises the clients' documentation.

mod catalog;
mod config_locations;
mod connection;
mod edit;
mod entry;
mod files;
mod install;
mod json_file;
mod start_command;
mod toml_file;

#[cfg(test)]
mod tests;

pub(crate) use catalog::McpClient;
pub(crate) use config_locations::{ConfigLocations, InstallScope};
pub(crate) use connection::{BearerValue, McpServerConnection};
pub(crate) use install::{InstallOutcome, Installation, install, snippet};
pub(crate) use start_command::StartCommand;
