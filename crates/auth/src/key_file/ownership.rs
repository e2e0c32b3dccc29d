//! Whose a file is and who may read it: what a file that is replaced hands on to the one in its place.

use std::fs::File;
use std::io;
use std::path::Path;

/// Owner, group and mode of a file.
#[cfg(unix)]
pub(super) struct Ownership {
    user: u32,
    group: u32,
    mode: u32,
}

#[cfg(unix)]
impl Ownership {
    /// Without what makes a program of a file.
    const MODE_BITS: u32 = 0o666;
    const OWNER_ONLY: u32 = 0o600;

    /// That of the file at `path`; none if there is no file.
    pub(super) fn read(path: &Path) -> io::Result<Option<Self>> {
        use std::os::unix::fs::MetadataExt as _;

        match std::fs::metadata(path) {
            Ok(found) => {
                let mode = found.mode() & Self::MODE_BITS;
                Ok(Some(Self { user: found.uid(), group: found.gid(), mode }))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Gives `file` to the same owner and group, open to the same readers.
    pub(super) fn apply_to(&self, file: &File) -> io::Result<()> {
        use std::os::unix::fs::PermissionsExt as _;

        let has_same_group = self.try_chown(file);
        // Another group than before must not come to read it.
        let mode = if has_same_group { self.mode } else { self.mode & Self::OWNER_ONLY };
        file.set_permissions(std::fs::Permissions::from_mode(mode))
    }

    /// Gives `file` to the same owner and group, as far as this process may: an administrator may, and others need
    /// not, since the file is theirs. Says whether it has the group.
    pub(super) fn try_chown(&self, file: &File) -> bool {
        use std::os::unix::fs::fchown;

        let is_given = fchown(file, Some(self.user), Some(self.group)).is_ok();
        is_given || fchown(file, None, Some(self.group)).is_ok()
    }
}

/// On this system whoever may in its folder.
#[cfg(not(unix))]
pub(super) struct Ownership;

#[cfg(not(unix))]
impl Ownership {
    pub(super) fn of(_path: &Path) -> io::Result<Option<Self>> {
        Ok(None)
    }

    pub(super) fn give(&self, _file: &File) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn give_away(&self, _file: &File) -> bool {
        true
    }
}
