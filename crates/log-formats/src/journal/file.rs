//! A journal file, the objects in it, and its fields, without reading its entries; why a file, or a part of one, cannot be read.
//!
//! Files are read at positions, through a bounded cache of blocks. A file is not mapped into memory, because a file that shrinks
//! while it is mapped would end the process. Large values are compressed with XZ, LZ4 or Zstandard.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::journal::header::{FileHeader, HEADER_BYTES, Id128, hash_value, read_id, read_u32, read_u64};

/// The largest value that is read. Larger ones are missing from their entry, as in the answer of a limit.
const VALUE_BYTES_MAX: usize = 16 << 20;
/// The longest name of a field.
const FIELD_NAME_BYTES_MAX: usize = 64;
/// The maximum number of fields of an entry. The journal itself accepts 1,024.
const ENTRY_ITEMS_MAX: u64 = 16 << 10;

const DATA: u8 = 1;
const FIELD: u8 = 2;
const ENTRY: u8 = 3;
const ENTRY_ARRAY: u8 = 6;

const ENTRY_ITEMS: u64 = 64;
const ARRAY_ITEMS: u64 = 24;
const FIELD_PAYLOAD: u64 = 40;

/// A journal file that is open. It stays readable when it is renamed or removed.
#[derive(Debug, Clone)]
pub struct JournalFile {
    pub(crate) path: Arc<Path>,
    /// The header, as it was when the file was opened.
    pub header: Arc<FileHeader>,
    file: Arc<File>,
}

impl JournalFile {
    /// Opens the file at `path` and reads its header.
    ///
    /// # Errors
    /// If it cannot be read, is not a journal file, or needs features that are not supported.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, JournalError> {
        let path: Arc<Path> = path.into().into();
        let failed = |error: std::io::Error| JournalError::new(&path, 0, format!("cannot be read: {error}"));
        let file = File::open(&path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() {
            return Err(JournalError::new(&path, 0, "is not a file"));
        }
        let size = metadata.len();
        let mut bytes = vec![0; HEADER_BYTES.min(usize::try_from(size).unwrap_or(HEADER_BYTES))];
        read_exact_at(&file, &mut bytes, 0).map_err(failed)?;
        let header = FileHeader::parse(&bytes, size).map_err(|reason| JournalError::new(&path, 0, reason))?;
        Ok(Self { path, header: Arc::new(header), file: Arc::new(file) })
    }

    /// The path when it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn reader(&self) -> ObjectReader {
        ObjectReader { blocks: BlockReader::new(self.file.clone()), file: self.clone() }
    }
}

/// The fixed members of an entry. Times are in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryHead {
    /// The number in the sequence of its writer.
    pub seqnum: u64,
    /// When it was received, since 1970.
    pub realtime: u64,
    /// When it was received, since the boot.
    pub monotonic: u64,
    /// The boot in which it was received.
    pub boot_id: Id128,
    /// A hash of its fields.
    pub xor_hash: u64,
    pub(crate) offset: u64,
}

/// A value with the name of its field: `NAME=value`.
pub(crate) struct DataObject {
    pub(crate) offset: u64,
    hash: u64,
    next_hash_offset: u64,
    pub(crate) entry_offset: u64,
    pub(crate) entry_array_offset: u64,
    /// The number of entries that contain it.
    pub(crate) entries: u64,
    flags: u8,
    payload: u64,
    payload_bytes: u64,
}

pub(crate) struct EntryArray {
    pub(crate) next: u64,
    pub(crate) items_offset: u64,
    pub(crate) items: u64,
}

/// Reads the objects of a file.
pub(crate) struct ObjectReader {
    blocks: BlockReader,
    pub(crate) file: JournalFile,
}

impl ObjectReader {
    pub(crate) fn defect(&self, offset: u64, reason: impl Into<String>) -> JournalError {
        JournalError::new(&self.file.path, offset, reason)
    }

