//! The limits for scanning and probing files.

use std::time::Duration;

/// The limits for the folders and files of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileLimits {
    /// Maximum number of data files of a database. Further files are not read, and the catalog reports it.
    pub files_max: usize,
    /// Maximum number of folder entries of any kind that are read.
    pub entries_max: usize,
    /// Maximum depth of nested folders.
    pub depth_max: usize,
    /// Maximum number of files of one folder that are opened to detect its columns. In larger folders, evenly spaced
    /// files are chosen.
    pub probed_files_max: usize,
    /// Number of rows at the beginning of a text file that are read to detect its types, unless all are.
    pub inferred_rows: usize,
    /// The size up to which all rows of a text file are read to detect its types.
    pub fully_inferred_bytes: u64,
    /// Maximum number of bytes of one row of a text file.
    pub row_bytes_max: usize,
    /// Maximum number of columns of a table.
    pub columns_max: usize,
    /// How long the tables of a scan are used for statements whose own files are unchanged. After slow scans it is
    /// longer. Zero: each call scans.
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
            fully_inferred_bytes: 8 << 20,
            row_bytes_max: 64 << 20,
            columns_max: 4_096,
            rescan_after: Duration::from_millis(200),
        }
    }
}
