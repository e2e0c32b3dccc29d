//! Reads the next block ahead, for clients that request one block after the other.
//!
//! A block is read whole and its hash is verified before its first byte is sent. Without reading ahead, such a client
//! waits for both with each block, while the server waits for the client in between.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_core::Error;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::JoinHandle;

use crate::block::ResultBlock;
use crate::result::StoredResult;

/// The maximum number of blocks that are held ahead, over all results.
const BLOCKS_MAX: usize = 4;
/// A block that is not requested within this time is dropped.
const HOLD_TIME_MAX: Duration = Duration::from_secs(2);

static PERMITS: Semaphore = Semaphore::const_new(BLOCKS_MAX);

/// The position of the clients of one result, and at most one block beyond it.
#[derive(Debug, Default)]
pub(crate) struct ReadAhead(Mutex<Position>);

#[derive(Debug, Default)]
struct Position {
    last: Option<usize>,
    /// The highest block that was requested since block 0.
    highest: usize,
    block: Option<BlockAhead>,
    count: u64,
}

#[derive(Debug)]
struct BlockAhead {
    index: usize,
    /// Distinguishes it from other blocks ahead.
    number: u64,
    reading: JoinHandle<Result<ResultBlock, Error>>,
    _permit: SemaphorePermit<'static>,
}

impl ReadAhead {
    /// Notes that the block `index` is requested. Returns the block if it was read ahead, and whether the next one
    /// should be.
    fn advance(&self, index: usize) -> (Option<BlockAhead>, bool) {
        let mut position = self.0.lock();
        let is_next = position.last.is_some_and(|last| last + 1 == index);
        position.last = Some(index);
        position.highest = if index == 0 { 0 } else { position.highest.max(index) };
        let ahead = position.block.take_if(|block| block.index == index);
        // Other clients may have requested the following blocks already.
        (ahead, is_next && position.highest == index && position.block.is_none())
    }

    fn hold(
        &self,
        index: usize,
        reading: JoinHandle<Result<ResultBlock, Error>>,
        permit: SemaphorePermit<'static>,
    ) -> u64 {
        let mut position = self.0.lock();
        position.count += 1;
        let number = position.count;
        position.block = Some(BlockAhead { index, number, reading, _permit: permit });
        number
    }

    fn release(&self, number: u64) {
        self.0.lock().block.take_if(|block| block.number == number);
    }
}

impl StoredResult {
    /// As [`StoredResult::block`], for a client that requests one block after the other: while it receives this one,
    /// the next one is read.
    ///
    /// # Errors
    /// As [`StoredResult::block`].
    pub async fn block_of_sequence(self: &Arc<Self>, index: usize) -> Result<ResultBlock, Error> {
        let (ahead, is_sequence) = self.read_ahead.advance(index);
        let ready = match ahead {
            Some(ahead) => ahead.reading.await.ok().and_then(Result::ok),
            None => None,
        };
        let block = match ready {
            Some(block) => block,
            None => self.block(index).await?,
        };
        if is_sequence {
            self.read_block_ahead(index + 1);
        }
        Ok(block)
    }

    fn read_block_ahead(self: &Arc<Self>, index: usize) {
        if self.progress.borrow().blocks.len() <= index {
            return;
        }
        let Ok(permit) = PERMITS.try_acquire() else { return };
        let result = self.clone();
        let reading = tokio::spawn(async move { result.block(index).await });
        let number = self.read_ahead.hold(index, reading, permit);
        let result = Arc::downgrade(self);
        tokio::spawn(async move {
            tokio::time::sleep(HOLD_TIME_MAX).await;
            if let Some(result) = result.upgrade() {
                result.read_ahead.release(number);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_blocks_in_sequence_are_followed() {
        let read_ahead = ReadAhead::default();
        let followed: Vec<usize> =
            [0, 1, 2, 7, 8, 3, 4, 0, 1, 1, 2].into_iter().filter(|index| read_ahead.advance(*index).1).collect();
        // After 3 and 4, clients have requested the next blocks already; block 0 begins another download.
        assert_eq!(followed, [1, 2, 8, 1, 2]);
    }
}
