//! The folder that one process spills to.
//!
//! The process holds a lock on a file in the folder. When a process was killed, its folder remains, but not its lock.
//! The next process that spills below the same root removes the folder.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use uuid::Uuid;

const PREFIX: &str = "tidegate-spill-";
const LOCK_FILE: &str = "lock";
/// Another process may remove a new folder before it is locked.
const ATTEMPTS_MAX: usize = 16;

/// A folder that no other process uses. It is removed when this is dropped.
#[derive(Debug)]
pub(super) struct SpillFolder {
    path: PathBuf,
    _lock: File,
}

impl SpillFolder {
    /// Creates a folder in `root`, and removes those of processes that have ended.
    pub(super) fn create(root: &Path) -> io::Result<Self> {
        fs::create_dir_all(root)?;
        for _ in 0..ATTEMPTS_MAX {
            let path = root.join(format!("{PREFIX}{}", Uuid::new_v4()));
            create_private_folder(&path)?;
            if let Some(lock) = lock_folder(&path, true)? {
                let folder = Self { path, _lock: lock };
                folder.remove_abandoned(root);
                return Ok(folder);
            }
        }
        Err(io::Error::other("other processes remove each new folder"))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn remove_abandoned(&self, root: &Path) {
        let Ok(entries) = fs::read_dir(root) else { return };
        for path in entries.flatten().map(|entry| entry.path()).filter(|path| *path != self.path) {
            let is_spill_folder =
                path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(PREFIX));
            if !is_spill_folder || !has_same_owner(&path, &self.path) {
                continue;
            }
            // A folder that cannot be removed does no harm. One without a lock file may belong to a running process,
            // whose file something else removed.
            let _ = match lock_folder(&path, false) {
                Ok(Some(_lock)) => fs::remove_dir_all(&path),
                _ if !path.join(LOCK_FILE).exists() => fs::remove_dir(&path),
                _ => Ok(()),
            };
        }
    }
}

impl Drop for SpillFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Locks the folder at `path`; a new one needs its lock file. `None` if another process has locked or removed it.
fn lock_folder(path: &Path, is_new: bool) -> io::Result<Option<File>> {
    let lock_path = path.join(LOCK_FILE);
    let lock = match OpenOptions::new().write(true).create(is_new).truncate(false).open(&lock_path) {
        Ok(lock) => lock,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match lock.try_lock() {
        Ok(()) => Ok(lock_path.exists().then_some(lock)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn create_private_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Whether `path` is a folder, and not a link to one, of the owner of `own`. In a folder that all users share, another
/// user could place a folder with links to files of this user.
#[cfg(unix)]
fn has_same_owner(path: &Path, own: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let (Ok(other), Ok(own)) = (path.symlink_metadata(), own.symlink_metadata()) else { return false };
    other.is_dir() && other.uid() == own.uid()
}

#[cfg(not(unix))]
fn has_same_owner(path: &Path, _: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir())
}
