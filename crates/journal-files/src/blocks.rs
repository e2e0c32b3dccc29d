//! Positioned reads of a file through a bounded cache of blocks.
//!
//! The file is not mapped into memory, because a file that shrinks while it is mapped would end the process.

use std::fs::File;
use std::io;
use std::sync::Arc;

/// The bytes of a block.
const BLOCK_BYTES: usize = 64 << 10;
/// The blocks of one file in memory. A scan needs one for entries, one for the list of entries, and some for older values.
const BLOCKS_MAX: usize = 16;

struct Block {
    number: u64,
    bytes: Vec<u8>,
    last_use: u64,
}

/// Reads a file.
pub(crate) struct BlockReader {
    file: Arc<File>,
    blocks: Vec<Block>,
    uses: u64,
    last_index: usize,
    /// A range that spans blocks.
    joined: Vec<u8>,
}

impl BlockReader {
    pub(crate) fn new(file: Arc<File>) -> Self {
        Self { file, blocks: Vec::new(), uses: 0, last_index: 0, joined: Vec::new() }
    }

    /// The `length` bytes at `offset`. The caller bounds `length`.
    pub(crate) fn read(&mut self, offset: u64, length: usize) -> io::Result<&[u8]> {
        let (number, start) = split(offset);
        if start + length <= BLOCK_BYTES {
            let block = self.block(number)?;
            return block.get(start..start + length).ok_or_else(end_of_file);
        }
        let mut joined = std::mem::take(&mut self.joined);
        joined.clear();
        // A large object is not cached, so that it does not evict what the scan needs.
        if length > BLOCK_BYTES {
            joined.resize(length, 0);
            read_exact_at(&self.file, &mut joined, offset)?;
        } else {
            let first = self.block(number)?.get(start..).ok_or_else(end_of_file)?;
            joined.extend_from_slice(first);
            let rest = length - joined.len().min(length);
            joined.extend_from_slice(self.block(number + 1)?.get(..rest).ok_or_else(end_of_file)?);
        }
        self.joined = joined;
        self.joined.get(..length).ok_or_else(end_of_file)
    }

    fn block(&mut self, number: u64) -> io::Result<&[u8]> {
        self.uses += 1;
        let is_last = self.blocks.get(self.last_index).is_some_and(|block| block.number == number);
        if !is_last {
            self.last_index = match self.blocks.iter().position(|block| block.number == number) {
                Some(index) => index,
                None => self.load(number)?,
            };
        }
        let block = self.blocks.get_mut(self.last_index).ok_or_else(end_of_file)?;
        block.last_use = self.uses;
        Ok(&block.bytes)
    }

    /// Reads a block in the place of the one that was not used for the longest time.
    fn load(&mut self, number: u64) -> io::Result<usize> {
        let index = if self.blocks.len() < BLOCKS_MAX {
            self.blocks.push(Block { number, bytes: Vec::new(), last_use: 0 });
            self.blocks.len() - 1
        } else {
            let oldest = self.blocks.iter().enumerate().min_by_key(|(_, block)| block.last_use);
            oldest.map_or(0, |(index, _)| index)
        };
        let block = self.blocks.get_mut(index).ok_or_else(end_of_file)?;
        // It is not the old block any more, even if the reading fails.
        block.number = u64::MAX;
        block.bytes.resize(BLOCK_BYTES, 0);
        let mut filled = 0;
        while let Some(rest) = block.bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match read_at(&self.file, rest, number * BLOCK_BYTES as u64 + filled as u64) {
                Ok(0) => break,
                Ok(bytes) => filled += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        block.bytes.truncate(filled);
        block.number = number;
        Ok(index)
    }
}

fn split(offset: u64) -> (u64, usize) {
    let bytes = BLOCK_BYTES as u64;
    (offset / bytes, (offset % bytes) as usize)
}

fn end_of_file() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the file ends before the object")
}

pub(crate) fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match read_at(file, rest, offset + filled as u64) {
            Ok(0) => return Err(end_of_file()),
            Ok(bytes) => filled += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, offset)
}

#[cfg(windows)]
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, offset)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn ranges_within_across_and_larger_than_blocks() {
        let bytes: Vec<u8> = (0..BLOCK_BYTES * 40 + 7).map(|index| (index * 31 / 7) as u8).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        let mut reader = BlockReader::new(Arc::new(file));
        for round in 0..2_000_usize {
            let offset = round * 7_919 * 13 % bytes.len();
            let length = [1, 16, 5_000, BLOCK_BYTES, BLOCK_BYTES * 3][round % 5].min(bytes.len() - offset);
            assert_eq!(
                reader.read(offset as u64, length).unwrap(),
                &bytes[offset..offset + length],
                "{offset} {length}"
            );
        }
        assert_eq!(reader.read(bytes.len() as u64 - 3, 4).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(reader.blocks.len(), BLOCKS_MAX);
    }
}