    /// The `length` bytes at `offset`, which must be in the part of the file that is in use.
    pub(crate) fn bytes(&mut self, offset: u64, length: u64) -> Result<&[u8], JournalError> {
        let end = offset.checked_add(length);
        let is_inside = end.is_some_and(|end| end <= self.file.header.used_size);
        let length = usize::try_from(length).ok().filter(|_| is_inside);
        let Some(length) = length else { return Err(self.defect(offset, "an object is outside of the file")) };
        let path = &self.file.path;
        self.blocks
            .read(offset, length)
            .map_err(|error| JournalError::new(path, offset, format!("cannot be read: {error}")))
    }

    pub(crate) fn word(&mut self, offset: u64) -> Result<u64, JournalError> {
        Ok(read_u64(self.bytes(offset, 8)?, 0).unwrap_or_default())
    }

    /// The flags and the size of an object, and its first `head` bytes.
    fn object(&mut self, offset: u64, object_type: u8, head: u64) -> Result<(u8, u64, &[u8]), JournalError> {
        if !offset.is_multiple_of(8) || offset < self.file.header.header_size {
            return Err(self.defect(offset, "an object begins at a position that is not possible"));
        }
        let used_size = self.file.header.used_size;
        let path = self.file.path.clone();
        let bytes = self.bytes(offset, head)?;
        let (actual, flags) = (bytes.first().copied().unwrap_or_default(), bytes.get(1).copied().unwrap_or_default());
        let size = read_u64(bytes, 8).unwrap_or_default();
        if actual != object_type {
            let reason = format!("there is an object of type {actual}, and not of type {object_type}");
            return Err(JournalError::new(&path, offset, reason));
        }
        if size < head || offset.checked_add(size).is_none_or(|end| end > used_size) {
            return Err(JournalError::new(&path, offset, format!("an object has {size} bytes, which is not possible")));
        }
        Ok((flags, size, bytes))
    }

    pub(crate) fn entry_head(&mut self, offset: u64) -> Result<EntryHead, JournalError> {
        Ok(self.entry_head_and_size(offset)?.0)
    }

    fn entry_head_and_size(&mut self, offset: u64) -> Result<(EntryHead, u64), JournalError> {
        let (_, size, bytes) = self.object(offset, ENTRY, ENTRY_ITEMS)?;
        let word = |at| read_u64(bytes, at).unwrap_or_default();
        let boot_id = read_id(bytes, 40).unwrap_or_default();
        let (seqnum, realtime, monotonic, xor_hash) = (word(16), word(24), word(32), word(56));
        Ok((EntryHead { seqnum, realtime, monotonic, boot_id, xor_hash, offset }, size))
    }

    /// Adds the positions of the values of an entry to `items`.
    pub(crate) fn entry_items(&mut self, offset: u64, items: &mut Vec<u64>) -> Result<(), JournalError> {
        let (_, size) = self.entry_head_and_size(offset)?;
        let is_compact = self.file.header.is_compact();
        let item_bytes = if is_compact { 4 } else { 16 };
        let length = size - ENTRY_ITEMS;
        if length / item_bytes > ENTRY_ITEMS_MAX {
            return Err(self.defect(offset, format!("an entry has more than {ENTRY_ITEMS_MAX} fields")));
        }
        let bytes = self.bytes(offset + ENTRY_ITEMS, length)?;
        let offset = |item: &[u8]| match is_compact {
            true => read_u32(item, 0).map(u64::from),
            false => read_u64(item, 0),
        };
        items.extend(bytes.chunks_exact(item_bytes as usize).filter_map(offset).filter(|offset| *offset != 0));
        Ok(())
    }

    pub(crate) fn data(&mut self, offset: u64) -> Result<DataObject, JournalError> {
        let payload = if self.file.header.is_compact() { 72 } else { 64 };
        let (flags, size, bytes) = self.object(offset, DATA, payload)?;
        let word = |at| read_u64(bytes, at).unwrap_or_default();
        Ok(DataObject {
            offset,
            hash: word(16),
            next_hash_offset: word(24),
            entry_offset: word(40),
            entry_array_offset: word(48),
            entries: word(56),
            flags,
            payload: offset + payload,
            payload_bytes: size - payload,
        })
    }

