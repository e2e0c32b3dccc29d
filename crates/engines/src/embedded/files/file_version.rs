//! The version of a file at the time it was probed, to compare with the file that is opened later.
//!
//! Files are often replaced while they are served: by an atomic rename, or by rewriting them. Header, types and
//! positions of one file are invalid for another file with the same name. So they apply only if the open file is the
//! same file; otherwise the query is planned again. File systems reuse inode numbers and timestamps, so the beginning
//! of a text file is compared as well.

use std::fs::{File, Metadata};
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Read, Seek};
use std::time::SystemTime;

const BEGINNING_BYTES_MAX: u64 = 16 << 10;

/// The version of a file, from its metadata, without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FileVersion {
    pub(crate) bytes: u64,
    pub(crate) modified: SystemTime,
    /// Inode number and time of the last change. Zero if the system has none.
    identity: (u64, i64, i64),
}

impl FileVersion {
    pub(crate) fn from_metadata(metadata: &Metadata) -> Self {
        Self {
            bytes: metadata.len(),
            modified: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
            identity: identity_of(metadata),
        }
    }

    /// Identifies the file, whatever its name is. `None` if the system has no such identifier.
    pub(crate) fn file_id(&self) -> Option<u64> {
        (self.identity.0 != 0).then_some(self.identity.0)
    }

    pub(crate) fn may_have_grown_to(&self, later: &Self) -> bool {
        self.identity.0 == later.identity.0 && self.bytes <= later.bytes
    }
}

#[cfg(unix)]
fn identity_of(metadata: &Metadata) -> (u64, i64, i64) {
    use std::os::unix::fs::MetadataExt;
    (metadata.ino(), metadata.ctime(), metadata.ctime_nsec())
}

#[cfg(not(unix))]
fn identity_of(_metadata: &Metadata) -> (u64, i64, i64) {
    (0, 0, 0)
}

/// Identifies a probed file: its version, and the beginning of a text that may grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileIdentity {
    pub(crate) version: FileVersion,
    /// Length and hash of the beginning, for files that may grow.
    beginning: Option<(u64, u64)>,
}

impl FileIdentity {
    /// For a file whose recorded positions are only valid if it does not change at all.
    pub(crate) fn exact(version: FileVersion) -> Self {
        Self { version, beginning: None }
    }

    /// For a file that was not read, and at whose end rows may be added later.
    pub(crate) fn growing(version: FileVersion) -> Self {
        Self { version, beginning: Some((0, DefaultHasher::new().finish())) }
    }

    /// Whether `metadata` is that of the probed file, which may have another name now.
    pub(crate) fn is_same_file(&self, metadata: &Metadata) -> bool {
        self.version.may_have_grown_to(&FileVersion::from_metadata(metadata))
    }

    /// Whether the open `file` begins with what was probed, and is at least as long. Another file may be a copy.
    pub(crate) fn is_copy(&self, file: &File) -> io::Result<bool> {
        let Some((bytes, hash)) = self.beginning.filter(|(bytes, _)| *bytes > 0) else { return Ok(false) };
        Ok(file.metadata()?.len() >= self.version.bytes && hash_beginning(file, bytes)? == hash)
    }

    /// The identity of an open file. With `may_grow`, rows may be added at its end later. Rewinds the file.
    pub(crate) fn from_file(file: &File, may_grow: bool) -> io::Result<Self> {
        let version = FileVersion::from_metadata(&file.metadata()?);
        let beginning = if may_grow {
            let bytes = version.bytes.min(BEGINNING_BYTES_MAX);
            Some((bytes, hash_beginning(file, bytes)?))
        } else {
            None
        };
        Ok(Self { version, beginning })
    }

    /// Whether the open `file` is still the probed one. The file must be at its beginning, and is there again
    /// afterwards.
    pub(crate) fn matches_file(&self, file: &File) -> io::Result<bool> {
        let now = FileVersion::from_metadata(&file.metadata()?);
        match self.beginning {
            None => Ok(now == self.version),
            Some((bytes, hash)) => Ok(self.version.may_have_grown_to(&now) && hash_beginning(file, bytes)? == hash),
        }
    }
}

/// The hash of the first `bytes` bytes. A shorter file has another hash.
fn hash_beginning(mut file: &File, bytes: u64) -> io::Result<u64> {
    let mut hasher = DefaultHasher::new();
    let mut buffer = Vec::with_capacity(usize::try_from(bytes).unwrap_or_default());
    file.rewind()?;
    file.take(bytes).read_to_end(&mut buffer)?;
    file.rewind()?;
    hasher.write(&buffer);
    Ok(hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn accepts_grown_file_and_rejects_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        std::fs::write(&path, "a,b\n1,2\n").unwrap();
        let open = || File::open(&path).unwrap();
        let (text, exact) =
            (FileIdentity::from_file(&open(), true).unwrap(), FileIdentity::from_file(&open(), false).unwrap());
        assert!(text.matches_file(&open()).unwrap() && exact.matches_file(&open()).unwrap());

        std::fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"3,4\n").unwrap();
        assert!(text.matches_file(&open()).unwrap());
        assert!(!exact.matches_file(&open()).unwrap());

        std::fs::write(&path, "b,a\n1,2\n3,4\n5,6\n").unwrap();
        assert!(!text.matches_file(&open()).unwrap(), "written anew, and longer");
        let other = folder.path().join("b.csv");
        std::fs::write(&other, "a,b\n1,2\n3,4\n").unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert!(!text.matches_file(&open()).unwrap(), "another file, though it begins alike");
    }
}
