//! Hashes of the files of a configuration, to detect changes of their contents.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::includes::matching_files;

/// Bytes of a file that are hashed; no file of a configuration may be larger.
const BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Files with the hashes of their contents, so that no secret is kept; `None` for a missing file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FileHashes(BTreeMap<PathBuf, Option<u64>>);

impl FileHashes {
    /// Hashes the file at `path` once. Called before the file is read, so that no later change is missed.
    pub(crate) fn record(&mut self, path: &Path) {
        if let Entry::Vacant(vacant) = self.0.entry(path.to_owned()) {
            vacant.insert(hash_file(path));
        }
    }

    pub(crate) fn merge(&mut self, other: Self) {
        for (path, hash) in other.0 {
            self.0.entry(path).or_insert(hash);
        }
    }

    #[must_use]
    pub(crate) fn rehash(&self) -> Self {
        Self(self.0.keys().map(|path| (path.clone(), hash_file(path))).collect())
    }

    /// The same files, with the hashes of `older` where it has one.
    #[must_use]
    pub(crate) fn with_hashes_of(self, older: &Self) -> Self {
        let hashes = self.0.into_iter().map(|(path, hash)| {
            let hash = older.0.get(&path).copied().unwrap_or(hash);
            (path, hash)
        });
        Self(hashes.collect())
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.keys().map(PathBuf::as_path)
    }
}

/// The hash of the file at `path`, or of the names of the files that the pattern `path` matches; `None` if there is no
/// such file. A pipe is not read, because that could block.
fn hash_file(path: &Path) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    match path.metadata() {
        Ok(metadata) if metadata.is_file() => {}
        Err(_) if path.to_str().is_some_and(|text| text.contains(['*', '?'])) => {
            matching_files(path).hash(&mut hasher);
            return Some(hasher.finish());
        }
        _ => return None,
    }
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(BYTES_MAX).read_to_end(&mut bytes).ok()?;
    bytes.hash(&mut hasher);
    Some(hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detects_changes_after_the_first_hash() {
        let folder = tempfile::tempdir().unwrap();
        let [file, absent, further] = ["file", "absent", "further"].map(|name| folder.path().join(name));
        std::fs::write(&file, "1").unwrap();
        let mut hashes = FileHashes::default();
        hashes.record(&file);
        hashes.record(&absent);
        assert_eq!(hashes.rehash(), hashes);
        std::fs::write(&file, "2").unwrap();
        hashes.record(&file);
        assert_ne!(hashes.rehash(), hashes, "a second record keeps the first hash");
        let mut next = FileHashes::default();
        next.record(&file);
        next.record(&further);
        let next = next.with_hashes_of(&hashes);
        assert_eq!(next.paths().collect::<Vec<_>>(), [&*file, &*further]);
        assert_ne!(next.rehash(), next);
        let hashes = hashes.rehash();
        std::fs::write(&absent, "").unwrap();
        assert_ne!(hashes.rehash(), hashes, "a file that appears has changed");
    }
}
