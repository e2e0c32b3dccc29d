//! Connects MCP clients to this server: prints what their configuration must say, or writes it there.
//!
//! [`snippet`] gives the text to paste, [`install`] puts the same entry into the client's file and
//! keeps everything else in it. What each client's documentation says is in `docs/clients.md`.

mod catalog;
mod connection;
mod edit;
mod entry;
mod error;
mod files;
mod install;
mod json_file;
mod json_text;
mod places;
mod snippet;
mod toml_file;

#[cfg(test)]
mod tests;

pub(crate) use catalog::Client;
pub(crate) use connection::{Bearer, Connection};
pub(crate) use install::{Installed, Outcome, install};
pub(crate) use places::{Places, Scope};
pub(crate) use snippet::snippet;
