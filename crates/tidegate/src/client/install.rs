//! Puts a server's entry into a client's configuration file, or gives it as a text to paste.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::catalog::{ClientFileFormat, McpClient};
use super::connection::{McpServerConnection, check_name};
use super::edit::{EditError, FileEdit};
use super::error::ClientConfigError;
use super::{files, json_file, toml_file};

/// Some editors put this before the first character; parsers do not take it.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// What became of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Installation {
    pub(crate) outcome: InstallOutcome,
    pub(crate) path: PathBuf,
    /// Where the file as it was is kept.
    pub(crate) backup: Option<PathBuf>,
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InstallOutcome {
    /// There was no file.
    Created,
    /// The file had no entry of this name.
    Added,
    /// The file had another entry of this name.
    Replaced,
    /// The file had this entry.
    Unchanged,
}

/// Writes the entry `name` for `connection` into the file at `path` and keeps all else in it.
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

/// A whole file in the client's format that holds this server alone.
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