    /// The name of the field of `data`.
    pub(crate) fn data_field<R>(
        &mut self,
        data: &DataObject,
        with_name: impl FnOnce(&str) -> R,
    ) -> Result<R, JournalError> {
        let payload = self.payload(data, FIELD_NAME_BYTES_MAX + 1)?;
        let name = memchr::memchr(b'=', &payload).and_then(|end| payload.get(..end));
        match name.and_then(|name| std::str::from_utf8(name).ok()) {
            Some(name) => Ok(with_name(name)),
            None => Err(self.defect(data.offset, "a value has no name")),
        }
    }

    /// `NAME=value` of `data`; `None` if it is larger than [`VALUE_BYTES_MAX`].
    pub(crate) fn whole_payload(&mut self, data: &DataObject) -> Result<Option<Arc<[u8]>>, JournalError> {
        if !is_compressed(data.flags) {
            let fits = data.payload_bytes <= VALUE_BYTES_MAX as u64;
            return if fits { Ok(Some(self.bytes(data.payload, data.payload_bytes)?.into())) } else { Ok(None) };
        }
        let (payload, is_whole) = self.decompressed(data, VALUE_BYTES_MAX)?;
        Ok(is_whole.then(|| payload.into()))
    }

    /// The first bytes of `NAME=value`.
    fn payload(&mut self, data: &DataObject, bytes_max: usize) -> Result<std::borrow::Cow<'_, [u8]>, JournalError> {
        if is_compressed(data.flags) {
            return Ok(self.decompressed(data, bytes_max)?.0.into());
        }
        Ok(self.bytes(data.payload, data.payload_bytes.min(bytes_max as u64))?.into())
    }

    fn decompressed(&mut self, data: &DataObject, bytes_max: usize) -> Result<(Vec<u8>, bool), JournalError> {
        if data.payload_bytes > VALUE_BYTES_MAX as u64 {
            return Err(self.defect(data.offset, format!("a value has more than {VALUE_BYTES_MAX} bytes compressed")));
        }
        let path = self.file.path.clone();
        let compressed = self.bytes(data.payload, data.payload_bytes)?;
        decompress(data.flags, compressed, bytes_max)
            .map_err(|error| JournalError::new(&path, data.offset, format!("a value cannot be decompressed: {error}")))
    }

    pub(crate) fn entry_array(&mut self, offset: u64) -> Result<EntryArray, JournalError> {
        let item_bytes = self.array_item_bytes();
        let (_, size, bytes) = self.object(offset, ENTRY_ARRAY, ARRAY_ITEMS)?;
        let next = read_u64(bytes, 16).unwrap_or_default();
        Ok(EntryArray { next, items_offset: offset + ARRAY_ITEMS, items: (size - ARRAY_ITEMS) / item_bytes })
    }

    fn array_item_bytes(&self) -> u64 {
        if self.file.header.is_compact() { 4 } else { 8 }
    }

    /// The item `index` of the items at `items_offset`.
    pub(crate) fn array_item(&mut self, items_offset: u64, index: u64) -> Result<u64, JournalError> {
        if self.file.header.is_compact() {
            let bytes = self.bytes(items_offset + index * 4, 4)?;
            return Ok(read_u32(bytes, 0).map(u64::from).unwrap_or_default());
        }
        self.word(items_offset + index * 8)
    }

    /// The name of a field, and the position of the next one of the same bucket.
    pub(crate) fn field(&mut self, offset: u64) -> Result<(String, u64), JournalError> {
        let (_, size, bytes) = self.object(offset, FIELD, FIELD_PAYLOAD)?;
        let next_hash_offset = read_u64(bytes, 24).unwrap_or_default();
        let length = size - FIELD_PAYLOAD;
        if length > FIELD_NAME_BYTES_MAX as u64 {
            return Err(self.defect(offset, "the name of a field is too long"));
        }
        let name = String::from_utf8_lossy(self.bytes(offset + FIELD_PAYLOAD, length)?).into_owned();
        Ok((name, next_hash_offset))
    }

    /// The object of the value `payload` (`NAME=value`), if an entry contains it.
    pub(crate) fn find_data(&mut self, payload: &[u8]) -> Result<Option<DataObject>, JournalError> {
        let header = self.file.header.clone();
        let hash = hash_value(&header, payload);
        let (table, table_bytes) = header.data_hash_table;
        let buckets = table_bytes / 16;
        if buckets == 0 {
            return Ok(None);
        }
        let mut offset = self.word(table + hash % buckets * 16)?;
        let mut previous = 0;
        while offset != 0 {
            // New objects are at the end of the chain, so that a chain that does not ascend is a loop.
            if offset <= previous {
                return Err(self.defect(offset, "the index of values is a loop"));
            }
            previous = offset;
            let data = self.data(offset)?;
            if data.hash == hash && self.whole_payload(&data)?.is_some_and(|other| *other == *payload) {
                return Ok(Some(data));
            }
            offset = data.next_hash_offset;
        }
        Ok(None)
    }
}

