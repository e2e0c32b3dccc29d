//! The id of the log. It is in the folder of the log, so that a log that begins again has another one: its sequence numbers
//! would be those of rows that the Delta tables have already.
//!
//! Without it, it is unknown which records a Delta table has. So it is in two files with a checksum each, of which one is
//! enough. In `id` is the id alone, as other programs and earlier versions read it: its last part is the CRC-32 of the
//! others. An id of an earlier version has no such part. In `id.copy`, the CRC-32 follows the id.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::Path;

use tidegate_core::private_file;
use uuid::Uuid;

use super::IngestError;

const ID_FILE: &str = "id";
const COPY_FILE: &str = "id.copy";
const PREFIX: &str = "tidegate-";
/// The characters of a UUID.
const UUID_CHARACTERS: usize = 36;

/// What a file has.
#[derive(Debug, PartialEq, Eq)]
enum IdFile {
    Missing,
    /// Other content than an id.
    Damaged,
    Id {
        id: String,
        /// Whether it was compared with a checksum.
        is_checked: bool,
    },
}

/// Both files, as they are.
struct IdFiles {
    original: IdFile,
    copy: IdFile,
}

/// The id of the log, if it has one.
pub(crate) fn read_id(folder: &Path) -> Result<Option<String>, IngestError> {
    IdFiles::read(folder)?.id(folder)
}

/// As [`read_id`]. A new log gets an id, and a file that is damaged or missing is written again.
pub(crate) fn read_or_create_id(folder: &Path) -> Result<String, IngestError> {
    private_file::create_folder(folder).map_err(IngestError::io("create", folder))?;
    let files = IdFiles::read(folder)?;
    if let Some(id) = files.id(folder)? {
        files.repair(folder, &id);
        return Ok(id);
    }
    let path = folder.join(ID_FILE);
    let entries = std::fs::read_dir(folder).map_err(IngestError::io("list", folder))?;
    let has_log = entries.flatten().any(|entry| entry.path().extension().is_some_and(|end| end == "log"));
    if has_log {
        let missing = std::io::Error::other("it is missing, and the log has segments: restore it from a backup");
        return Err(IngestError::io("read", &path)(missing));
    }
    let id = new_id();
    write(folder, COPY_FILE, &copy_content(&id))
        .and_then(|()| write(folder, ID_FILE, &id))
        .map_err(IngestError::io("write", &path))?;
    Ok(id)
}

impl IdFiles {
    fn read(folder: &Path) -> Result<Self, IngestError> {
        let original = read_file(&folder.join(ID_FILE), parse_id)?;
        Ok(Self { original, copy: read_file(&folder.join(COPY_FILE), parse_copy)? })
    }

    /// The id that they have. One with a checksum counts more.
    fn id(&self, folder: &Path) -> Result<Option<String>, IngestError> {
        match (&self.original, &self.copy) {
            (IdFile::Id { id, is_checked: true }, _) | (_, IdFile::Id { id, .. }) | (IdFile::Id { id, .. }, _) => {
                Ok(Some(id.clone()))
            }
            (IdFile::Missing, IdFile::Missing) => Ok(None),
            _ => {
                let damaged =
                    format!("it is damaged, and {COPY_FILE} is damaged or missing: restore one of them from a backup");
                Err(IngestError::io("read", &folder.join(ID_FILE))(std::io::Error::other(damaged)))
            }
        }
    }

    /// Writes the files again that do not have `id`. Without them, the log can be used.
    fn repair(&self, folder: &Path, id: &str) {
        let has_id = |file: &IdFile| matches!(file, IdFile::Id { id: found, .. } if found == id);
        for (name, file, content) in
            [(ID_FILE, &self.original, id.to_owned()), (COPY_FILE, &self.copy, copy_content(id))]
        {
            if has_id(file) {
                continue;
            }
            let path = folder.join(name);
            // Logs of earlier versions have no copy.
            if *file != IdFile::Missing || name == ID_FILE {
                let file = path.display();
                tracing::warn!(%file, "a file with the id of the log is damaged or missing; the other one is copied");
            }
            if let Err(error) = write(folder, name, &content) {
                tracing::warn!(file = %path.display(), %error, "the id of the log could not be written");
            }
        }
    }
}

fn read_file(path: &Path, parse: impl FnOnce(&str) -> Option<IdFile>) -> Result<IdFile, IngestError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(parse(text.trim()).unwrap_or(IdFile::Damaged)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(IdFile::Missing),
        Err(error) if matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::IsADirectory) => Ok(IdFile::Damaged),
        Err(error) => Err(IngestError::io("read", path)(error)),
    }
}

fn parse_id(text: &str) -> Option<IdFile> {
    let (uuid, checksum) = text.strip_prefix(PREFIX)?.split_at_checked(UUID_CHARACTERS)?;
    Uuid::parse_str(uuid).ok()?;
    let is_checked = match checksum.strip_prefix('-') {
        None if checksum.is_empty() => false,
        Some(checksum) if checksum == checksum_of(&format!("{PREFIX}{uuid}")) => true,
        _ => return None,
    };
    Some(IdFile::Id { id: text.to_owned(), is_checked })
}

fn parse_copy(text: &str) -> Option<IdFile> {
    let (id, checksum) = text.split_once(' ')?;
    parse_id(id)?;
    (checksum == checksum_of(id)).then(|| IdFile::Id { id: id.to_owned(), is_checked: true })
}

fn new_id() -> String {
    let id = format!("{PREFIX}{}", Uuid::new_v4());
    let checksum = checksum_of(&id);
    format!("{id}-{checksum}")
}

fn copy_content(id: &str) -> String {
    format!("{id} {}", checksum_of(id))
}

fn checksum_of(text: &str) -> String {
    format!("{:08x}", crc32fast::hash(text.as_bytes()))
}

/// Writes a file, which has its name only when it is complete and on disk.
fn write(folder: &Path, name: &str, content: &str) -> std::io::Result<()> {
    let temporary = folder.join(format!("{name}.new"));
    private_file::create(&temporary)
        .and_then(|mut file| file.write_all(content.as_bytes()).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&temporary, folder.join(name)))
        .and_then(|()| File::open(folder)?.sync_all())
}
