//! The id of a log.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use tidegate_core::private_file;
use uuid::Uuid;

use super::IngestError;

/// The id of the log. It is in the folder of the log, so that a log that begins again has another one: its sequence
/// numbers would be those of rows that the Delta tables have already.
const ID_FILE: &str = "id";

/// The id of the log, if it has one.
pub(crate) fn read_id(folder: &Path) -> Result<Option<String>, IngestError> {
    let path = folder.join(ID_FILE);
    match std::fs::read_to_string(&path) {
        Ok(id) => Ok(Some(id.trim().to_owned()).filter(|id| !id.is_empty())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(IngestError::io("read", &path)(error)),
    }
}

/// As [`read_id`]. A new log gets an id.
pub(crate) fn read_or_create_id(folder: &Path) -> Result<String, IngestError> {
    if let Some(id) = read_id(folder)? {
        return Ok(id);
    }
    let path = folder.join(ID_FILE);
    private_file::create_folder(folder).map_err(IngestError::io("create", folder))?;
    let entries = std::fs::read_dir(folder).map_err(IngestError::io("list", folder))?;
    let has_log = entries.flatten().any(|entry| entry.path().extension().is_some_and(|end| end == "log"));
    if has_log {
        let missing = std::io::Error::other("it is missing, and the log has segments: restore it from a backup");
        return Err(IngestError::io("read", &path)(missing));
    }
    let id = format!("tidegate-{}", Uuid::new_v4());
    let temporary = folder.join("id.new");
    private_file::create(&temporary)
        .and_then(|mut file| file.write_all(id.as_bytes()).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&temporary, &path))
        .and_then(|()| File::open(folder)?.sync_all())
        .map_err(IngestError::io("write", &path))?;
    Ok(id)
}
