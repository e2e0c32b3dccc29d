//! What the files of a configuration held when they were looked at: only a difference is a change.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Of a file this much is compared; none that is read may be larger.
const BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Files and what they held. Contents are compared by a hash, so that no secret is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FileHashes(BTreeMap<PathBuf, Option<u64>>);

impl FileHashes {
    /// Looks at the file at `path`, unless that was done already. To be called before the file is read: a change in
    /// between is then seen later, and never missed.
    pub(crate) fn record(&mut self, path: &Path) {
        if let Entry::Vacant(vacant) = self.0.entry(path.to_owned()) {
            vacant.insert(hash_file(path));
        }
    }

    /// Adds the files of `other` that were not looked at yet.
    pub(crate) fn merge(&mut self, other: Self) {
        for (path, content) in other.0 {
            self.0.entry(path).or_insert(content);
        }
    }

    /// The same files as they are now.
    #[must_use]
    pub(crate) fn rehash(&self) -> Self {
        Self(self.0.keys().map(|path| (path.clone(), hash_file(path))).collect())
    }

    /// The same files, those of `older` as that saw them.
    #[must_use]
    pub(crate) fn with_hashes_of(self, older: &Self) -> Self {
        let seen = self.0.into_iter().map(|(path, content)| {
            let content = older.0.get(&path).copied().unwrap_or(content);
            (path, content)
        });
        Self(seen.collect())
    }

    /// The files.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.keys().map(PathBuf::as_path)
    }
}

/// A hash of what the file at `path` holds; none if there is no such file. What is no file (a pipe) is never waited for.
fn hash_file(path: &Path) -> Option<u64> {
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(BYTES_MAX).read_to_end(&mut bytes).ok()?;
    let mut hasher = DefaultHasher::new();
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
        let mut seen = FileHashes::default();
        seen.record(&file);
        seen.record(&absent);
        assert_eq!(seen.rehash(), seen);
        std::fs::write(&file, "2").unwrap();
        seen.record(&file);
        assert_ne!(seen.rehash(), seen, "the second look changes nothing");
        let mut next = FileHashes::default();
        next.record(&file);
        next.record(&further);
        let next = next.with_hashes_of(&seen);
        assert_eq!(next.paths().collect::<Vec<_>>(), [&*file, &*further]);
        assert_ne!(next.rehash(), next);
        let seen = seen.rehash();
        std::fs::write(&absent, "").unwrap();
        assert_ne!(seen.rehash(), seen, "one that appears has changed");
    }
}
