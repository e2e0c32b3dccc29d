//! Tests of the whole, from what is asked for to what stands in the file.
//!
//! - `snippets`: each client with each kind of connection;
//! - `formats`: what is written, against a schema of what the client documents;
//! - `config_editing`: what becomes of the text around an entry;
//! - `installing`: what becomes of the file and of what is beside it;
//! - `places`: where the files are.

mod config_editing;
mod config_locations;
mod formats;
mod installing;
mod snippets;

use clap::ValueEnum as _;

use super::{BearerSource, McpClient, McpServerConnection};

fn stdio() -> McpServerConnection {
    let args = vec!["stdio".to_owned(), "shop=/data/shop".to_owned()];
    McpServerConnection::Stdio { command: "/usr/local/bin/tidegate".into(), args, env: Vec::new() }
}

fn stdio_with_env() -> McpServerConnection {
    let env = vec![("RUST_LOG".to_owned(), "info".to_owned())];
    McpServerConnection::Stdio { command: "/usr/local/bin/tidegate".into(), args: vec!["stdio".to_owned()], env }
}

fn http(bearer: Option<BearerSource>) -> McpServerConnection {
    McpServerConnection::Http { url: "https://node.example/mcp".to_owned(), bearer }
}

fn key() -> Option<BearerSource> {
    Some(BearerSource::Key("tg_secret".to_owned()))
}

fn variable() -> Option<BearerSource> {
    Some(BearerSource::Variable("TIDEGATE_KEY".to_owned()))
}

fn all_clients() -> impl Iterator<Item = McpClient> {
    McpClient::value_variants().iter().copied()
}

/// The name on the command line.
fn name(client: McpClient) -> String {
    client.to_possible_value().unwrap().get_name().to_owned()
}
