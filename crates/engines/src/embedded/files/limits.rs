//! The bounds of looking at files, named in one place.

use std::time::Duration;

/// How far a database looks into its folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileLimits {
    /// Data files of a database at most; those beyond are not read, and the catalog says so.
    pub files_max: usize,
    /// Entries of folders that are looked at, whatever they are.
    pub entries_max: usize,
    /// Folders within folders.
    pub depth_max: usize,
    /// Files of one folder that are opened to learn its columns; of larger folders they are
    /// picked evenly.
    pub probed_files_max: usize,
    /// Rows of a text file that are read to learn its types, from its beginning.
    pub inferred_rows: usize,
    /// Bytes of a text file that one row, or all rows that are read to learn its types, may have.
    pub row_bytes_max: usize,
    /// Columns of a table at most.
    pub columns_max: usize,
    /// The least time between two looks at the folders. Looks that take long are spaced further
    /// apart; with zero each call looks.
    pub rescan_after: Duration,
}

impl Default for FileLimits {
    fn default() -> Self {
        Self {
            files_max: 20_000,
            entries_max: 100_000,
            depth_max: 16,
            probed_files_max: 64,
            inferred_rows: 2_000,
            row_bytes_max: 64 << 20,
            columns_max: 4_096,
            rescan_after: Duration::from_millis(200),
        }
    }
}
