//! The text to paste into a client's configuration.

use serde_json::{Map, Value, json};

use super::catalog::{ClientFileFormat, McpClient};
use super::connection::{McpServerConnection, check_name};
use super::error::ClientConfigError;
use super::toml_file;

/// A whole file in the client's format that holds this server alone.
pub(crate) fn snippet(
    client: McpClient,
    name: &str,
    connection: &McpServerConnection,
) -> Result<String, ClientConfigError> {
    check_name(name)?;
    Ok(render_document(client, name, &client.entry(connection)?))
}

pub(super) fn render_document(client: McpClient, name: &str, entry: &Map<String, Value>) -> String {
    match client.format() {
        ClientFileFormat::Toml => toml_file::render_document(client.section(), name, entry),
        ClientFileFormat::Json | ClientFileFormat::JsonWithComments => {
            let whole = json!({ client.section(): { name: entry } });
            format!("{whole:#}\n")
        }
    }
}
