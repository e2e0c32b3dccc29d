//! How much room the disk has.

use std::path::Path;

/// The bytes that are free for this process on the disk that holds `folder`; none where that cannot be told.
pub(super) fn free_bytes(folder: &Path) -> Option<u64> {
    let status = rustix::fs::statvfs(folder).ok()?;
    Some(status.f_bavail.saturating_mul(status.f_frsize))
}
