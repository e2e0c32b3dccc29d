//! Files that nobody but their owner may read.

use std::fs::{File, OpenOptions};

/// Files that are made with `options` are their owner's alone.
pub(crate) fn set_owner_only(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// Whether others than its owner may read or write `file`. On systems without such modes nobody can tell.
#[cfg(unix)]
pub(crate) fn is_open_to_others(file: &File) -> std::io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;

    Ok(file.metadata()?.mode() & 0o077 != 0)
}

/// Whether others than its owner may read or write `file`. On systems without such modes nobody can tell.
#[cfg(not(unix))]
pub(crate) fn is_open_to_others(_file: &File) -> std::io::Result<bool> {
    Ok(false)
}
