//! Folders whose bookkeeping says which of their files have the rows of a table.
//!
//! Read as plain files, such a folder has rows that were deleted or replaced. Delta tables are read as their log says; folders
//! of other formats are refused by name.

use std::fs;
use std::path::Path;

/// A format of tables that consist of data files and bookkeeping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LakeFormat {
    Delta,
    Hudi,
    Iceberg,
}

/// The end of the names of files that describe an Iceberg table.
const ICEBERG_SUFFIX: &str = ".metadata.json";
/// How many files are searched for one.
const METADATA_FILES_MAX: usize = 10_000;

impl LakeFormat {
    /// The format of the table in `folder`, by the folders in it.
    pub(crate) fn detect(folder: &Path) -> Option<Self> {
        if folder.join("_delta_log").is_dir() {
            return Some(Self::Delta);
        }
        if folder.join(".hoodie").is_dir() {
            return Some(Self::Hudi);
        }
        let files = fs::read_dir(folder.join("metadata")).into_iter().flatten().take(METADATA_FILES_MAX).flatten();
        let mut names = files.map(|file| file.file_name());
        let has_metadata = names.any(|name| name.to_string_lossy().ends_with(ICEBERG_SUFFIX));
        has_metadata.then_some(Self::Iceberg)
    }

    /// Why tables of this format are not read. `None` if they are.
    pub(crate) fn refusal(self) -> Option<String> {
        let name = match self {
            Self::Delta => return None,
            Self::Hudi => "Hudi",
            Self::Iceberg => "Iceberg",
        };
        Some(format!("{name} tables are not read; export its rows as Parquet files into a folder of their own"))
    }
}
