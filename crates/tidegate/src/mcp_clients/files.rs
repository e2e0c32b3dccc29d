//! Reads and replaces configuration files. Neither a crash nor a concurrent writer loses the content.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::edit::ClientConfigError;

/// Some clients keep their history in the same file.
pub(super) const FILE_BYTES_MAX: u64 = 64 << 20;
/// Symbolic links in a row; more are taken for a circle.
const LINKS_MAX: usize = 40;
const BACKUPS_MAX: u32 = 1_000;

/// The target of `path`, if it is a link: replacing the link would detach it from its target.
pub(super) fn resolve_links(path: &Path) -> Result<PathBuf, ClientConfigError> {
    let mut file = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(target) = fs::read_link(&file) else { return Ok(file) };
        file = file.parent().unwrap_or(Path::new("")).join(target);
    }
    Err(ClientConfigError::Read { path: path.to_owned(), source: io::Error::other("its links lead in a circle") })
}

/// The content, at most one byte more than [`FILE_BYTES_MAX`]; `None` if there is no file.
pub(super) fn read(file: &Path) -> Result<Option<Vec<u8>>, ClientConfigError> {
    let mut bytes = Vec::new();
    let read = File::open(file).and_then(|open| open.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes));
    match read {
        Ok(_) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(ClientConfigError::Read { path: file.to_owned(), source }),
    }
}

/// Replaces `before` by `after` and returns the path of the backup. With `secret`, only the owner can read the file.
pub(super) fn replace(
    file: &Path,
    before: Option<&[u8]>,
    after: &[u8],
    secret: bool,
) -> Result<Option<PathBuf>, ClientConfigError> {
    let cannot_write = |path: &Path, source| ClientConfigError::Write { path: path.to_owned(), source };
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(|source| cannot_write(folder, source))?;
    let access = FilePermissions::read_from(file, secret).map_err(|source| cannot_write(file, source))?;
    // It is removed unless it becomes the file.
    let temporary = tempfile::Builder::new()
        .prefix(".")
        .suffix(".tmp")
        .make_in(folder, |path| write_new(path, after, &access))
        .map_err(|source| cannot_write(file, source))?;
    // Clients write these files too.
    if read(file)?.as_deref() != before {
        return Err(ClientConfigError::ChangedMeanwhile { path: file.to_owned() });
    }
    let backup = before.map(|before| back_up(file, before)).transpose()?;
    temporary.persist(file).map_err(|error| cannot_write(file, error.error))?;
    Ok(backup)
}

fn back_up(file: &Path, content: &[u8]) -> Result<PathBuf, ClientConfigError> {
    let access = FilePermissions::read_from(file, false)
        .map_err(|source| ClientConfigError::Write { path: file.to_owned(), source })?;
    for number in 0..BACKUPS_MAX {
        let ending = if number == 0 { ".bak".to_owned() } else { format!(".bak.{number}") };
        let backup = sibling_path(file, &ending);
        match write_new(&backup, content, &access) {
            Ok(()) => return Ok(backup),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(source) => return Err(ClientConfigError::Write { path: backup, source }),
        }
    }
    Err(ClientConfigError::TooManyBackups { path: file.to_owned() })
}

fn sibling_path(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(ending);
    file.with_file_name(name)
}

/// Creates `path` with its permissions before the first byte is written, and removes it after an error.
fn write_new(path: &Path, content: &[u8], access: &FilePermissions) -> io::Result<()> {
    let mut open = access.create_new(path)?;
    let written = open.write_all(content).and_then(|()| access.apply_to(&open)).and_then(|()| open.sync_all());
    if written.is_err() {
        let _ = fs::remove_file(path);
    }
    written
}

struct FilePermissions {
    mode: u32,
    owner: Option<(u32, u32)>,
}

impl FilePermissions {
    const OWNER_ONLY: u32 = 0o600;
    /// The system subtracts the user's mask.
    const ANYBODY: u32 = 0o666;

    fn read_from(file: &Path, secret: bool) -> io::Result<Self> {
        let limit = if secret { Self::OWNER_ONLY } else { 0o7777 };
        match fs::metadata(file) {
            Ok(found) => Ok(Self { mode: found.mode() & limit, owner: Some((found.uid(), found.gid())) }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok(Self { mode: Self::ANYBODY & limit, owner: None })
            }
            Err(error) => Err(error),
        }
    }

    fn create_new(&self, path: &Path) -> io::Result<File> {
        // Write access for the owner is for this write; `apply_to` sets the final permissions.
        let mode = if self.owner.is_some() { (self.mode & Self::OWNER_ONLY) | 0o200 } else { self.mode };
        OpenOptions::new().write(true).create_new(true).mode(mode).open(path)
    }

    fn apply_to(&self, file: &File) -> io::Result<()> {
        let Some((user, group)) = self.owner else { return Ok(()) };
        // Only an administrator who edits a user's file may change the owner, and needs to.
        let _ = std::os::unix::fs::fchown(file, Some(user), Some(group));
        file.set_permissions(fs::Permissions::from_mode(self.mode))
    }
}
