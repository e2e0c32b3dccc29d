//! Rows of data files that are deleted: deletion vectors.
//!
//! A deletion vector is a set of positions in a file, as a Roaring bitmap of 64 bits in its portable format. It is in the
//! action that adds the file, or beside those of other files in a file of the table.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

use roaring::RoaringTreemap;
use uuid::Uuid;

use super::action::DeletionVector;
use super::log_files::log_folder;
use super::snapshot::path_below_table;
use super::{DeltaError, FileAccess};

/// What the bytes of a deletion vector begin with, as a number with its lowest byte first.
const MAGIC: u32 = 1_681_511_377;
/// More bytes are not read.
const BYTES_MAX: u64 = 256 << 20;
/// The number of the length before the bytes in a file, and of the checksum after them.
const NUMBER_BYTES: u64 = 4;
/// The characters of a UUID at the end of the name of a file.
const UUID_CHARACTERS: usize = 20;
/// The digits of numbers to the base 85, as ZeroMQ has them.
const DIGITS: &[u8; 85] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

/// Positions of rows in a data file that are not rows of the table.
#[derive(Debug, Clone, PartialEq)]
pub struct DeletedRows(RoaringTreemap);

impl DeletedRows {
    /// The number of deleted rows.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The position of the last one. `None` if there is none.
    #[must_use]
    pub fn last(&self) -> Option<u64> {
        self.0.max()
    }

    /// The positions as ranges, ascending. No range is empty.
    pub fn ranges(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.0.bitmaps().flat_map(|(high, bitmap)| {
            let (first, mut rows) = (u64::from(high) << 32, bitmap.iter());
            std::iter::from_fn(move || {
                let range = rows.next_range()?;
                Some(first + u64::from(*range.start())..first + u64::from(*range.end()) + 1)
            })
        })
    }

    /// Reads what an action of the log refers to.
    pub(super) fn read(table: &Path, vector: &DeletionVector, open: FileAccess<'_>) -> Result<Self, DeltaError> {
        let text = vector.path_or_inline_dv.as_str();
        let (path, bytes) = match vector.storage_type.as_str() {
            "i" => {
                let path = log_folder(table);
                let bytes = decode_base_85(text).filter(|bytes| bytes.len() as u64 >= vector.size_in_bytes);
                let mut bytes =
                    bytes.ok_or_else(|| DeltaError::corrupt(&path, "a deletion vector has other digits"))?;
                bytes.truncate(usize::try_from(vector.size_in_bytes).unwrap_or(usize::MAX));
                (path, bytes)
            }
            "u" => {
                let name = file_name(text).ok_or_else(|| {
                    DeltaError::corrupt(&log_folder(table), format!("\"{text}\" names no deletion vector"))
                })?;
                let path = table.join(path_below_table(&name)?);
                let bytes = read_part(&path, vector, open)?;
                (path, bytes)
            }
            "p" => {
                return Err(DeltaError::OutsideOfTable(text.to_owned()));
            }
            other => return Err(DeltaError::UnsupportedFeature(format!("deletion vector of the kind {other}"))),
        };
        let rows = parse(&bytes).map_err(|reason| DeltaError::corrupt(&path, reason))?;
        if rows.len() != vector.cardinality {
            let reason = format!("it has {} deleted rows, but the log has {}", rows.len(), vector.cardinality);
            return Err(DeltaError::corrupt(&path, reason));
        }
        Ok(Self(rows))
    }
}

fn parse(bytes: &[u8]) -> Result<RoaringTreemap, String> {
    let (magic, bitmap) = bytes.split_first_chunk().ok_or("a deletion vector is too short")?;
    if u32::from_le_bytes(*magic) != MAGIC {
        return Err("a deletion vector has an unknown format".to_owned());
    }
    RoaringTreemap::deserialize_from(bitmap).map_err(|error| format!("a deletion vector: {error}"))
}

/// The path of the file with the UUID at the end of `text`. What is before it is the name of a folder.
fn file_name(text: &str) -> Option<String> {
    let (folder, digits) = text.split_at_checked(text.len().checked_sub(UUID_CHARACTERS)?)?;
    let uuid = Uuid::from_slice(&decode_base_85(digits)?).ok()?;
    let name = format!("deletion_vector_{uuid}.bin");
    Some(if folder.is_empty() { name } else { format!("{folder}/{name}") })
}

/// The bytes of a deletion vector in a file with several.
fn read_part(path: &Path, vector: &DeletionVector, open: FileAccess<'_>) -> Result<Vec<u8>, DeltaError> {
    let mut file = open(path).map_err(DeltaError::io(path))?;
    let bytes_in_file = file.metadata().map_err(DeltaError::io(path))?.len();
    let (offset, length) = (vector.offset.unwrap_or_default(), vector.size_in_bytes);
    let end = offset.checked_add(length).and_then(|end| end.checked_add(2 * NUMBER_BYTES));
    if length > BYTES_MAX || end.is_none_or(|end| end > bytes_in_file) {
        let reason = format!("it has {bytes_in_file} bytes, and no deletion vector of {length} bytes at {offset}");
        return Err(DeltaError::corrupt(path, reason));
    }
    file.seek(SeekFrom::Start(offset)).map_err(DeltaError::io(path))?;
    let length_in_file = read_number(&mut file).map_err(DeltaError::io(path))?;
    let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
    file.read_exact(&mut bytes).map_err(DeltaError::io(path))?;
    let checksum = read_number(&mut file).map_err(DeltaError::io(path))?;
    if u64::from(length_in_file) != length || checksum != crc32fast::hash(&bytes) {
        return Err(DeltaError::corrupt(path, format!("the deletion vector at {offset} is not that of the log")));
    }
    Ok(bytes)
}

fn read_number(file: &mut File) -> std::io::Result<u32> {
    let mut bytes = [0; NUMBER_BYTES as usize];
    file.read_exact(&mut bytes)?;
    Ok(u32::from_be_bytes(bytes))
}

/// The bytes of a text in which five digits are four bytes, the highest first.
fn decode_base_85(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 5 * 4);
    let mut groups = text.as_bytes().chunks_exact(5);
    for group in groups.by_ref() {
        let digit = |digit: &u8| DIGITS.iter().position(|known| known == digit);
        let number = group.iter().try_fold(0_u64, |number, next| Some(number * 85 + digit(next)? as u64))?;
        bytes.extend_from_slice(&u32::try_from(number).ok()?.to_be_bytes());
    }
    groups.remainder().is_empty().then_some(bytes)
}