/// The maximum number of fields of one file.
const FIELDS_MAX: usize = 100_000;

impl JournalFile {
    /// The names of the fields that entries of this file contain.
    ///
    /// # Errors
    /// If the file is corrupted.
    pub fn field_names(&self) -> Result<Vec<String>, JournalError> {
        let mut reader = self.reader();
        let (table, table_bytes) = self.header.field_hash_table;
        let mut names = Vec::new();
        for bucket in 0..table_bytes / 16 {
            let (mut offset, mut previous) = (reader.word(table + bucket * 16)?, 0);
            while offset != 0 {
                if offset <= previous || names.len() >= FIELDS_MAX {
                    return Err(reader.defect(offset, "the index of fields is a loop"));
                }
                previous = offset;
                let (name, next) = reader.field(offset)?;
                names.push(name);
                offset = next;
            }
        }
        Ok(names)
    }
}

/// A journal file, or an object in it, that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{}: {reason}", path.display(), at_byte(*offset))]
pub struct JournalError {
    path: Arc<Path>,
    offset: u64,
    reason: String,
}

fn at_byte(offset: u64) -> String {
    if offset == 0 { String::new() } else { format!(", at byte {offset}") }
}

impl JournalError {
    pub(crate) fn new(path: &Arc<Path>, offset: u64, reason: impl Into<String>) -> Self {
        Self { path: path.clone(), offset, reason: reason.into() }
    }

    pub(crate) fn of_path(path: impl Into<PathBuf>, reason: impl Into<String>) -> Self {
        Self { path: path.into().into(), offset: 0, reason: reason.into() }
    }

