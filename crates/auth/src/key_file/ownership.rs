//! Owner, group and mode of a file, which a replaced file passes on to its replacement.

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
    /// Without the executable bits.
    const MODE_BITS: u32 = 0o666;
    const OWNER_ONLY: u32 = 0o600;

    /// The ownership of the file at `path`; `None` if the file does not exist.
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

    /// Gives `file` the same owner, group and mode.
    pub(super) fn apply_to(&self, file: &File) -> io::Result<()> {
        use std::os::unix::fs::PermissionsExt as _;

        let has_same_group = self.try_chown(file);
        // A different group must not gain access.
        let mode = if has_same_group { self.mode } else { self.mode & Self::OWNER_ONLY };
        file.set_permissions(std::fs::Permissions::from_mode(mode))
    }

    /// Gives `file` the same owner and group if this process may change them. An administrator may; other users already
    /// own the file. Returns whether the group is the same.
    pub(super) fn try_chown(&self, file: &File) -> bool {
        use std::os::unix::fs::fchown;

        let is_given = fchown(file, Some(self.user), Some(self.group)).is_ok();
        is_given || fchown(file, None, Some(self.group)).is_ok()
    }
}

/// Other systems: access follows from the folder.
#[cfg(not(unix))]
pub(super) struct Ownership;

#[cfg(not(unix))]
impl Ownership {
    pub(super) fn read(_path: &Path) -> io::Result<Option<Self>> {
        Ok(None)
    }

    pub(super) fn apply_to(&self, _file: &File) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn try_chown(&self, _file: &File) -> bool {
        true
    }
}
