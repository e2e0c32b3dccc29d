//! Cursors as text: a position in the total order of entries, with a direction.
//!
//! The text is base64url over a version, the position, and a checksum. The checksum finds damage and cursors of another
//! request; it is no signature, and a cursor gives no rights.
//!
//! A page may end between entries with the same time, and entries with that time may be added later. For each source, a
//! cursor therefore keeps what was returned of its time. For a source with positions, that is the last position, and
//! for one of several files the last offset in each of them: a file that begins after a rotation may come before the
//! others in the order. For a source without positions, it is a list of row hashes; appended rows have any hash, so
//! that a threshold would skip some of them. Only if a list becomes too long, a threshold replaces it.

use std::collections::BTreeMap;
use std::hash::Hasher;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use siphasher::sip::SipHasher13;
use thiserror::Error;

use super::entry_order::{EntryKey, LogDirection, SourceId, TieBreak};

/// The maximum length of a cursor as text.
pub const CURSOR_CHARACTERS_MAX: usize = 16_384;

const VERSION: u8 = 2;
const CHECKSUM_BYTES: usize = 6;
const KIND_POSITION: u8 = 0;
const KIND_ROWS: u8 = 1;
const KIND_UP_TO_ROW: u8 = 2;
const KIND_FILES: u8 = 3;
const KIND_UP_TO_FILE_POSITION: u8 = 4;

/// A position between two entries, from which a page continues: the entries of one time that were returned, for each
/// source. Entries that are added later are neither skipped nor repeated if they are newer, or have the time of the cursor
/// and come later in their source. Entries that are added with an earlier time or without one are only found going
/// backward.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogCursor {
    pub(super) direction: LogDirection,
    pub(super) time: i64,
    sources: BTreeMap<SourceId, SeenAtTime>,
}

/// A text that is no cursor of this request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum CursorError {
    /// The text was changed, cut, or never was a cursor.
    #[error("the cursor is damaged; send it exactly as an answer contained it, or leave it out to start again")]
    Damaged,
    /// The cursor has another version of the format.
    #[error("the cursor is of version {0}, which this server does not read; leave it out to start again")]
    Version(u8),
    /// The cursor belongs to another source or search.
    #[error("the cursor belongs to another request; repeat the request that it came from, or leave it out")]
    OtherRequest,
}

impl LogCursor {
    /// The position at an entry: what follows it in the direction. `ordinal` is its number among rows with the same key.
    /// In a source without positions, and in a file that begins later, rows that are added with the time of the entry may be
    /// on either side of it; a cursor of a page does not have this limit.
    pub fn at_entry(direction: LogDirection, key: EntryKey, ordinal: u64) -> Self {
        let at_time = match key.tie {
            TieBreak::Position(position) => SeenAtTime::Position(position),
            TieBreak::FilePosition { file, offset } => SeenAtTime::UpToFilePosition { file, offset },
            TieBreak::RowHash(hash) => SeenAtTime::UpToRow { hash, ordinal },
        };
        let sources = BTreeMap::from([(key.source, at_time)]);
        Self { direction, time: key.time, sources }
    }

    /// The position before all entries at `time` in nanoseconds UTC.
    pub fn at_time(direction: LogDirection, time: i64) -> Self {
        Self { direction, time, sources: BTreeMap::new() }
    }

    /// The entry that the cursor follows in its direction, with its number among those with the same key. `None` if it
    /// follows no entry, or several of its time that have no order.
    pub fn entry(&self) -> Option<(EntryKey, u64)> {
        let mut sources = self.sources.iter();
        let (source, seen) = sources.next().filter(|_| sources.next().is_none())?;
        let (tie, ordinal) = match seen {
            SeenAtTime::Position(position) => (TieBreak::Position(*position), 0),
            SeenAtTime::UpToFilePosition { file, offset } => {
                (TieBreak::FilePosition { file: *file, offset: *offset }, 0)
            }
            SeenAtTime::UpToRow { hash, ordinal } => (TieBreak::RowHash(*hash), *ordinal),
            SeenAtTime::Files(files) => {
                let (file, offset) = files.first_key_value().filter(|_| files.len() == 1)?;
                (TieBreak::FilePosition { file: *file, offset: *offset }, 0)
            }
            SeenAtTime::Rows(rows) => {
                let (hash, count) = rows.first_key_value().filter(|_| rows.len() == 1)?;
                (TieBreak::RowHash(*hash), count.checked_sub(1)?)
            }
        };
        Some((EntryKey { time: self.time, source: *source, tie }, ordinal))
    }

    /// The direction in which the cursor continues.
    pub fn direction(&self) -> LogDirection {
        self.direction
    }

    /// The time of the last entry before the cursor in nanoseconds UTC, or [`NO_TIME`](super::NO_TIME). In the direction of the cursor, only entries
    /// with this time and those after it are needed for the next page.
    pub fn time(&self) -> i64 {
        self.time
    }

