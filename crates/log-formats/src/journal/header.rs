//! The header of a journal file, and the hashes of values: keyed by the file (SipHash-2-4), or those of older files (Bob
//! Jenkins' lookup3).

use std::fmt;

use siphasher::sip::SipHasher24;

/// The signature of journal files.
const SIGNATURE: &[u8; 8] = b"LPKSHHRH";
/// The size of the first version of the header; later versions have further members.
const HEADER_BYTES_MIN: u64 = 208;
/// The bytes that are read as the header.
pub(crate) const HEADER_BYTES: usize = 272;

const KEYED_HASH: u32 = 1 << 2;
const COMPACT: u32 = 1 << 4;
/// XZ, LZ4, keyed hashes, Zstandard and compact offsets.
const SUPPORTED_FLAGS: u32 = 0b1_1111;

/// The last state: a file that is full, and never written again.
const STATE_ARCHIVED: u8 = 2;

/// A UUID of a machine, a boot, a file or a sequence of numbers. It is displayed as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Id128(pub [u8; 16]);

impl fmt::Display for Id128 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for Id128 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The header of a journal file, as it was when the file was opened. Times are in microseconds since 1970.
#[derive(Debug, Clone)]
pub struct FileHeader {
    incompatible_flags: u32,
    /// Identifies the file, whatever its name.
    pub file_id: Id128,
    /// Identifies the sequence that numbers the entries; files of one writer share it.
    pub seqnum_id: Id128,
    pub(crate) header_size: u64,
    pub(crate) used_size: u64,
    pub(crate) data_hash_table: (u64, u64),
    pub(crate) field_hash_table: (u64, u64),
    /// The number of entries.
    pub entries: u64,
    /// The sequence number of the first entry.
    pub head_seqnum: u64,
    /// The sequence number of the last entry.
    pub tail_seqnum: u64,
    pub(crate) entry_array_offset: u64,
    /// The time of the first entry.
    pub head_realtime: u64,
    /// The time of the last entry.
    pub tail_realtime: u64,
}

impl FileHeader {
    /// Parses the beginning of a file of `file_size` bytes.
    pub(crate) fn parse(bytes: &[u8], file_size: u64) -> Result<Self, String> {
        if bytes.get(..8) != Some(SIGNATURE) {
            return Err("is not a journal file: it does not begin with LPKSHHRH".to_owned());
        }
        let word = |offset| read_u64(bytes, offset).ok_or_else(|| "its header is incomplete".to_owned());
        let id = |offset| read_id(bytes, offset).ok_or_else(|| "its header is incomplete".to_owned());
        let incompatible_flags = read_u32(bytes, 12).ok_or("its header is incomplete")?;
        let unknown = incompatible_flags & !SUPPORTED_FLAGS;
        if unknown != 0 {
            return Err(format!("has features that are not supported (incompatible flags {unknown:#x})"));
        }
        let state = bytes.get(16).copied().unwrap_or_default();
        if state > STATE_ARCHIVED {
            return Err(format!("has an unknown state ({state})"));
        }
        let (header_size, arena_size) = (word(88)?, word(96)?);
        if header_size < HEADER_BYTES_MIN || header_size > file_size {
            return Err(format!("has a header of {header_size} bytes, which is not possible"));
        }
        let declared = header_size.saturating_add(arena_size);
        Ok(Self {
            incompatible_flags,
            file_id: id(24)?,
            seqnum_id: id(72)?,
            header_size,
            // A truncated file is read as far as it goes.
            used_size: declared.min(file_size),
            data_hash_table: (word(104)?, word(112)?),
            field_hash_table: (word(120)?, word(128)?),
            entries: word(152)?,
            tail_seqnum: word(160)?,
            head_seqnum: word(168)?,
            entry_array_offset: word(176)?,
            head_realtime: word(184)?,
            tail_realtime: word(192)?,
        })
    }

    fn is_keyed_hash(&self) -> bool {
        self.incompatible_flags & KEYED_HASH != 0
    }

    pub(crate) fn is_compact(&self) -> bool {
        self.incompatible_flags & COMPACT != 0
    }
}

pub(crate) fn read_u32(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(offset..offset.checked_add(4)?)?.try_into().ok()?))
}

pub(crate) fn read_u64(bytes: &[u8], offset: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(offset..offset.checked_add(8)?)?.try_into().ok()?))
}

pub(crate) fn read_id(bytes: &[u8], offset: usize) -> Option<Id128> {
    Some(Id128(bytes.get(offset..offset.checked_add(16)?)?.try_into().ok()?))
}

/// The hash of `value` in the file of `header`.
pub(crate) fn hash_value(header: &FileHeader, value: &[u8]) -> u64 {
    if header.is_keyed_hash() { SipHasher24::new_with_key(&header.file_id.0).hash(value) } else { lookup3(value) }
}

/// The two hashes of lookup3 as one number, the first in the upper half.
fn lookup3(bytes: &[u8]) -> u64 {
    let start = 0xdead_beef_u32.wrapping_add(bytes.len() as u32);
    let (mut a, mut b, mut c) = (start, start, start);
    let mut rest = bytes;
    while let Some((block, further)) = rest.split_at_checked(12).filter(|(_, further)| !further.is_empty()) {
        let [x, y, z] = words(block);
        (a, b, c) = mix(a.wrapping_add(x), b.wrapping_add(y), c.wrapping_add(z));
        rest = further;
    }
    if !rest.is_empty() {
        let [x, y, z] = words(rest);
        (b, c) = finish(a.wrapping_add(x), b.wrapping_add(y), c.wrapping_add(z));
    }
    u64::from(c) << 32 | u64::from(b)
}

/// Up to twelve bytes as three numbers, filled with zeros.
fn words(bytes: &[u8]) -> [u32; 3] {
    let mut words = [0_u32; 3];
    for (word, chunk) in words.iter_mut().zip(bytes.chunks(4)) {
        *word = chunk.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
    }
    words
}

fn mix(mut a: u32, mut b: u32, mut c: u32) -> (u32, u32, u32) {
    for (first, second, third) in [(4, 6, 8), (16, 19, 4)] {
        a = a.wrapping_sub(c) ^ c.rotate_left(first);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(second);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(third);
        b = b.wrapping_add(a);
    }
    (a, b, c)
}

fn finish(mut a: u32, mut b: u32, mut c: u32) -> (u32, u32) {
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    c = (c ^ b).wrapping_sub(b.rotate_left(24));
    (b, c)
}

#[cfg(test)]
mod tests {
    use super::lookup3;

    /// The vectors that its author published.
    #[test]
    fn lookup3_of_known_texts() {
        assert_eq!(lookup3(b""), 0xdead_beef_dead_beef);
        assert_eq!(lookup3(b"Four score and seven years ago"), 0x1777_0551_ce72_26e6);
    }
}
