//! What a file was when its columns were learned, to be compared with the file that is open later.
//!
//! A file is often replaced while it is served: by an atomic rename, or by writing it anew. Header, types and positions
//! that were learned from one file say nothing about the next one of the same name. So they count only for an open file
//! that is the same one; everything else is planned again. File numbers and clock ticks are used again by file systems,
//! so the beginning of a text file is compared as well.

use std::fs::File;
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Read, Seek};

use super::walk::Fingerprint;

/// Bytes at the beginning of a text file that are compared.
const BEGINNING_BYTES_MAX: u64 = 16 << 10;

/// What a file was when it was looked into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileIdentity {
    pub(crate) fingerprint: Fingerprint,
    /// Bytes at the beginning, and their hash, of a file that may grow.
    beginning: Option<(u64, u64)>,
}

impl FileIdentity {
    /// Of a file in which positions were learned, so that it must not change at all.
    pub(crate) fn exact(fingerprint: Fingerprint) -> Self {
        Self { fingerprint, beginning: None }
    }

    /// Of an open file; one that `may_grow` may have more rows at its end later. Reads from the beginning on.
    pub(crate) fn from_file(file: &File, may_grow: bool) -> io::Result<Self> {
        let fingerprint = Fingerprint::from_metadata(&file.metadata()?);
        let beginning = if may_grow {
            let bytes = fingerprint.bytes.min(BEGINNING_BYTES_MAX);
            Some((bytes, hash_beginning(file, bytes)?))
        } else {
            None
        };
        Ok(Self { fingerprint, beginning })
    }

    /// Whether what was learned holds for the open `file`, which is at its beginning, before and after.
    pub(crate) fn matches_file(&self, file: &File) -> io::Result<bool> {
        let now = Fingerprint::from_metadata(&file.metadata()?);
        match self.beginning {
            None => Ok(now == self.fingerprint),
            Some((bytes, hash)) => Ok(self.fingerprint.may_have_grown_to(&now) && hash_beginning(file, bytes)? == hash),
        }
    }
}

/// The hash of the first `bytes`; of a shorter file, another.
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
