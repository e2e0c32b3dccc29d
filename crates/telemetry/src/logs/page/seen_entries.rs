//! Which entries of one time were returned by earlier pages.
//!
//! A page may end between entries with the same time, and entries with that time may be added later. For each source, a
//! cursor therefore keeps what was returned of its time. For a source with positions, that is the last position, and for
//! one of several files the last offset in each of them: a file that begins after a rotation may come before the others
//! in the order. For a source without positions, it is a list of row hashes; appended rows have any hash, so that a
//! threshold would skip some of them. Only if a list becomes too long, a threshold replaces it.

use std::collections::BTreeMap;

use super::cursor::LogCursor;
use super::entry_order::{LogDirection, SourceId, TieBreak};

/// The maximum number of different rows with the time of a cursor that it lists. With more, rows of a source without
/// positions that are appended with exactly this time are skipped if their hash is below the largest of those returned.
/// It is also the maximum number of files with entries of this time, for which the same applies.
pub const LISTED_ROWS_MAX: usize = 32;

/// The entries of one source with the time of a cursor that were returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::logs) enum SeenAtTime {
    /// All up to this position, in the direction of the cursor.
    Position(u128),
    /// All up to an offset in each file. Nothing of the other files was returned.
    Files(BTreeMap<u64, u64>),
    /// All up to this offset in this file, in the direction of the cursor.
    UpToFilePosition {
        /// The identity of the file.
        file: u64,
        /// The offset of the last entry in it.
        offset: u64,
    },
    /// Rows by their hash, with the number of those with the same hash.
    Rows(BTreeMap<u128, u64>),
    /// All up to the row with this hash and number, in the direction of the cursor.
    UpToRow {
        /// The hash of the row.
        hash: u128,
        /// Its number among rows with the same hash, from 0.
        ordinal: u64,
    },
}

impl LogCursor {
    /// Adds a row with the time of the cursor, whose number is the next one among those with the same hash.
    pub(in crate::logs) fn add_next(&mut self, source: SourceId, tie: TieBreak) {
        let ordinal = match (self.sources.get(&source), tie) {
            (Some(SeenAtTime::Rows(rows)), TieBreak::RowHash(hash)) => rows.get(&hash).copied().unwrap_or(0),
            (Some(SeenAtTime::UpToRow { hash: last, ordinal }), TieBreak::RowHash(hash)) if hash == *last => {
                ordinal + 1
            }
            _ => 0,
        };
        self.add(source, tie, ordinal);
    }

    /// Adds a row that was returned with the time of the cursor; `ordinal` is its number among those with the same hash.
    pub(in crate::logs) fn add(&mut self, source: SourceId, tie: TieBreak, ordinal: u64) {
        let direction = self.direction;
        match (self.sources.get_mut(&source), tie) {
            (None, TieBreak::Position(position)) => {
                self.sources.insert(source, SeenAtTime::Position(position));
            }
            (None, TieBreak::FilePosition { file, offset }) => {
                let seen = match direction {
                    LogDirection::Forward => SeenAtTime::Files(BTreeMap::from([(file, offset)])),
                    LogDirection::Backward => SeenAtTime::UpToFilePosition { file, offset },
                };
                self.sources.insert(source, seen);
            }
            (None, TieBreak::RowHash(hash)) => {
                let seen = match direction {
                    LogDirection::Forward => SeenAtTime::Rows(BTreeMap::from([(hash, ordinal + 1)])),
                    LogDirection::Backward => SeenAtTime::UpToRow { hash, ordinal },
                };
                self.sources.insert(source, seen);
            }
            (Some(SeenAtTime::Position(last)), TieBreak::Position(position)) => {
                if direction.is_before(last, &position) {
                    *last = position;
                }
            }
            (
                Some(SeenAtTime::UpToFilePosition { file: last_file, offset: last }),
                TieBreak::FilePosition { file, offset },
            ) => {
                if direction.is_before(&(*last_file, *last), &(file, offset)) {
                    (*last_file, *last) = (file, offset);
                }
            }
            (Some(seen @ SeenAtTime::Files(_)), TieBreak::FilePosition { file, offset }) => {
                seen.add_file_position(file, offset);
            }
            (Some(SeenAtTime::UpToRow { hash: last, ordinal: last_ordinal }), TieBreak::RowHash(hash)) => {
                if direction.is_before(&(*last, *last_ordinal), &(hash, ordinal)) {
                    (*last, *last_ordinal) = (hash, ordinal);
                }
            }
            (Some(seen @ SeenAtTime::Rows(_)), TieBreak::RowHash(hash)) => seen.add_row(hash, ordinal),
            // A source has positions for all of its rows or for none.
            (Some(_), _) => {}
        }
    }
}

