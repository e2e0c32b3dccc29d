//! Small text files, read with a bound on their size.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::str::FromStr;

/// Bytes of a file with one value, or of a unit file, at most.
const SMALL_FILE_BYTES_MAX: u64 = 65_536;

/// The text of a small file, without surrounding white space. `None` if it cannot be read or is empty.
pub(super) fn read_small(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(SMALL_FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The only value of a small file.
pub(super) fn read_value<T: FromStr>(path: &Path) -> Option<T> {
    read_small(path)?.parse().ok()
}

/// A file with `0` or `1`.
pub(super) fn read_flag(path: &Path) -> Option<bool> {
    read_value::<u8>(path).map(|value| value != 0)
}
