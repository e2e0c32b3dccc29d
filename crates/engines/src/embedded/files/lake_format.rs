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

/// Whether a file has a name of Iceberg's: `v3.metadata.json`, or `00003-….metadata.json`.
fn is_iceberg_metadata(name: &str) -> bool {
    let version = name.strip_suffix(ICEBERG_SUFFIX).map(|stem| stem.strip_prefix('v').unwrap_or(stem));
    version.is_some_and(|version| version.starts_with(|first: char| first.is_ascii_digit()))
}

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
        names.any(|name| is_iceberg_metadata(&name.to_string_lossy())).then_some(Self::Iceberg)
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

#[cfg(test)]
mod tests {
    use super::is_iceberg_metadata;

    #[test]
    fn only_names_of_iceberg_count() {
        assert!(is_iceberg_metadata("v3.metadata.json"));
        assert!(is_iceberg_metadata("00003-5fba94ed-9794-4965-ba6e-6ee3c0d22af9.metadata.json"));
        assert!(!is_iceberg_metadata("app.metadata.json") && !is_iceberg_metadata("1.json"));
    }
}
