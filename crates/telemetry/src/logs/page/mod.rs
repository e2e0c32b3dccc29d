//! Pages of entries in a total order, and the cursors between them.
//!
//! A page is right if the scan receives every row with the time of the cursor and every row with the time of the last
//! entry. A database that limits the rows itself must therefore include those with the same time as the last one
//! (`FETCH FIRST … ROWS WITH TIES`).

mod cursor;
mod entry_order;
mod entry_pool;
mod log_page;
mod seen_entries;

pub use cursor::{CURSOR_CHARACTERS_MAX, CursorError, LogCursor};
pub use entry_order::{EntryKey, EntryPositions, LogDirection, NO_TIME, SourceId, TieBreak};
pub use entry_pool::PAGE_BYTES_MAX;
pub use log_page::{LogEntry, LogPage};
pub use seen_entries::LISTED_ROWS_MAX;

pub(super) use entry_order::RowHasher;
pub(super) use entry_pool::EntryPool;
