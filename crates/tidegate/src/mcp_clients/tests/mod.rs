//! Tests of the module as a whole:
//!
//! - `snippets`: each client with each kind of connection;
//! - `formats`: the written entries against a schema of the client's documentation;
//! - `config_editing`: the text around an entry;
//! - `installing`: the file and the files beside it;
//! - `config_locations`: the paths of the files.

mod config_editing;
mod config_locations;
mod formats;
mod installing;
mod snippets;

use clap::ValueEnum as _;

use super::{BearerValue, McpClient, McpServerConnection};

fn stdio() -> McpServerConnection {
    let args = vec!["stdio".to_owned(), "shop=/data/shop".to_owned()];
    McpServerConnection::Stdio { command: "/usr/local/bin/tidegate".into(), args }
}

fn http(bearer: Option<BearerValue>) -> McpServerConnection {
    McpServerConnection::Http { url: "https://node.example/mcp".to_owned(), bearer }
}

fn key() -> Option<BearerValue> {
    Some(BearerValue::Key("tg_secret".to_owned()))
}

fn variable() -> Option<BearerValue> {
    Some(BearerValue::Variable("TIDEGATE_KEY".to_owned()))
}

fn all_clients() -> impl Iterator<Item = McpClient> {
    McpClient::value_variants().iter().copied()
}

/// The name on the command line.
fn name(client: McpClient) -> String {
    client.to_possible_value().unwrap().get_name().to_owned()
}