impl SeenAtTime {
    fn add_file_position(&mut self, file: u64, offset: u64) {
        let Self::Files(files) = self else { return };
        let last = files.entry(file).or_insert(offset);
        *last = (*last).max(offset);
        if files.len() > LISTED_ROWS_MAX
            && let Some((file, offset)) = files.pop_last()
        {
            *self = Self::UpToFilePosition { file, offset };
        }
    }

    fn add_row(&mut self, hash: u128, ordinal: u64) {
        let Self::Rows(rows) = self else { return };
        let count = rows.entry(hash).or_default();
        *count = (*count).max(ordinal + 1);
        if rows.len() > LISTED_ROWS_MAX
            && let Some((hash, count)) = rows.pop_last()
        {
            *self = Self::UpToRow { hash, ordinal: count.saturating_sub(1) };
        }
    }
}

/// Skips the rows that earlier pages returned. Each row that matches is offered once.
#[derive(Debug, Clone)]
pub(super) struct SeenFilter {
    pub(super) cursor: LogCursor,
    /// The number of rows offered, for the hashes where the number decides.
    offered: BTreeMap<(SourceId, u128), u64>,
}

impl SeenFilter {
    pub(super) fn new(cursor: LogCursor) -> Self {
        Self { cursor, offered: BTreeMap::new() }
    }

    /// The number that a row with the time of the cursor has among those with the same hash, unless it was returned.
    pub(super) fn admit(&mut self, source: SourceId, tie: TieBreak) -> Option<u64> {
        let direction = self.cursor.direction;
        let (hash, seen_rows) = match (self.cursor.sources.get(&source), tie) {
            (Some(SeenAtTime::Position(last)), TieBreak::Position(position)) => {
                return direction.is_before(last, &position).then_some(0);
            }
            (Some(SeenAtTime::Files(files)), TieBreak::FilePosition { file, offset }) => {
                return files.get(&file).is_none_or(|last| *last < offset).then_some(0);
            }
            (
                Some(SeenAtTime::UpToFilePosition { file: last_file, offset: last }),
                TieBreak::FilePosition { file, offset },
            ) => {
                return direction.is_before(&(*last_file, *last), &(file, offset)).then_some(0);
            }
            (Some(SeenAtTime::Rows(rows)), TieBreak::RowHash(hash)) => match rows.get(&hash) {
                Some(count) => (hash, *count),
                None => return Some(0),
            },
            (Some(SeenAtTime::UpToRow { hash: last, ordinal }), TieBreak::RowHash(hash)) if hash == *last => {
                (hash, *ordinal)
            }
            (Some(SeenAtTime::UpToRow { hash: last, .. }), TieBreak::RowHash(hash)) => {
                return direction.is_before(last, &hash).then_some(0);
            }
            _ => return Some(0),
        };
        let offered = self.offered.entry((source, hash)).or_default();
        let ordinal = *offered;
        *offered += 1;
        let is_new = match (direction, self.cursor.sources.get(&source)) {
            (LogDirection::Backward, _) => ordinal < seen_rows,
            (LogDirection::Forward, Some(SeenAtTime::UpToRow { .. })) => ordinal > seen_rows,
            (LogDirection::Forward, _) => ordinal >= seen_rows,
        };
        is_new.then_some(ordinal)
    }
}
