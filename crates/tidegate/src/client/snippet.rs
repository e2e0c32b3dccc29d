//! The text to paste into a client's configuration.

use serde_json::{Map, Value, json};

use super::catalog::{Client, Format};
use super::connection::{Connection, check_name};
use super::error::Error;
use super::toml_file;

/// A whole file in the client's format that holds this server alone.
pub(crate) fn snippet(client: Client, name: &str, connection: &Connection) -> Result<String, Error> {
    check_name(name)?;
    Ok(document(client, name, &client.entry(connection)?))
}

pub(super) fn document(client: Client, name: &str, entry: &Map<String, Value>) -> String {
    match client.format() {
        Format::Toml => toml_file::document(client.section(), name, entry),
        Format::Json | Format::JsonWithComments => {
            let whole = json!({ client.section(): { name: entry } });
            format!("{whole:#}\n")
        }
    }
}
