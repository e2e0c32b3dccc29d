//! The total order of entries: by time, then by source, then by the position within the source.
//!
//! The files of a rotated log are renamed and compressed, and each has offsets of its own. A position in them is therefore
//! the identity of the file, which stays the same, and the offset.
//!
//! Where a source has no positions, a hash of the row takes their place. Rows with the same values have the same hash;
//! they are numbered, and cannot be distinguished otherwise.

use std::hash::Hasher;

use arrow::array::{Array, RecordBatch, UInt64Array};
use arrow::buffer::NullBuffer;
use siphasher::sip128::{Hasher128, SipHasher13};

use crate::logs::value::write_display_value;

/// The time in the order of an entry without one: before all others.
pub const NO_TIME: i64 = i64::MIN;

/// The identity of a source in cursors. It must be the same for each page, for example a hash of the source's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SourceId(pub u64);

/// The order in which entries are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogDirection {
    /// The newest entries first.
    #[default]
    Backward,
    /// The oldest entries first.
    Forward,
}

/// What orders the entries of one source that have the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TieBreak {
    /// The position within the whole source. It is unique, and new entries of the same time have larger ones. An offset
    /// in one of several files is none: use [`TieBreak::FilePosition`].
    Position(u128),
    /// The position within one of the files of the source. New entries of a file have larger offsets; a new file may have
    /// any identity.
    FilePosition {
        /// The identity of the file. It must not change when the file is renamed, compressed or grows.
        file: u64,
        /// The offset in the file.
        offset: u64,
    },
    /// A hash of the row's values.
    RowHash(u128),
}

/// The place of an entry in the total order. Rows with the same values in a source without positions have the same key,
/// and are numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryKey {
    /// The time in nanoseconds UTC, or [`NO_TIME`].
    pub time: i64,
    /// The source.
    pub source: SourceId,
    /// The order within the source.
    pub tie: TieBreak,
}

/// The positions of the rows of a batch.
#[derive(Debug, Clone, Copy)]
pub enum EntryPositions<'a> {
    /// A column with the positions. A row where it is null has position 0.
    Column(&'a UInt64Array),
    /// Columns with the identities of files and the offsets in them. Neither has nulls.
    InFiles {
        /// The identity of the file of each row.
        files: &'a UInt64Array,
        /// The offset of each row in its file.
        offsets: &'a UInt64Array,
    },
    /// The source has no positions. Each page must then be read from batches with the same columns.
    RowHash,
}

/// Hashes the rows of a batch. The hash depends on the names of the columns and the display form of the values, but not
/// on the order of the columns, their types or the division into batches. Null is the same as no column, and another value
/// than a text that is displayed like it.
pub(in crate::logs) struct RowHasher<'a> {
    batch: &'a RecordBatch,
    /// The nulls of each column, also those in the values of a dictionary; `None` before the first hash.
    nulls: Option<Vec<Option<NullBuffer>>>,
    text: String,
}

impl<'a> RowHasher<'a> {
    pub(in crate::logs) fn new(batch: &'a RecordBatch) -> Self {
        Self { batch, nulls: None, text: String::new() }
    }

    pub(in crate::logs) fn hash(&mut self, row: usize) -> u128 {
        let batch = self.batch;
        let nulls = self.nulls.get_or_insert_with(|| batch.columns().iter().map(Array::logical_nulls).collect());
        let mut sum: u128 = 0;
        for ((field, array), nulls) in batch.schema_ref().fields().iter().zip(batch.columns()).zip(nulls) {
            if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                continue;
            }
            self.text.clear();
            write_display_value(array.as_ref(), row, &mut self.text);
            // The keys are part of the format of cursors: the hash must be the same in every process.
            let mut hasher = SipHasher13::new_with_keys(0, 0);
            hasher.write(field.name().as_bytes());
            hasher.write_u8(0xff);
            hasher.write(self.text.as_bytes());
            sum = sum.wrapping_add(hasher.finish128().as_u128());
        }
        sum
    }
}

impl EntryPositions<'_> {
    /// What orders `row` within its source.
    pub(in crate::logs) fn tie(&self, row: usize, hasher: &mut RowHasher<'_>) -> TieBreak {
        match self {
            Self::Column(positions) if row < positions.len() && positions.is_valid(row) => {
                TieBreak::Position(u128::from(positions.value(row)))
            }
            Self::Column(_) => TieBreak::Position(0),
            Self::InFiles { files, offsets } => {
                let value = |column: &UInt64Array| if row < column.len() { column.value(row) } else { 0 };
                TieBreak::FilePosition { file: value(files), offset: value(offsets) }
            }
            Self::RowHash => TieBreak::RowHash(hasher.hash(row)),
        }
    }
}

impl LogDirection {
    /// Whether `one` comes before `other` when entries are read in this direction.
    pub(in crate::logs) fn is_before<T: Ord>(self, one: &T, other: &T) -> bool {
        match self {
            Self::Backward => one > other,
            Self::Forward => one < other,
        }
    }
}
