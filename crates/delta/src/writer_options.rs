//! The limits of a writer of data files.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::stop_flag::StopFlag;

/// The unit of [`WriterOptions::spill_room`].
const SPILL_UNIT_BYTES: usize = 1 << 10;

/// Limits of a [`DataFileWriter`](super::DataFileWriter).
#[derive(Debug, Clone)]
pub struct WriterOptions {
    /// The number of partitions whose files are open while rows arrive. Rows of further partitions wait.
    pub open_files_max: usize,
    /// The most bytes of rows in memory: half of them wait, the others are in row groups. More waiting rows get on disk,
    /// sorted by partition; more in row groups end one early.
    pub memory_bytes_max: usize,
    /// A file that reaches this size is closed; further rows get into another one.
    pub file_bytes_max: u64,
    /// The folder of a file without a name, in which rows wait. That of the table if it is `None`.
    pub spill_folder: Option<PathBuf>,
    /// The room for rows that wait on disk, in KiB. All writers with clones of these options share it. If there is none,
    /// all files are completed early, and further rows get into others.
    pub spill_room: Arc<Semaphore>,
    /// Ends the work of the writer with an error.
    pub stop: StopFlag,
}

impl Default for WriterOptions {
    fn default() -> Self {
        Self {
            open_files_max: 128,
            memory_bytes_max: 128 << 20,
            file_bytes_max: 256 << 20,
            spill_folder: None,
            // 10 GiB.
            spill_room: Arc::new(Semaphore::new(10 << 20)),
            stop: StopFlag::default(),
        }
    }
}

impl WriterOptions {
    /// Reserves room on disk for rows of so many bytes in memory.
    pub(super) fn reserve_room(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let units = u32::try_from(bytes.div_ceil(SPILL_UNIT_BYTES)).ok()?;
        self.spill_room.clone().try_acquire_many_owned(units).ok()
    }
}
