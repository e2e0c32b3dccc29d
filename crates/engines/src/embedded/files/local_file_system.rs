//! Whether a file is on this machine. The metadata of files of another machine may take long to read.

use std::path::Path;

/// Magic numbers of file systems on local devices and in memory (`statfs(2)`): bcachefs, Btrfs, ext2 to ext4, F2FS,
/// overlays of containers, tmpfs, XFS, ZFS.
#[cfg(target_os = "linux")]
const LOCAL: [u32; 8] =
    [0xca45_1a4e, 0x9123_683e, 0xef53, 0xf2f5_2010, 0x794c_7630, 0x0102_1994, 0x5846_5342, 0x2fc1_2fc1];

/// Whether the file at `path` is on a file system that is known to be local. It may take long.
#[cfg(target_os = "linux")]
pub(crate) fn is_local(path: &Path) -> bool {
    let kind = rustix::fs::statfs(path).map(|status| u32::try_from(status.f_type));
    matches!(kind, Ok(Ok(magic)) if LOCAL.contains(&magic))
}

/// Other systems do not report it in the same way.
#[cfg(not(target_os = "linux"))]
pub(crate) fn is_local(_: &Path) -> bool {
    false
}
