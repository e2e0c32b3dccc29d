//! A journal file, the objects in it, and its fields, without reading its entries; why a file, or a part of one, cannot be read.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::blocks::{BlockReader, read_exact_at};
use crate::compression::{decompress, is_compressed};
use crate::header::{FileHeader, HEADER_BYTES, Id128, hash_value, read_id, read_u32, read_u64};

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
