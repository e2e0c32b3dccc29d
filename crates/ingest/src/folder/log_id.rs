//! The id of the log. It is in the folder of the log, so that a log that begins again has another one: its sequence numbers
//! would be those of rows that the Delta tables have already.
//!
//! Without it, it is unknown which records a Delta table has. So it is in two files with a checksum each, of which one is
//! enough. In `id` is the id alone, as other programs and earlier versions read it: its last part is the CRC-32 of the
//! others. An id of an earlier version has no such part. The file `id.copy` is written when the log has its first segment,
//! and so says that there has been one.

use std::path::Path;

use tidegate_core::private_file;
use uuid::Uuid;

use super::IngestError;
use super::checked_file::{self, FileContent, checksum_of};

const ID_FILE: &str = "id";
const COPY_FILE: &str = "id.copy";
const PREFIX: &str = "tidegate-";
/// The characters of a UUID.
const UUID_CHARACTERS: usize = 36;

/// The id of the log, if it has one.
pub(crate) fn read_id(folder: &Path) -> Result<Option<String>, IngestError> {
    let original = checked_file::read_unchecked(&folder.join(ID_FILE))?;
    let copy = checked_file::read(&folder.join(COPY_FILE))?;
    let id = match &original {
        FileContent::Text(text) => parse_id(text.trim()),
        FileContent::Missing | FileContent::Damaged => None,
    };
    let copied = match &copy {
        FileContent::Text(text) => parse_id(text),
        FileContent::Missing | FileContent::Damaged => None,
    };
    match (id, copied, original, copy) {
        (Some(LogId { id, is_checked: true }), ..) => Ok(Some(id)),
        // One with a checksum counts more.
        (_, Some(LogId { id, .. }), ..) | (Some(LogId { id, .. }), ..) => Ok(Some(id)),
        (None, None, FileContent::Missing, FileContent::Missing) => Ok(None),
        _ => {
            let damaged =
                format!("it is damaged, and {COPY_FILE} is damaged or missing: restore one of them from a backup");
            Err(IngestError::io("read", &folder.join(ID_FILE))(std::io::Error::other(damaged)))
        }
    }
}

/// As [`read_id`]. A new log gets an id, and a damaged file is written again.
pub(crate) fn read_or_create_id(folder: &Path) -> Result<String, IngestError> {
    private_file::create_folder(folder).map_err(IngestError::io("create", folder))?;
    let path = folder.join(ID_FILE);
    if let Some(id) = read_id(folder)? {
        let is_whole = matches!(checked_file::read_unchecked(&path)?, FileContent::Text(text) if text.trim() == id);
        if !is_whole {
            restore(&path, || checked_file::write_unchecked(&path, &id));
        }
        return Ok(id);
    }
    let entries = std::fs::read_dir(folder).map_err(IngestError::io("list", folder))?;
    let has_log = entries.flatten().any(|entry| entry.path().extension().is_some_and(|end| end == "log"));
    if has_log {
        let missing = std::io::Error::other("it is missing, and the log has segments: restore it from a backup");
        return Err(IngestError::io("read", &path)(missing));
    }
    let id = format!("{PREFIX}{}", Uuid::new_v4());
    let id = format!("{id}-{}", checksum_of(&id));
    checked_file::write_unchecked(&path, &id).map_err(IngestError::io("write", &path))?;
    Ok(id)
}

/// Whether there has been a segment, which the log has from then on.
pub(crate) fn had_segments(folder: &Path) -> bool {
    folder.join(COPY_FILE).exists()
}

/// Writes the copy of the id, unless it is there. The log has a segment.
pub(crate) fn write_copy(folder: &Path, id: &str) -> Result<(), IngestError> {
    let path = folder.join(COPY_FILE);
    match checked_file::read(&path)? {
        FileContent::Text(text) if text == id => {}
        FileContent::Missing => {
            if let Err(error) = checked_file::write(&path, id) {
                tracing::warn!(file = %path.display(), %error, "the copy of the id of the log could not be written");
            }
        }
        FileContent::Text(_) | FileContent::Damaged => restore(&path, || checked_file::write(&path, id)),
    }
    Ok(())
}

/// Writes a file again whose content is lost. The log can be used without it.
fn restore(path: &Path, write: impl FnOnce() -> std::io::Result<()>) {
    let file = path.display();
    match write() {
        Ok(()) => {
            tracing::warn!(%file, "a file with the id of the log was damaged, and is restored from the other one")
        }
        Err(error) => tracing::warn!(%file, %error, "a file with the id of the log is damaged, and cannot be written"),
    }
}

struct LogId {
    id: String,
    /// Whether it has a checksum itself.
    is_checked: bool,
}

fn parse_id(text: &str) -> Option<LogId> {
    let (uuid, checksum) = text.strip_prefix(PREFIX)?.split_at_checked(UUID_CHARACTERS)?;
    Uuid::parse_str(uuid).ok()?;
    let is_checked = match checksum.strip_prefix('-') {
        None if checksum.is_empty() => false,
        Some(checksum) if checksum == checksum_of(&format!("{PREFIX}{uuid}")) => true,
        _ => return None,
    };
    Some(LogId { id: text.to_owned(), is_checked })
}
