//! The folder beside a file in which blocks wait until all are there.
//!
//! Nothing in it is believed: a block that a run finds is taken for what its hash says. So blocks need no care when they
//! are written, and may be torn.

use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::destination::{Destination, UNFINISHED};
use crate::digest::sha256;
use crate::error::FetchError;
use crate::manifest::Block;

/// The file that names the result whose blocks these are.
const RESULT: &str = "result";
/// The file that the run holds locked which works here.
const LOCK: &str = "lock";
const BLOCK: &str = ".arrow";

/// The blocks that are here, for one run at a time.
pub(crate) struct Partial {
    folder: Arc<Path>,
    /// Held for as long as this run works here.
    lock: File,
    /// What is being read and written on other threads.
    work: TaskTracker,
}

impl Partial {
    /// The folder of `destination` for blocks of the result `id`. Those of another result make room.
    ///
    /// # Errors
    /// When another run works there, or the folder cannot be written to.
    pub(crate) fn open(destination: &Destination, id: Uuid) -> Result<Self, FetchError> {
        let folder = destination.partial_folder();
        let failed = |doing| FetchError::disk(&folder, doing);
        match fs::create_dir(&folder) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(failed("made")(error)),
            _ => {}
        }
        let lock = File::create(folder.join(LOCK)).map_err(failed("written to"))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(FetchError::Busy { path: destination.path().to_owned() }),
            Err(TryLockError::Error(error)) => return Err(failed("locked")(error)),
        }
        let is_same = fs::read_to_string(folder.join(RESULT)).is_ok_and(|named| named.trim() == id.to_string());
        for path in ours(&folder) {
            if !is_same || !is_block(&path) {
                fs::remove_file(&path).map_err(failed("cleared"))?;
            }
        }
        fs::write(folder.join(RESULT), format!("{id}\n")).map_err(failed("written to"))?;
        Ok(Self { folder: folder.into(), lock, work: TaskTracker::new() })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the block `index` is.
    pub(crate) fn path(&self, index: u64) -> PathBuf {
        self.folder.join(format!("{index}{BLOCK}"))
    }

    /// Whether `block` is here, with its hash.
    pub(crate) async fn has(&self, block: &Block) -> Result<bool, FetchError> {
        let (path, bytes, hash) = (self.path(block.index), block.bytes, block.sha256.clone());
        self.run(move || {
            let is_candidate = path.metadata().is_ok_and(|found| found.len() == bytes);
            Ok(is_candidate && fs::read(&path).is_ok_and(|found| sha256(&found) == hash))
        })
        .await
    }

    /// Keeps the `bytes` of the block `index`.
    pub(crate) async fn keep(&self, index: u64, bytes: Vec<u8>) -> Result<(), FetchError> {
        let path = self.path(index);
        self.run(move || {
            let written = File::create(&path).and_then(|mut file| file.write_all(&bytes));
            written.map_err(FetchError::disk(&path, "written"))
        })
        .await
    }

    /// How many blocks are kept.
    pub(crate) fn count(&self) -> usize {
        ours(&self.folder).filter(|path| is_block(path)).count()
    }

    /// Lets work on other threads end.
    pub(crate) async fn rest(&self) {
        self.work.close();
        self.work.wait().await;
    }

    /// Removes the folder, unless it holds what is not ours.
    pub(crate) fn remove(self) {
        let Self { folder, lock, .. } = self;
        drop(lock);
        // What cannot be removed does no harm, and the file is what was asked for.
        for path in ours(&folder) {
            let _ = fs::remove_file(path);
        }
        let _ = fs::remove_file(folder.join(LOCK));
        let _ = fs::remove_dir(&folder);
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, FetchError> + Send + 'static,
    ) -> Result<T, FetchError> {
        self.work.spawn_blocking(work).await.map_err(|error| FetchError::broken_off(&error))?
    }
}

/// What runs like this one left in `folder`, but for the lock.
fn ours(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name == RESULT || name.ends_with(UNFINISHED) || is_block(path)
    })
}

fn is_block(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.strip_suffix(BLOCK).is_some_and(|index| index.parse::<u64>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: &[u8] = b"a block";

    fn block(index: u64) -> Block {
        Block { index, rows: 1, bytes: BYTES.len() as u64, sha256: sha256(BYTES) }
    }

    #[tokio::test]
    async fn blocks_wait_for_the_next_run() {
        let folder = tempfile::tempdir().unwrap();
        let destination = Destination::new(folder.path().join("out.csv"), None, false).unwrap();
        let open = |id| Partial::open(&destination, Uuid::from_u128(id));
        let partial = open(1).unwrap();
        for index in [0, 3] {
            partial.keep(index, BYTES.to_vec()).await.unwrap();
        }
        fs::write(partial.path(3), "b block").unwrap();
        fs::write(partial.folder().join("a stranger's"), "x").unwrap();
        fs::write(partial.folder().join(".out.csv.x.tmp"), "x").unwrap();
        assert!(matches!(open(1), Err(FetchError::Busy { .. })));
        partial.rest().await;
        drop(partial);

        let partial = open(1).unwrap();
        assert_eq!(partial.count(), 2);
        assert!(partial.has(&block(0)).await.unwrap());
        assert!(!partial.has(&block(1)).await.unwrap());
        assert!(!partial.has(&block(3)).await.unwrap(), "its bytes are others");
        drop(partial);

        let partial = open(2).unwrap();
        assert_eq!(partial.count(), 0, "blocks of another result");
        let names = fs::read_dir(partial.folder()).unwrap().count();
        assert_eq!(names, 3, "lock, result and the stranger's");
        fs::remove_file(partial.folder().join("a stranger's")).unwrap();
        partial.remove();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
