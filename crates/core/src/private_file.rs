//! Files that only their owner can read.

use std::fs::{File, OpenOptions};

/// Makes files that are created with `options` readable by their owner only.
pub fn set_owner_only(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// Whether other users can read or write `file`. Always false on systems without file modes.
///
/// # Errors
/// When the mode of the file cannot be read.
#[cfg(unix)]
pub fn is_open_to_others(file: &File) -> std::io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;

    Ok(file.metadata()?.mode() & 0o077 != 0)
}

/// Whether other users can read or write `file`. Always false on systems without file modes.
///
/// # Errors
/// Never.
#[cfg(not(unix))]
pub fn is_open_to_others(_file: &File) -> std::io::Result<bool> {
    Ok(false)
}
