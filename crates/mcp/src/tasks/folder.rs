//! The folder of stored tasks: one file per task, written atomically.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use tidegate_core::private_file::set_owner_only;

use super::record::{TaskId, TaskMetadata, TaskRecord};

const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The folder of stored tasks of one process. No other process may use it at the same time.
#[derive(Debug, Clone)]
pub struct TaskFolder(PathBuf);

impl TaskFolder {
    /// Opens the folder at `path` and creates it if necessary.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        fs::create_dir_all(&path)?;
        restrict_permissions(&path)?;
        Ok(Self(path))
    }

    /// Writes `record` atomically.
    pub(super) async fn write(&self, record: &TaskRecord) -> io::Result<()> {
        let path = self.path_of(record.metadata.id);
        let text = serde_json::to_vec(record)?;
        run_blocking(move || {
            let new = path.with_extension("new");
            let file = set_owner_only(OpenOptions::new().write(true).create(true).truncate(true)).open(&new);
            let written = file.and_then(|mut file| file.write_all(&text)).and_then(|()| fs::rename(&new, &path));
            // Removes the incomplete file, if possible.
            written.inspect_err(|_| drop(fs::remove_file(&new)))
        })
        .await
    }

    pub(super) async fn read(&self, id: TaskId) -> io::Result<TaskRecord> {
        let path = self.path_of(id);
        run_blocking(move || read(&path)).await
    }

    pub(super) async fn remove(&self, ids: Vec<TaskId>) {
        let paths: Vec<PathBuf> = ids.into_iter().map(|id| self.path_of(id)).collect();
        let removed = run_blocking(move || {
            for path in paths {
                let _ = fs::remove_file(path);
            }
            Ok(())
        });
        // A file that cannot be removed does not bring the task back: its record contains the expiry.
        let _ = removed.await;
    }

    /// Reads the tasks of an earlier process that have not expired at `now`, and removes all other files.
    pub(super) fn load_tasks(&self, now: DateTime<Utc>) -> Vec<TaskMetadata> {
        let Ok(entries) = fs::read_dir(&self.0) else { return Vec::new() };
        let tasks = entries.flatten().filter_map(|entry| {
            let path = entry.path();
            let name = path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
            // Reads one result at a time: all of them together may exceed the memory.
            let metadata = match read(&path) {
                Ok(record) => Some(record.metadata),
                Err(error) if is_corrupt(&error) => None,
                // An I/O error may be temporary, so the file stays.
                Err(error) => {
                    tracing::warn!(%error, "cannot read a task file");
                    return None;
                }
            };
            let kept = metadata
                .filter(|metadata| name.as_deref() == Some(&file_name(metadata.id)) && !metadata.is_expired(now));
            if kept.is_none() {
                let _ = fs::remove_file(&path);
            }
            kept
        });
        tasks.collect()
    }

    fn path_of(&self, id: TaskId) -> PathBuf {
        self.0.join(file_name(id))
    }
}

fn file_name(id: TaskId) -> String {
    format!("{id}.json")
}

fn read(path: &Path) -> io::Result<TaskRecord> {
    if fs::metadata(path)?.len() > FILE_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the file is too long to be a task record"));
    }
    Ok(serde_json::from_slice(&fs::read(path)?)?)
}

fn is_corrupt(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
}

fn restrict_permissions(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    let _ = path;
    Ok(())
}

async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(io::Error::other("the file operation was aborted")))
}
