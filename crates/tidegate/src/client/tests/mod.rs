//! Tests of the whole, from what is asked for to what stands in the file.
//!
//! - `snippets`: each client with each kind of connection;
//! - `formats`: what is written, against a schema of what the client documents;
//! - `editing`: what becomes of the text around an entry;
//! - `installing`: what becomes of the file and of what is beside it;
//! - `places`: where the files are.

mod editing;
mod formats;
mod installing;
mod places;
mod snippets;

use super::{Bearer, Connection};

fn stdio() -> Connection {
    let args = vec!["stdio".to_owned(), "shop=/data/shop".to_owned()];
    Connection::Stdio { command: "/usr/local/bin/tidegate".into(), args, env: Vec::new() }
}

fn stdio_with_env() -> Connection {
    let env = vec![("RUST_LOG".to_owned(), "info".to_owned())];
    Connection::Stdio { command: "/usr/local/bin/tidegate".into(), args: vec!["stdio".to_owned()], env }
}

fn http(bearer: Option<Bearer>) -> Connection {
    Connection::Http { url: "https://node.example/mcp".to_owned(), bearer }
}

fn key() -> Option<Bearer> {
    Some(Bearer::Key("tg_secret".to_owned()))
}

fn variable() -> Option<Bearer> {
    Some(Bearer::Variable("TIDEGATE_KEY".to_owned()))
}
