//! The files of systemd journals, read without `journalctl` or its library.
//!
//! - [`Journal::open`] opens the files of folders as they are at one moment: files that grow, are rotated or are removed
//!   while they are read give each entry once.
//! - [`Journal::read`] reads entries in the order of the journal, forward or backward. Ranges of time are found
//!   by bisection. Filters by values use the lists of entries that the files contain for each value.
//! - A file has positions of objects everywhere. Each is checked before it is followed, and each list must ascend, so that
//!   a corrupted file is an error at a position and never a loop. What cannot be read is an item among the entries
//!   ([`ReadEntry::Defect`]), and the other files are read on.
//! - Memory is bounded per open file: blocks of the file, and a cache of values that several entries share.
//!
//! XZ, LZ4 and Zstandard, keyed and older hashes, and compact files are supported. Seals are not verified.
//!
//! # Why not a library
//!
//! `sdjournal` 0.1.15 does not open a truncated file, refuses an entry of which one value is too large, and collects the
//! errors of a damaged file without a bound. It orders entries by time only, not as `journalctl` does. With filters, it
//! reads all matching entries from the first one, whatever the time. It decompresses every value of each entry, also those
//! that are not needed. The library that it needs for XZ cannot be linked beside `liblzma`, which other crates need.
//!
//! [Journal File Format](https://systemd.io/JOURNAL_FILE_FORMAT/)

mod file;
mod folder;
mod header;
mod order;
mod query;
mod values;

pub use file::{EntryHead, JournalError, JournalFile};
pub use folder::{Journal, is_journal_path, list_files};
pub use header::{FileHeader, Id128};
pub use order::{CheckedFiles, position};
pub use query::{FieldMatch, JournalQuery, JournalReader, ReadEntry};
pub use values::{FieldSelection, FieldValue};
