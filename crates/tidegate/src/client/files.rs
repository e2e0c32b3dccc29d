//! Reads a configuration file and replaces it so that neither a crash nor a second writer loses it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use super::error::ClientConfigError;

/// No configuration is larger; some clients keep their history beside their servers.
pub(super) const FILE_BYTES_MAX: u64 = 64 << 20;
/// How many links may lead from one to the next before they are taken for a circle.
const LINKS_MAX: usize = 40;
/// How many backups of one file are kept.
const BACKUPS_MAX: u32 = 1_000;

/// The file itself, where `path` is a link to it: replacing the link would part it from its target.
pub(super) fn resolve_links(path: &Path) -> Result<PathBuf, ClientConfigError> {
    let mut file = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(target) = fs::read_link(&file) else { return Ok(file) };
        file = file.parent().unwrap_or(Path::new("")).join(target);
    }
    Err(ClientConfigError::Read { path: path.to_owned(), source: io::Error::other("its links lead in a circle") })
}

/// What the file holds, one byte more than [`FILE_BYTES_MAX`] at most; nothing if there is none.
pub(super) fn read(file: &Path) -> Result<Option<Vec<u8>>, ClientConfigError> {
    let mut bytes = Vec::new();
    let read = File::open(file).and_then(|open| open.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes));
    match read {
        Ok(_) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(ClientConfigError::Read { path: file.to_owned(), source }),
    }
}

/// Puts `after` in the place of `before` and says where `before` is kept. `secret` closes the file
/// to everybody but its owner.
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
    // It is removed again unless it becomes the file.
    let temporary = tempfile::Builder::new()
        .prefix(".")
        .suffix(".tmp")
        .make_in(folder, |path| write_new(path, after, &access))
        .map_err(|source| cannot_write(file, source))?;
    // Clients write these files too, and one of them may just have done so.
    if read(file)?.as_deref() != before {
        return Err(ClientConfigError::ChangedMeanwhile { path: file.to_owned() });
    }
    let backup = before.map(|before| back_up(file, before)).transpose()?;
    temporary.persist(file).map_err(|error| cannot_write(file, error.error))?;
    Ok(backup)
}

/// Keeps `content` beside `file` under the first free name, with the permissions of `file`.
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

/// Creates `path` with its access in place before the first byte is, and removes what it cannot finish.
fn write_new(path: &Path, content: &[u8], access: &FilePermissions) -> io::Result<()> {
    let mut open = access.create_new(path)?;
    let written = open.write_all(content).and_then(|()| access.apply_to(&open)).and_then(|()| open.sync_all());
    if written.is_err() {
        let _ = fs::remove_file(path);
    }
    written
}

/// Who may read and write a file, as the one that it replaces had it.
#[cfg(unix)]
struct FilePermissions {
    mode: u32,
    /// The owner and group of the file to be replaced.
    owner: Option<(u32, u32)>,
}

#[cfg(unix)]
impl FilePermissions {
    const OWNER_ONLY: u32 = 0o600;
    /// What the system takes the user's mask from.
    const ANYBODY: u32 = 0o666;

    fn read_from(file: &Path, secret: bool) -> io::Result<Self> {
        use std::os::unix::fs::MetadataExt as _;

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
        use std::os::unix::fs::OpenOptionsExt as _;

        // Write access for the owner is for this write; `apply_to` sets the final permissions.
        let mode = if self.owner.is_some() { (self.mode & Self::OWNER_ONLY) | 0o200 } else { self.mode };
        OpenOptions::new().write(true).create_new(true).mode(mode).open(path)
    }

    fn apply_to(&self, file: &File) -> io::Result<()> {
        use std::os::unix::fs::PermissionsExt as _;

        let Some((user, group)) = self.owner else { return Ok(()) };
        // Matters to an administrator who edits a user's file; others may not give files away, nor need to.
        let _ = std::os::unix::fs::fchown(file, Some(user), Some(group));
        file.set_permissions(fs::Permissions::from_mode(self.mode))
    }
}

/// The permissions of a file: on this system, those of its folder.
#[cfg(not(unix))]
struct FilePermissions;

#[cfg(not(unix))]
impl FilePermissions {
    fn read_from(_file: &Path, _secret: bool) -> io::Result<Self> {
        Ok(Self)
    }

    fn create_new(&self, path: &Path) -> io::Result<File> {
        OpenOptions::new().write(true).create_new(true).open(path)
    }

    fn apply_to(&self, _file: &File) -> io::Result<()> {
        Ok(())
    }
}
