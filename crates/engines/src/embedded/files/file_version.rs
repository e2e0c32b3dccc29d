//! The version of a file at the time it was probed, to compare with the file that is opened later.
//!
//! Files are often replaced while they are served: by an atomic rename, or by rewriting them. Header, types and
//! positions of one file are invalid for another file with the same name. So they apply only if the open file is the
//! same file; otherwise the query is planned again. File systems reuse inode numbers and timestamps, so the beginning
//! of a text file is compared as well.
//!
//! Clocks of file systems tick: a file that is written twice within a tick has one time for both. A version that was
//! read so early equals no other, and what was read from the file is read again.

use std::fs::{File, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read, Seek};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

const BEGINNING_BYTES_MAX: u64 = 16 << 10;
/// Longer than a tick of a kernel, which takes at most 10 ms, and more if a virtual machine pauses.
const TICK: Duration = Duration::from_millis(50);
/// The tick of file systems that store whole seconds, such as FAT.
const COARSE_TICK: Duration = Duration::from_secs(2);

/// The version of a file or folder, from its metadata, without reading it. Two versions are equal only if the file
/// cannot have changed in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FileVersion {
    pub(crate) bytes: u64,
    pub(crate) modified: SystemTime,
    /// Device and inode number. Zero if the system has none.
    id: (u64, u64),
    /// The time of the last change, which no program can set; if the system has none, `modified`.
    changed: SystemTime,
    /// When this was read, if a later change may have the same time.
    unsettled_at: Option<SystemTime>,
}

impl FileVersion {
    pub(crate) fn from_metadata(metadata: &Metadata) -> Self {
        let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        let (id, changed) = identity_of(metadata).unwrap_or(((0, 0), modified));
        let now = SystemTime::now();
        let unsettled_at = may_change_unseen(changed, now).then_some(now);
        Self { bytes: metadata.len(), modified, id, changed, unsettled_at }
    }

    /// Whether each later change gives the file another version.
    pub(crate) fn is_settled(&self) -> bool {
        self.unsettled_at.is_none()
    }

    /// Identifies the file, whatever its name is. `None` if the system has no such identifier.
    pub(crate) fn file_id(&self) -> Option<(u64, u64)> {
        (self.id.1 != 0).then_some(self.id)
    }

    pub(crate) fn is_on_device_of(&self, other: &Self) -> bool {
        self.id.0 == other.id.0
    }

    pub(crate) fn may_have_grown_to(&self, later: &Self) -> bool {
        self.id == later.id && self.bytes <= later.bytes
    }

    /// The metadata alone: equal to that of a later time, even if the file may have changed in between.
    pub(crate) fn metadata(self) -> Self {
        Self { unsettled_at: None, ..self }
    }

    /// A text that identifies the version, as versions of objects in a store are written.
    pub(crate) fn tag(&self) -> String {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    }
}

/// Whether a file that changed at `changed` may change after `now` and keep that time.
fn may_change_unseen(changed: SystemTime, now: SystemTime) -> bool {
    let second = changed.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let tick = if second.subsec_nanos() == 0 { COARSE_TICK } else { TICK };
    // The clock of another machine may be ahead.
    let distance = now.duration_since(changed).unwrap_or_else(|ahead| ahead.duration());
    distance < tick
}

#[cfg(unix)]
fn identity_of(metadata: &Metadata) -> Option<((u64, u64), SystemTime)> {
    use std::os::unix::fs::MetadataExt;
    let since_1970 = Duration::new(metadata.ctime().try_into().ok()?, metadata.ctime_nsec().try_into().ok()?);
    Some(((metadata.dev(), metadata.ino()), SystemTime::UNIX_EPOCH.checked_add(since_1970)?))
}

#[cfg(not(unix))]
fn identity_of(_metadata: &Metadata) -> Option<((u64, u64), SystemTime)> {
    None
}

/// A file or folder, and its version when it was scanned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathVersion {
    pub(crate) path: PathBuf,
    pub(crate) version: FileVersion,
    /// Whether it is on this machine, so that its metadata can be read at once.
    pub(crate) is_local: bool,
}

impl PathVersion {
    /// Whether it still has this version. Reads only metadata.
    pub(crate) fn is_unchanged(&self) -> bool {
        std::fs::metadata(&self.path).is_ok_and(|metadata| FileVersion::from_metadata(&metadata) == self.version)
    }
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
            None => Ok(now.metadata() == self.version.metadata()),
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

    #[test]
    fn a_version_is_settled_when_the_clock_has_moved_on() {
        let at = |millis: u64| SystemTime::UNIX_EPOCH + Duration::from_millis(millis);
        assert!(may_change_unseen(at(5_001), at(5_001)) && may_change_unseen(at(5_001), at(5_050)));
        assert!(!may_change_unseen(at(5_001), at(5_051)));
        assert!(may_change_unseen(at(5_000), at(6_999)), "whole seconds");
        assert!(!may_change_unseen(at(5_000), at(7_000)));
        assert!(may_change_unseen(at(5_001), at(4_999)), "the clock of another machine");
        assert!(!may_change_unseen(at(9_001), at(5_000)), "a clock that was wrong once");
    }

    #[test]
    fn versions_of_a_file_that_has_just_changed_are_not_equal() {
        let folder = tempfile::tempdir().unwrap();
        let metadata = std::fs::metadata(folder.path()).unwrap();
        let settled = FileVersion { unsettled_at: None, ..FileVersion::from_metadata(&metadata) };
        let at = |millis: u64| FileVersion {
            unsettled_at: Some(SystemTime::UNIX_EPOCH + Duration::from_millis(millis)),
            ..settled
        };
        assert!(at(1) != at(2) && at(1) != settled && at(1).tag() != at(2).tag());
        assert!(at(1).metadata() == at(2).metadata() && at(1).metadata() == settled);
    }
}
