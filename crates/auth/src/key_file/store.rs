//! Reads and replaces a key file as a whole, by one process at a time.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tidegate_core::private_file::{create_folder, set_owner_only};

use super::entry::{KeyEntry, KeyFileError};
use crate::secret::random_id;

/// The only version of the file format that this program writes and reads.
const VERSION: u64 = 1;
/// Bytes of a key file at most; ten thousand keys with many roles need less.
const BYTES_MAX: u64 = 16 * 1024 * 1024;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyFileContent {
    version: u64,
    keys: Vec<KeyEntry>,
}

/// Parsed first, because a later version may have any other format.
#[derive(Deserialize)]
struct KeyFileVersion {
    version: u64,
}

/// Empty if the file does not exist. Takes no lock, because files are only replaced as a whole.
pub(super) fn read(path: &Path) -> Result<Vec<KeyEntry>, KeyFileError> {
    let failed = |error| io_error("read", path, &error);
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut bytes = Vec::new();
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > BYTES_MAX {
        let problem = format!("the key file {} is larger than {BYTES_MAX} bytes", path.display());
        return Err(KeyFileError(problem));
    }
    parse(path, &bytes)
}

/// Changes the entries of the file under a lock. If `change` fails, the file is unchanged.
pub(super) fn update<T>(
    path: &Path,
    change: impl FnOnce(&mut Vec<KeyEntry>) -> Result<T, KeyFileError>,
) -> Result<T, KeyFileError> {
    // A symbolic link is kept: its target is replaced.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let failed = |action| move |error| io_error(action, path, &error);
    create_folder(folder_of(path)).map_err(failed("make the folder of"))?;
    let before = Ownership::read(path).map_err(failed("inspect"))?;
    // The file itself cannot carry the lock, because it is replaced. The lock ends with `lock`.
    let lock = open_lock(&with_suffix(path, ".lock"), before.as_ref()).map_err(failed("lock"))?;
    lock.lock().map_err(failed("lock"))?;
    let mut entries = read(path)?;
    let outcome = change(&mut entries)?;
    replace(path, entries, before.as_ref()).map_err(failed("write"))?;
    Ok(outcome)
}

/// Opens the lock file. A new one gets the owner of the key file, so that everyone who may replace that file can lock
/// it. An existing one keeps its owner, because it may be a link to a file of another user.
fn open_lock(path: &Path, owner: Option<&Ownership>) -> io::Result<File> {
    match set_owner_only(OpenOptions::new().create_new(true).write(true)).open(path) {
        Ok(lock) => {
            if let Some(owner) = owner {
                owner.try_chown(&lock);
            }
            Ok(lock)
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => OpenOptions::new().write(true).open(path),
        Err(error) => Err(error),
    }
}

fn io_error(action: &str, path: &Path, error: &io::Error) -> KeyFileError {
    KeyFileError(format!("cannot {action} the key file {}: {error}", path.display()))
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Vec<KeyEntry>, KeyFileError> {
    let path = path.display();
    // The content is not quoted, because it may be another file with secrets.
    let malformed = |error: serde_json::Error| {
        let (line, column) = (error.line(), error.column());
        let problem = format!("{path} is not a valid key file: unexpected content at line {line}, column {column}");
        KeyFileError(problem)
    };
    let version = serde_json::from_slice::<KeyFileVersion>(bytes).map_err(malformed)?.version;
    if version != VERSION {
        let problem =
            format!("the key file {path} has the version {version}; this program reads only version {VERSION}");
        return Err(KeyFileError(problem));
    }
    let keys = serde_json::from_slice::<KeyFileContent>(bytes).map_err(malformed)?.keys;
    let mut ids = BTreeSet::new();
    if let Some(entry) = keys.iter().find(|entry| !ids.insert(&entry.id)) {
        return Err(KeyFileError(format!("the key file {path} holds two keys with the id {:?}", entry.id)));
    }
    Ok(keys)
}

/// Writes a new file beside the old one, syncs it, and renames it over the old one, so that a crash leaves one of the
/// two. It keeps the owner of the old file (`before`): the user of the node may differ from the user who changes the
/// keys.
fn replace(path: &Path, keys: Vec<KeyEntry>, before: Option<&Ownership>) -> io::Result<()> {
    let mut bytes = serde_json::to_vec_pretty(&KeyFileContent { version: VERSION, keys })?;
    bytes.push(b'\n');
    let mark = random_id().map_err(|_| io::Error::other("the system provides no random bytes"))?;
    let new = with_suffix(path, &format!(".{mark}.new"));
    let written = write_new(&new, &bytes, before).and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        let _ = fs::remove_file(&new);
        return written;
    }
    // Not every file system can sync a folder; the new file is in place anyway.
    let _ = File::open(folder_of(path)).and_then(|folder| folder.sync_all());
    Ok(())
}

fn write_new(path: &Path, bytes: &[u8], owner: Option<&Ownership>) -> io::Result<()> {
    let mut file = set_owner_only(OpenOptions::new().create_new(true).write(true)).open(path)?;
    file.write_all(bytes)?;
    if let Some(owner) = owner {
        owner.apply_to(&file)?;
    }
    file.sync_all()
}

fn with_suffix(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    name.into()
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

pub(super) struct Ownership {
    user: u32,
    group: u32,
    mode: u32,
}

impl Ownership {
    /// Without the executable bits.
    const MODE_BITS: u32 = 0o666;
    const OWNER_ONLY: u32 = 0o600;

    /// The ownership of the file at `path`; `None` if the file does not exist.
    pub(super) fn read(path: &Path) -> io::Result<Option<Self>> {
        use std::os::unix::fs::MetadataExt as _;

        match std::fs::metadata(path) {
            Ok(metadata) => {
                let mode = metadata.mode() & Self::MODE_BITS;
                Ok(Some(Self { user: metadata.uid(), group: metadata.gid(), mode }))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

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

        let has_both = fchown(file, Some(self.user), Some(self.group)).is_ok();
        has_both || fchown(file, None, Some(self.group)).is_ok()
    }
}
