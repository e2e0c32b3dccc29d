//! One process writes to a folder.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::time::SystemTime;

use parking_lot::Mutex;

use super::IngestError;

/// The bytes of a holder's description that are read.
const HOLDER_BYTES_MAX: u64 = 1024;

/// The lock of a folder. It ends with the process, however that ends.
#[derive(Debug)]
pub(crate) struct FolderLock {
    file: Mutex<Option<File>>,
}

impl FolderLock {
    /// Locks `folder` by its file `path`, or names the process that has it.
    pub(crate) fn acquire(folder: &Path, path: &Path) -> Result<Self, IngestError> {
        let mut file = File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(path)
            .map_err(IngestError::io("open", path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                // A description that cannot be read, or is being written, is left out.
                let _ = Read::by_ref(&mut file).take(HOLDER_BYTES_MAX).read_to_string(&mut holder);
                let holder = holder.trim().to_owned();
                let holder = if holder.is_empty() { "another process".to_owned() } else { holder };
                return Err(IngestError::Locked { folder: folder.to_owned(), holder });
            }
            Err(TryLockError::Error(error)) => return Err(IngestError::io("lock", path)(error)),
        }
        let text = describe_this_process();
        file.rewind()
            .and_then(|()| file.set_len(0))
            .and_then(|()| file.write_all(text.as_bytes()))
            .map_err(IngestError::io("write", path))?;
        Ok(Self { file: Mutex::new(Some(file)) })
    }

    /// Ends the lock before the process ends.
    pub(crate) fn release(&self) {
        self.file.lock().take();
    }
}

fn describe_this_process() -> String {
    let id = std::process::id();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim();
    let host = if host.is_empty() { "an unknown host" } else { host };
    let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let start = chrono::DateTime::from_timestamp(seconds.cast_signed(), 0).unwrap_or_default();
    format!("process {id} on {host} since {}\n", start.format("%Y-%m-%dT%H:%M:%SZ"))
}
