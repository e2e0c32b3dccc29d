//! Files and folders that only their owner can read.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::path::Path;

/// Makes files that are created with `options` readable by their owner only.
pub fn set_owner_only(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// Creates a file that only its owner can read. An existing file is emptied, and keeps its permissions.
///
/// # Errors
/// When the file cannot be opened.
pub fn create(path: &Path) -> io::Result<File> {
    set_owner_only(OpenOptions::new().write(true).create(true).truncate(true)).open(path)
}

/// Creates a file that only its owner can read, and opens it for reading and writing.
///
/// # Errors
/// When the file exists, or cannot be created.
pub fn create_new(path: &Path) -> io::Result<File> {
    set_owner_only(OpenOptions::new().read(true).write(true).create_new(true)).open(path)
}

/// Creates a folder, and those above it that do not exist, for their owner only. Existing folders keep their
/// permissions.
///
/// # Errors
/// When a folder cannot be created.
pub fn create_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Whether other users can read or write `file`. Always false on systems without file modes.
///
/// # Errors
/// When the mode of the file cannot be read.
#[cfg(unix)]
pub fn is_open_to_others(file: &File) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;

    Ok(file.metadata()?.mode() & 0o077 != 0)
}

/// Whether other users can read or write `file`. Always false on systems without file modes.
///
/// # Errors
/// Never.
#[cfg(not(unix))]
pub fn is_open_to_others(_file: &File) -> io::Result<bool> {
    Ok(false)
}
