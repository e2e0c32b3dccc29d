//! The free space of the disk.

use std::path::Path;

/// The bytes that are available to this process on the disk of `folder`; `None` if unknown.
pub(crate) fn free_bytes(folder: &Path) -> Option<u64> {
    let status = rustix::fs::statvfs(folder).ok()?;
    Some(status.f_bavail.saturating_mul(status.f_frsize))
}