    /// The file or folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The position of the object in the file, in bytes; 0 for the file as a whole.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// What is wrong.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

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
struct BlockReader {
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

fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
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

const XZ: u8 = 1;
const LZ4: u8 = 1 << 1;
const ZSTD: u8 = 1 << 2;
/// The memory of the XZ decoder.
const XZ_MEMORY_MAX: u64 = 64 << 20;

/// Whether an object with these flags is compressed.
fn is_compressed(flags: u8) -> bool {
    flags & (XZ | LZ4 | ZSTD) != 0
}

/// Up to `bytes_max` bytes of what `compressed` contains, and whether that is all.
fn decompress(flags: u8, compressed: &[u8], bytes_max: usize) -> io::Result<(Vec<u8>, bool)> {
    match flags & (XZ | LZ4 | ZSTD) {
        XZ => {
            let stream = liblzma::stream::Stream::new_stream_decoder(XZ_MEMORY_MAX, 0).map_err(io::Error::other)?;
            read_up_to(liblzma::read::XzDecoder::new_stream(compressed, stream), bytes_max)
        }
        ZSTD => read_up_to(zstd::stream::read::Decoder::with_buffer(compressed)?, bytes_max),
        LZ4 => {
            let size = read_u64(compressed, 0).and_then(|size| usize::try_from(size).ok());
            let (size, block) = size.zip(compressed.get(8..)).ok_or_else(|| invalid("LZ4 data without a size"))?;
            let bytes = decode_lz4(block, size.min(bytes_max))?;
            if size <= bytes_max && bytes.len() != size {
                return Err(invalid("LZ4 data of another size than declared"));
            }
            Ok((bytes, size <= bytes_max))
        }
        _ => Err(invalid("more than one compression")),
    }
}

fn read_up_to(reader: impl Read, bytes_max: usize) -> io::Result<(Vec<u8>, bool)> {
    let mut bytes = Vec::new();
    reader.take(bytes_max as u64 + 1).read_to_end(&mut bytes)?;
    let is_all = bytes.len() <= bytes_max;
    bytes.truncate(bytes_max);
    Ok((bytes, is_all))
}

fn invalid(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

/// The first `bytes_max` bytes of an LZ4 block.
///
/// A decoder of our own, because it stops after the name of the field, which most readings need only.
///
/// [LZ4 Block Format](https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md)
fn decode_lz4(block: &[u8], bytes_max: usize) -> io::Result<Vec<u8>> {
    let mut decoded: Vec<u8> = Vec::with_capacity(bytes_max.min(block.len().saturating_mul(4)));
    let mut input = block.iter();
    let incomplete = || invalid("incomplete LZ4 data");
    while decoded.len() < bytes_max {
        let Some(token) = input.next() else { break };
        let literals = read_length(usize::from(token >> 4), &mut input).ok_or_else(incomplete)?;
        let rest = input.as_slice();
        let (literal, further) = rest.split_at_checked(literals).ok_or_else(incomplete)?;
        decoded.extend_from_slice(literal.get(..literals.min(bytes_max - decoded.len())).unwrap_or_default());
        input = further.iter();
        if further.is_empty() || decoded.len() == bytes_max {
            break;
        }
        let (Some(low), Some(high)) = (input.next(), input.next()) else { return Err(incomplete()) };
        let distance = usize::from(u16::from_le_bytes([*low, *high]));
        let length = read_length(usize::from(token & 15), &mut input).and_then(|length| length.checked_add(4));
        let length = length.ok_or_else(incomplete)?.min(bytes_max - decoded.len());
        let start = decoded.len().checked_sub(distance).filter(|_| distance > 0);
        let start = start.ok_or_else(|| invalid("LZ4 data that refers to nothing"))?;
        // The copy may overlap with what it appends.
        let mut copied = 0;
        while copied < length {
            let count = (decoded.len() - start).min(length - copied);
            decoded.extend_from_within(start..start + count);
            copied += count;
        }
    }
    Ok(decoded)
}

/// A length that continues in further bytes if its four bits are all set.
fn read_length(bits: usize, input: &mut std::slice::Iter<'_, u8>) -> Option<usize> {
    let mut length = bits;
    if bits == 15 {
        loop {
            let byte = *input.next()?;
            length = length.checked_add(usize::from(byte))?;
            if byte != u8::MAX {
                break;
            }
        }
    }
    Some(length)
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

    #[test]
    fn lz4_of_literals_and_overlapping_copies() {
        // "ab" as literals, then 18 bytes from two bytes before, then "xyz".
        let block = [0x2e, b'a', b'b', 2, 0, 0x30, b'x', b'y', b'z'];
        assert_eq!(decode_lz4(&block, 100).unwrap(), b"ababababababababababxyz");
        assert_eq!(decode_lz4(&block, 5).unwrap(), b"ababa");
        assert!(decode_lz4(&[0x2e, b'a', b'b', 3, 0], 100).is_err(), "before the beginning");
        assert!(decode_lz4(&[0x2e, b'a', b'b', 0, 0], 100).is_err(), "a distance of zero");
        assert!(decode_lz4(&[0xff, 255], 100).is_err(), "an incomplete length");
        assert!(decompress(LZ4, &[1, 2, 3], 10).is_err());
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_bytes_never_exceed_the_bound(bytes: Vec<u8>, flags: u8, bytes_max in 0_usize..300) {
            if let Ok((decoded, _)) = decompress(flags, &bytes, bytes_max) {
                proptest::prop_assert!(decoded.len() <= bytes_max);
            }
        }
    }
}
