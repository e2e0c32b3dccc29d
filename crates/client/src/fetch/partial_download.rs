//! The folder beside the output file that keeps blocks until all have arrived.
//!
//! Its content is not trusted: a block that a run finds there is used only if its hash matches. Therefore blocks can be
//! written without sync, and may be torn.

use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::destination::{Destination, UNFINISHED_SUFFIX};
use super::error::FetchError;
use super::manifest::ManifestBlock;
use crate::fetch::manifest::sha256;

const RESULT_ID_FILE: &str = "result";
/// File that the current run keeps locked.
const LOCK_FILE: &str = "lock";
const BLOCK_EXTENSION: &str = ".arrow";

/// The folder of the blocks, used by one run at a time.
pub(crate) struct PartialDownload {
    folder: Arc<Path>,
    lock: File,
    tasks: TaskTracker,
}

impl PartialDownload {
    /// Opens the folder, unless another run uses it, and removes blocks of other results than `id`.
    pub(crate) fn open(destination: &Destination, id: Uuid) -> Result<Self, FetchError> {
        let folder = destination.partial_folder();
        let failed = |doing| FetchError::disk_error(&folder, doing);
        match fs::create_dir(&folder) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(failed("created")(error)),
            _ => {}
        }
        let lock = File::create(folder.join(LOCK_FILE)).map_err(failed("written to"))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(FetchError::DestinationBusy { path: destination.path().to_owned() });
            }
            Err(TryLockError::Error(error)) => return Err(failed("locked")(error)),
        }
        let is_same = fs::read_to_string(folder.join(RESULT_ID_FILE)).is_ok_and(|named| named.trim() == id.to_string());
        for path in owned_files(&folder) {
            if !is_same || !is_block_file(&path) {
                fs::remove_file(&path).map_err(failed("cleared"))?;
            }
        }
        fs::write(folder.join(RESULT_ID_FILE), format!("{id}\n")).map_err(failed("written to"))?;
        Ok(Self { folder: folder.into(), lock, tasks: TaskTracker::new() })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn block_path(&self, index: u64) -> PathBuf {
        self.folder.join(format!("{index}{BLOCK_EXTENSION}"))
    }

    pub(crate) async fn has_block(&self, block: &ManifestBlock) -> Result<bool, FetchError> {
        let (path, bytes, hash) = (self.block_path(block.index), block.bytes, block.sha256.clone());
        self.run_blocking(move || {
            let is_candidate = path.metadata().is_ok_and(|metadata| metadata.len() == bytes);
            Ok(is_candidate && fs::read(&path).is_ok_and(|stored| sha256(&stored) == hash))
        })
        .await
    }

    pub(crate) async fn store_block(&self, index: u64, bytes: Vec<u8>) -> Result<(), FetchError> {
        let path = self.block_path(index);
        self.run_blocking(move || {
            let written = File::create(&path).and_then(|mut file| file.write_all(&bytes));
            written.map_err(FetchError::disk_error(&path, "written"))
        })
        .await
    }

    pub(crate) fn count_blocks(&self) -> usize {
        owned_files(&self.folder).filter(|path| is_block_file(path)).count()
    }

    pub(crate) async fn wait_for_tasks(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Removes the folder, unless it contains files of others.
    pub(crate) fn remove(self) {
        let Self { folder, lock, .. } = self;
        drop(lock);
        // A file that cannot be removed is harmless, and the download has succeeded.
        for path in owned_files(&folder) {
            let _ = fs::remove_file(path);
        }
        let _ = fs::remove_file(folder.join(LOCK_FILE));
        let _ = fs::remove_dir(&folder);
    }

    async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, FetchError> + Send + 'static,
    ) -> Result<T, FetchError> {
        self.tasks.spawn_blocking(work).await.map_err(|error| FetchError::from_join_error(&error))?
    }
}

/// The files of earlier runs in `folder`, without the lock.
fn owned_files(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name == RESULT_ID_FILE || name.ends_with(UNFINISHED_SUFFIX) || is_block_file(path)
    })
}

fn is_block_file(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.strip_suffix(BLOCK_EXTENSION).is_some_and(|index| index.parse::<u64>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: &[u8] = b"a block";

    fn block(index: u64) -> ManifestBlock {
        ManifestBlock { index, rows: 1, bytes: BYTES.len() as u64, sha256: sha256(BYTES) }
    }

    #[tokio::test]
    async fn blocks_are_reused_by_the_next_run() {
        let folder = tempfile::tempdir().unwrap();
        let destination = Destination::new(folder.path().join("out.csv"), None, false).unwrap();
        let open = |id| PartialDownload::open(&destination, Uuid::from_u128(id));
        let partial = open(1).unwrap();
        for index in [0, 3] {
            partial.store_block(index, BYTES.to_vec()).await.unwrap();
        }
        fs::write(partial.block_path(3), "b block").unwrap();
        fs::write(partial.folder().join("a stranger's"), "x").unwrap();
        fs::write(partial.folder().join(".out.csv.x.tmp"), "x").unwrap();
        assert!(matches!(open(1), Err(FetchError::DestinationBusy { .. })));
        partial.wait_for_tasks().await;
        drop(partial);

        let partial = open(1).unwrap();
        assert_eq!(partial.count_blocks(), 2);
        assert!(partial.has_block(&block(0)).await.unwrap());
        assert!(!partial.has_block(&block(1)).await.unwrap());
        assert!(!partial.has_block(&block(3)).await.unwrap(), "its bytes are others");
        drop(partial);

        let partial = open(2).unwrap();
        assert_eq!(partial.count_blocks(), 0, "blocks of another result");
        let names = fs::read_dir(partial.folder()).unwrap().count();
        assert_eq!(names, 3, "lock, result and the stranger's");
        fs::remove_file(partial.folder().join("a stranger's")).unwrap();
        partial.remove();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
