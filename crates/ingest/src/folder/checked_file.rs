//! Small files with a checksum: a text, a space, and its CRC-32 in hexadecimal digits. Each is replaced as a whole.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::Path;

use tidegate_core::private_file;

use super::IngestError;

/// What is in the place of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FileContent {
    Missing,
    /// Not what was written.
    Damaged,
    Text(String),
}

/// Reads a file without its checksum.
pub(crate) fn read(path: &Path) -> Result<FileContent, IngestError> {
    let content = match read_unchecked(path)? {
        FileContent::Text(content) => content,
        other => return Ok(other),
    };
    let text = content.rsplit_once(' ').filter(|(text, checksum)| *checksum == checksum_of(text));
    Ok(text.map_or(FileContent::Damaged, |(text, _)| FileContent::Text(text.to_owned())))
}

/// Reads a file as it is.
pub(crate) fn read_unchecked(path: &Path) -> Result<FileContent, IngestError> {
    match std::fs::read_to_string(path) {
        Ok(content) => Ok(FileContent::Text(content)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(FileContent::Missing),
        Err(error) if matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::IsADirectory) => {
            Ok(FileContent::Damaged)
        }
        Err(error) => Err(IngestError::io("read", path)(error)),
    }
}

/// Writes a text with its checksum.
pub(crate) fn write(path: &Path, text: &str) -> std::io::Result<()> {
    write_unchecked(path, &format!("{text} {}", checksum_of(text)))
}

/// Writes a file, which has its name only when it is complete and on disk.
pub(crate) fn write_unchecked(path: &Path, content: &str) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".new");
    private_file::create(temporary.as_ref())
        .and_then(|mut file| file.write_all(content.as_bytes()).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&temporary, path))
        .and_then(|()| File::open(folder)?.sync_all())
}

/// The CRC-32 of a text, as files have it.
pub(crate) fn checksum_of(text: &str) -> String {
    format!("{:08x}", crc32fast::hash(text.as_bytes()))
}
