//! Puts a server's entry into a client's configuration file.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::catalog::{Client, Format};
use super::connection::{Connection, check_name};
use super::edit::{Edit, Refusal};
use super::error::Error;
use super::{files, json_file, snippet, toml_file};

/// Some editors put this before the first character; parsers do not take it.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// What became of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Installed {
    pub(crate) outcome: Outcome,
    pub(crate) path: PathBuf,
    /// Where the file as it was is kept.
    pub(crate) backup: Option<PathBuf>,
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
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
pub(crate) fn install(path: &Path, client: Client, name: &str, connection: &Connection) -> Result<Installed, Error> {
    check_name(name)?;
    let entry = client.entry(connection)?;
    let file = files::behind_links(path)?;
    let before = files::read(&file)?;
    let edit = edit(before.as_deref().unwrap_or_default(), client, name, &entry).map_err(|refusal| Error::Refused {
        path: path.to_owned(),
        refusal,
        snippet: snippet::document(client, name, &entry),
    })?;
    let (outcome, after) = match edit {
        Edit::Unchanged => {
            return Ok(Installed { outcome: Outcome::Unchanged, path: path.to_owned(), backup: None });
        }
        Edit::Added(after) if before.is_none() => (Outcome::Created, after),
        Edit::Added(after) => (Outcome::Added, after),
        Edit::Replaced(after) => (Outcome::Replaced, after),
    };
    let backup = files::replace(&file, before.as_deref(), after.as_bytes(), connection.holds_secret())?;
    Ok(Installed { outcome, path: path.to_owned(), backup })
}

fn edit(before: &[u8], client: Client, name: &str, entry: &Map<String, Value>) -> Result<Edit, Refusal> {
    if before.len() as u64 > files::FILE_BYTES_MAX {
        return Err(Refusal::TooLarge { bytes_max: files::FILE_BYTES_MAX });
    }
    let whole = std::str::from_utf8(before).map_err(|_| Refusal::NotText)?;
    let text = whole.strip_prefix(BYTE_ORDER_MARK).unwrap_or(whole);
    let mark = &whole[..whole.len() - text.len()];
    let edit = match client.format() {
        _ if text.trim().is_empty() => Edit::Added(snippet::document(client, name, entry)),
        Format::Toml => toml_file::set(text, client.section(), name, entry)?,
        format => json_file::set(text, format, client.section(), name, entry)?,
    };
    Ok(match edit {
        Edit::Unchanged => Edit::Unchanged,
        Edit::Added(after) => Edit::Added(format!("{mark}{after}")),
        Edit::Replaced(after) => Edit::Replaced(format!("{mark}{after}")),
    })
}
