//! The path sandbox of a database: no file outside its paths is ever opened.
//!
//! A path is checked when it is found. After opening, the real path of the file is read from the operating system and
//! checked again, so replacing a symbolic link in between has no effect.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// The real paths that a database may read: folders with all their contents, and single files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathSandbox {
    allowed_paths: Vec<PathBuf>,
}

const OPEN_ATTEMPTS_MAX: usize = 16;

#[derive(Debug)]
pub(crate) enum OpenRefusal {
    /// It is outside the paths of the database, possibly behind a symbolic link.
    Outside,
    /// It is a device, a pipe or a folder.
    NotAFile,
    Vanished,
    Io(io::Error),
}

impl OpenRefusal {
    /// The reason for callers. It contains no path of this machine.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Outside => "it is a symbolic link that points outside the database folder".to_owned(),
            Self::NotAFile => "it is not a regular file".to_owned(),
            Self::Vanished => "the file no longer exists".to_owned(),
            Self::Io(error) => io_error_reason(error),
        }
    }
}

impl From<io::Error> for OpenRefusal {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Vanished,
            _ => Self::Io(error),
        }
    }
}

/// The description of an I/O error, without the operating system's error number and without a path.
pub(crate) fn io_error_reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::NotFound => "the file no longer exists".to_owned(),
        _ => {
            let text = error.to_string();
            text.split(" (os error").next().unwrap_or(&text).to_owned()
        }
    }
}

impl PathSandbox {
    /// A sandbox of `real_paths`, which must not contain symbolic links.
    pub(crate) fn new(real_paths: Vec<PathBuf>) -> Self {
        Self { allowed_paths: real_paths }
    }

    /// Whether `real_path`, which must not contain symbolic links, may be read.
    pub(crate) fn contains(&self, real_path: &Path) -> bool {
        self.allowed_paths.iter().any(|allowed| real_path.starts_with(allowed))
    }

    /// Opens the file at `path` if its real path is allowed. If the file is being replaced, opens the new one.
    pub(crate) fn open(&self, path: &Path) -> Result<File, OpenRefusal> {
        for _ in 0..OPEN_ATTEMPTS_MAX {
            match self.open_once(path) {
                Err(OpenRefusal::Vanished) => {}
                opened => return opened,
            }
        }
        self.open_once(path)
    }

    fn open_once(&self, path: &Path) -> Result<File, OpenRefusal> {
        let real = fs::canonicalize(path)?;
        if !self.contains(&real) {
            return Err(OpenRefusal::Outside);
        }
        // Checked before opening, because opening a pipe blocks until it has a writer.
        if !fs::symlink_metadata(&real)?.is_file() {
            return Err(OpenRefusal::NotAFile);
        }
        let file = OpenOptions::new().read(true).open(&real)?;
        if !file.metadata()?.is_file() {
            return Err(OpenRefusal::NotAFile);
        }
        match path_of(&file, &real)? {
            Some(opened) if self.contains(&opened) => Ok(file),
            Some(_) => Err(OpenRefusal::Outside),
            None => Err(OpenRefusal::Vanished),
        }
    }
}

/// The real path of an open file; `None` if the file was deleted.
#[cfg(target_os = "linux")]
fn path_of(file: &File, _believed: &Path) -> io::Result<Option<PathBuf>> {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;

    if file.metadata()?.nlink() == 0 {
        return Ok(None);
    }
    fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).map(Some)
}

/// The real path of an open file as far as this system reports it: `believed`, if the same file is still there.
#[cfg(all(unix, not(target_os = "linux")))]
fn path_of(file: &File, believed: &Path) -> io::Result<Option<PathBuf>> {
    use std::os::unix::fs::MetadataExt;

    let (opened, there) = (file.metadata()?, fs::symlink_metadata(believed)?);
    if (opened.dev(), opened.ino()) != (there.dev(), there.ino()) {
        return Ok(None);
    }
    fs::canonicalize(believed).map(Some)
}

/// The real path of an open file, as far as this system reports it.
#[cfg(not(unix))]
fn path_of(_file: &File, believed: &Path) -> io::Result<Option<PathBuf>> {
    fs::canonicalize(believed).map(Some)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn opens_only_files_inside_the_allowed_paths() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        let (inside, outside) = (root.join("in"), root.join("out"));
        fs::create_dir_all(&inside).unwrap();
        fs::create_dir_all(&outside).unwrap();
        fs::write(inside.join("a.csv"), "x").unwrap();
        fs::write(outside.join("secret.csv"), "x").unwrap();
        symlink(outside.join("secret.csv"), inside.join("link.csv")).unwrap();
        symlink("a.csv", inside.join("alias.csv")).unwrap();
        symlink(&outside, inside.join("folder")).unwrap();
        let path_sandbox = PathSandbox::new(vec![inside.clone()]);

        assert!(path_sandbox.open(&inside.join("a.csv")).is_ok());
        assert!(path_sandbox.open(&inside.join("alias.csv")).is_ok());
        for path in ["link.csv", "folder/secret.csv", "../out/secret.csv"] {
            assert!(matches!(path_sandbox.open(&inside.join(path)), Err(OpenRefusal::Outside)), "{path}");
        }
        assert!(matches!(path_sandbox.open(&inside.join("none.csv")), Err(OpenRefusal::Vanished)));
        assert!(matches!(path_sandbox.open(&inside), Err(OpenRefusal::NotAFile)));
        assert!(!path_sandbox.contains(&root.join("inside-by-prefix-only")));
    }
}
