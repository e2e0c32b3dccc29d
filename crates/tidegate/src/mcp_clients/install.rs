//! Writes the entry of a server into a client's configuration file, or renders it as text.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::catalog::{ClientFileFormat, McpClient};
use super::connection::{McpServerConnection, check_name};
use super::edit::{ClientConfigError, EditError, FileEdit};
use super::{files, json_file, toml_file};

/// Some editors write this at the start of a file; parsers reject it.
const BYTE_ORDER_MARK: &str = "\u{feff}";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Installation {
    pub(crate) outcome: InstallOutcome,
    pub(crate) path: PathBuf,
    pub(crate) backup: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InstallOutcome {
    Created,
    Added,
    Replaced,
    Unchanged,
}

/// Writes the entry `name` for `connection` into the file at `path`, and keeps its other content.
pub(crate) fn install(
    path: &Path,
    client: McpClient,
    name: &str,
    connection: &McpServerConnection,
) -> Result<Installation, ClientConfigError> {
    check_name(name)?;
    let entry = client.entry(connection)?;
    let file = files::resolve_links(path)?;
    let before = files::read(&file)?;
    let edit = edit_file(before.as_deref().unwrap_or_default(), client, name, &entry).map_err(|refusal| {
        ClientConfigError::Refused { path: path.to_owned(), refusal, snippet: render_document(client, name, &entry) }
    })?;
    let (outcome, after) = match edit {
        FileEdit::Unchanged => {
            return Ok(Installation { outcome: InstallOutcome::Unchanged, path: path.to_owned(), backup: None });
        }
        FileEdit::Added(after) if before.is_none() => (InstallOutcome::Created, after),
        FileEdit::Added(after) => (InstallOutcome::Added, after),
        FileEdit::Replaced(after) => (InstallOutcome::Replaced, after),
    };
    let backup = files::replace(&file, before.as_deref(), after.as_bytes(), connection.holds_secret())?;
    Ok(Installation { outcome, path: path.to_owned(), backup })
}

fn edit_file(before: &[u8], client: McpClient, name: &str, entry: &Map<String, Value>) -> Result<FileEdit, EditError> {
    if before.len() as u64 > files::FILE_BYTES_MAX {
        return Err(EditError::TooLarge { bytes_max: files::FILE_BYTES_MAX });
    }
    let whole = std::str::from_utf8(before).map_err(|_| EditError::NotText)?;
    let text = whole.strip_prefix(BYTE_ORDER_MARK).unwrap_or(whole);
    let mark = &whole[..whole.len() - text.len()];
    let edit = match client.format() {
        _ if text.trim().is_empty() => FileEdit::Added(render_document(client, name, entry)),
        ClientFileFormat::Toml => toml_file::set_entry(text, client.section(), name, entry)?,
        format => json_file::set_entry(text, format, client.section(), name, entry)?,
    };
    Ok(match edit {
        FileEdit::Unchanged => FileEdit::Unchanged,
        FileEdit::Added(after) => FileEdit::Added(format!("{mark}{after}")),
        FileEdit::Replaced(after) => FileEdit::Replaced(format!("{mark}{after}")),
    })
}

pub(crate) fn snippet(
    client: McpClient,
    name: &str,
    connection: &McpServerConnection,
) -> Result<String, ClientConfigError> {
    check_name(name)?;
    Ok(render_document(client, name, &client.entry(connection)?))
}

fn render_document(client: McpClient, name: &str, entry: &Map<String, Value>) -> String {
    match client.format() {
        ClientFileFormat::Toml => toml_file::render_document(client.section(), name, entry),
        ClientFileFormat::Json | ClientFileFormat::JsonWithComments => {
            let whole = json!({ client.section(): { name: entry } });
            format!("{whole:#}\n")
        }
    }
}
