//! One process writes to a folder.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;
use tidegate_core::private_file::set_owner_only;

use super::IngestError;

/// The bytes of a holder's description that are read.
const HOLDER_BYTES_MAX: u64 = 1024;
/// How long a writer waits for processes that read the folder.
const READERS_WAIT_MAX: Duration = Duration::from_secs(5);
const READERS_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The lock of a folder. It ends with the process, however that ends.
#[derive(Debug)]
pub(crate) struct FolderLock {
    file: Mutex<Option<File>>,
}

impl FolderLock {
    /// Locks `folder` by its file `path`, or names the process that has it.
    pub(crate) fn acquire(folder: &Path, path: &Path) -> Result<Self, IngestError> {
        let mut file = set_owner_only(File::options().create(true).truncate(false).read(true).write(true))
            .open(path)
            .map_err(IngestError::io("open", path))?;
        let started = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(error)) => return Err(IngestError::io("lock", path)(error)),
                // Those who only read do not describe themselves, and are soon done.
                Err(TryLockError::WouldBlock) if file.try_lock_shared().is_ok() => {
                    file.unlock().map_err(IngestError::io("unlock", path))?;
                    if started.elapsed() >= READERS_WAIT_MAX {
                        let holder = "a process that reads it, such as tidegate ingest verify".to_owned();
                        return Err(IngestError::Locked { folder: folder.to_owned(), holder });
                    }
                    std::thread::sleep(READERS_POLL_INTERVAL);
                }
                Err(TryLockError::WouldBlock) => return Err(locked(folder, &mut file)),
            }
        }
        let text = describe_this_process();
        file.rewind()
            .and_then(|()| file.set_len(0))
            .and_then(|()| file.write_all(text.as_bytes()))
            .map_err(IngestError::io("write", path))?;
        Ok(Self { file: Mutex::new(Some(file)) })
    }

    /// Locks `folder` for reading, or names the process that writes to it. Nothing is changed.
    pub(crate) fn acquire_shared(folder: &Path, path: &Path) -> Result<Self, IngestError> {
        let mut file = match File::open(path) {
            Ok(file) => file,
            // No process has written to it yet.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self { file: Mutex::new(None) }),
            Err(error) => return Err(IngestError::io("open", path)(error)),
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(Self { file: Mutex::new(Some(file)) }),
            Err(TryLockError::WouldBlock) => Err(locked(folder, &mut file)),
            Err(TryLockError::Error(error)) => Err(IngestError::io("lock", path)(error)),
        }
    }

    /// Ends the lock before the process ends.
    pub(crate) fn release(&self) {
        self.file.lock().take();
    }
}

/// The error that names the process that has the lock.
fn locked(folder: &Path, file: &mut File) -> IngestError {
    let mut holder = String::new();
    // A description that cannot be read, or is being written, is left out.
    let _ = file.take(HOLDER_BYTES_MAX).read_to_string(&mut holder);
    let holder = holder.trim().to_owned();
    let holder = if holder.is_empty() { "another process".to_owned() } else { holder };
    IngestError::Locked { folder: folder.to_owned(), holder }
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