    /// The cursor as text. `scope` identifies the request, for example as a hash of its sources and its filters.
    pub fn encode(&self, scope: u64) -> String {
        let mut bytes = vec![VERSION, u8::from(self.direction == LogDirection::Forward)];
        bytes.extend(scope_tag(scope));
        bytes.extend(self.time.to_be_bytes());
        for (source, seen) in &self.sources {
            bytes.extend(source.0.to_be_bytes());
            match seen {
                SeenAtTime::Position(position) => {
                    bytes.push(KIND_POSITION);
                    write_number(*position, &mut bytes);
                }
                SeenAtTime::Files(files) => {
                    bytes.push(KIND_FILES);
                    write_number(files.len() as u128, &mut bytes);
                    for (file, offset) in files {
                        bytes.extend(file.to_be_bytes());
                        write_number(u128::from(*offset), &mut bytes);
                    }
                }
                SeenAtTime::UpToFilePosition { file, offset } => {
                    bytes.push(KIND_UP_TO_FILE_POSITION);
                    bytes.extend(file.to_be_bytes());
                    write_number(u128::from(*offset), &mut bytes);
                }
                SeenAtTime::Rows(rows) => {
                    bytes.push(KIND_ROWS);
                    write_number(rows.len() as u128, &mut bytes);
                    for (hash, count) in rows {
                        bytes.extend(hash.to_be_bytes());
                        write_number(u128::from(*count), &mut bytes);
                    }
                }
                SeenAtTime::UpToRow { hash, ordinal } => {
                    bytes.push(KIND_UP_TO_ROW);
                    bytes.extend(hash.to_be_bytes());
                    write_number(u128::from(*ordinal), &mut bytes);
                }
            }
        }
        bytes.extend(checksum(&bytes));
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Reads a cursor that [`Self::encode`] wrote with the same `scope`.
    ///
    /// # Errors
    /// If the text is no cursor, or one of another request or version.
    pub fn decode(text: &str, scope: u64) -> Result<Self, CursorError> {
        let text = text.trim();
        if text.len() > CURSOR_CHARACTERS_MAX {
            return Err(CursorError::Damaged);
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| CursorError::Damaged)?;
        let body = bytes.len().checked_sub(CHECKSUM_BYTES).and_then(|length| bytes.split_at_checked(length));
        let (body, _) = body.filter(|(body, sum)| checksum(body) == *sum).ok_or(CursorError::Damaged)?;
        let mut reader = Reader(body);
        match reader.byte() {
            Some(VERSION) => {}
            Some(version) => return Err(CursorError::Version(version)),
            None => return Err(CursorError::Damaged),
        }
        let direction = match reader.byte() {
            Some(0) => LogDirection::Backward,
            Some(1) => LogDirection::Forward,
            _ => return Err(CursorError::Damaged),
        };
        if reader.array() != Some(scope_tag(scope)) {
            return Err(CursorError::OtherRequest);
        }
        reader.read_cursor(direction).ok_or(CursorError::Damaged)
    }
}

fn scope_tag(scope: u64) -> [u8; 4] {
    let [.., a, b, c, d] = (scope ^ (scope >> 32)).to_be_bytes();
    [a, b, c, d]
}

fn checksum(bytes: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let mut hasher = SipHasher13::new_with_keys(1, u64::from(VERSION));
    hasher.write(bytes);
    let [a, b, c, d, e, f, ..] = hasher.finish().to_be_bytes();
    [a, b, c, d, e, f]
}

/// Seven bits per byte, the lowest first; the eighth bit marks that another byte follows.
fn write_number(mut number: u128, bytes: &mut Vec<u8>) {
    while number >= 0x80 {
        // The lowest seven bits fit a byte.
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<u128> {
        let mut number: u128 = 0;
        for shift in (0..u128::BITS).step_by(7) {
            let byte = self.byte()?;
            number |= u128::from(byte & 0x7f).checked_shl(shift)?;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn count(&mut self) -> Option<u64> {
        u64::try_from(self.number()?).ok()
    }

    fn read_cursor(&mut self, direction: LogDirection) -> Option<LogCursor> {
        let time = i64::from_be_bytes(self.array()?);
        let mut sources = BTreeMap::new();
        while !self.0.is_empty() {
            let source = SourceId(u64::from_be_bytes(self.array()?));
            let seen = match self.byte()? {
                KIND_POSITION => SeenAtTime::Position(self.number()?),
                KIND_ROWS => SeenAtTime::Rows(self.rows()?),
                KIND_FILES => SeenAtTime::Files(self.files()?),
                KIND_UP_TO_FILE_POSITION => {
                    SeenAtTime::UpToFilePosition { file: u64::from_be_bytes(self.array()?), offset: self.count()? }
                }
                KIND_UP_TO_ROW => {
                    SeenAtTime::UpToRow { hash: u128::from_be_bytes(self.array()?), ordinal: self.count()? }
                }
                _ => return None,
            };
            sources.insert(source, seen);
        }
        Some(LogCursor { direction, time, sources })
    }

    fn files(&mut self) -> Option<BTreeMap<u64, u64>> {
        let length = self.length()?;
        (0..length).map(|_| Some((u64::from_be_bytes(self.array()?), self.count()?))).collect()
    }

    fn length(&mut self) -> Option<u64> {
        self.count().filter(|length| *length <= LISTED_ROWS_MAX as u64)
    }

    fn rows(&mut self) -> Option<BTreeMap<u128, u64>> {
        let length = self.length()?;
        (0..length).map(|_| Some((u128::from_be_bytes(self.array()?), self.count()?))).collect()
    }
}

/// The maximum number of different rows with the time of a cursor that it lists. With more, rows of a source without
/// positions that are appended with exactly this time are skipped if their hash is below the largest of those returned.
/// It is also the maximum number of files with entries of this time, for which the same applies.
pub const LISTED_ROWS_MAX: usize = 32;

/// The entries of one source with the time of a cursor that were returned.
#[derive(Debug, Clone, PartialEq, Eq)]
enum SeenAtTime {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cursors() -> impl Strategy<Value = LogCursor> {
        let seen = prop_oneof![
            any::<u128>().prop_map(SeenAtTime::Position),
            prop::collection::btree_map(any::<u64>(), any::<u64>(), 0..8).prop_map(SeenAtTime::Files),
            (any::<u64>(), any::<u64>()).prop_map(|(file, offset)| SeenAtTime::UpToFilePosition { file, offset }),
            prop::collection::btree_map(any::<u128>(), any::<u64>(), 0..8).prop_map(SeenAtTime::Rows),
            (any::<u128>(), any::<u64>()).prop_map(|(hash, ordinal)| SeenAtTime::UpToRow { hash, ordinal }),
        ];
        let sources = prop::collection::btree_map(any::<u64>().prop_map(SourceId), seen, 0..4);
        (any::<bool>(), any::<i64>(), sources).prop_map(|(forward, time, sources)| {
            let direction = if forward { LogDirection::Forward } else { LogDirection::Backward };
            LogCursor { direction, time, sources }
        })
    }

    proptest! {
        #[test]
        fn cursors_are_read_back(cursor in cursors(), scope in any::<u64>()) {
            prop_assert_eq!(LogCursor::decode(&cursor.encode(scope), scope), Ok(cursor));
        }

        #[test]
        fn damage_is_found(cursor in cursors(), index in any::<prop::sample::Index>(), letter in "[A-Za-z0-9_-]") {
            let text = cursor.encode(7);
            let mut damaged: Vec<char> = text.chars().collect();
            damaged[index.index(text.len())] = letter.chars().next().unwrap();
            let damaged: String = damaged.into_iter().collect();
            if damaged != text {
                prop_assert_eq!(LogCursor::decode(&damaged, 7), Err(CursorError::Damaged));
            }
        }

        #[test]
        fn no_text_panics(text in "[A-Za-z0-9_=+/ -]{0,60}") {
            prop_assert!(LogCursor::decode(&text, 0).is_err());
        }
    }

    #[test]
    fn the_entry_of_a_cursor_is_the_one_that_it_follows() {
        let ties =
            [(TieBreak::Position(7), 0), (TieBreak::FilePosition { file: 3, offset: 9 }, 0), (TieBreak::RowHash(5), 2)];
        for (tie, ordinal) in ties {
            let key = EntryKey { time: 1, source: SourceId(4), tie };
            for direction in [LogDirection::Forward, LogDirection::Backward] {
                assert_eq!(LogCursor::at_entry(direction, key, ordinal).entry(), Some((key, ordinal)));
                let mut cursor = LogCursor::at_time(direction, 1);
                cursor.add(SourceId(4), tie, ordinal);
                assert_eq!(cursor.entry(), Some((key, ordinal)));
                cursor.add(SourceId(5), tie, ordinal);
                assert_eq!(cursor.entry(), None);
            }
        }
        assert_eq!(LogCursor::at_time(LogDirection::Forward, 1).entry(), None);
    }

    #[test]
    fn a_cursor_is_short_and_belongs_to_its_request() {
        let key = EntryKey { time: 5, source: SourceId(1), tie: TieBreak::Position(1_000_000) };
        let text = LogCursor::at_entry(LogDirection::Forward, key, 0).encode(1);
        assert_eq!(text.len(), 43);
        assert_eq!(LogCursor::decode(&text, 2), Err(CursorError::OtherRequest));
    }
}
