//! Files in the folders of a database that are not tables, and what the operator can do about each kind.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read as _;

/// Maximum number of file names in a note.
const NAMES_SHOWN_MAX: usize = 3;
/// Maximum number of files that are opened to detect their kind.
const OPENED_MAX: usize = 64;

/// Why a file is not a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum SkipReason {
    Sqlite,
    DuckDb,
    OldWorkbook,
    Columnar,
    Archive,
    Document,
    Database,
    Unknown,
}

impl SkipReason {
    /// The kind of the files, and what the operator can do.
    fn describe(self, first: &str) -> String {
        match self {
            Self::Sqlite => format!(
                "SQLite database: serve it as another database (tidegate serve . {first}), or write sqlite: {first} \
                 under databases"
            ),
            Self::DuckDb => {
                "DuckDB database: not supported; export its tables as Parquet (COPY t TO 't.parquet')".to_owned()
            }
            Self::OldWorkbook => "unsupported workbook format; save it as .xlsx, .ods or .csv".to_owned(),
            Self::Columnar => "unsupported format; convert it to Parquet".to_owned(),
            Self::Archive => "archive, not read; unpack it".to_owned(),
            Self::Document => "document, not a table".to_owned(),
            Self::Database => "unsupported database format; export its tables as CSV or Parquet".to_owned(),
            Self::Unknown => "unsupported format".to_owned(),
        }
    }
}

const REASONS_BY_EXTENSION: &[(&str, SkipReason)] = &[
    ("sqlite", SkipReason::Sqlite),
    ("sqlite3", SkipReason::Sqlite),
    ("db3", SkipReason::Sqlite),
    ("gpkg", SkipReason::Sqlite),
    ("duckdb", SkipReason::DuckDb),
    ("ddb", SkipReason::DuckDb),
    ("xls", SkipReason::OldWorkbook),
    ("xlsb", SkipReason::OldWorkbook),
    ("numbers", SkipReason::OldWorkbook),
    ("orc", SkipReason::Columnar),
    ("avro", SkipReason::Columnar),
    ("dta", SkipReason::Columnar),
    ("sav", SkipReason::Columnar),
    ("sas7bdat", SkipReason::Columnar),
    ("rds", SkipReason::Columnar),
    ("rdata", SkipReason::Columnar),
    ("h5", SkipReason::Columnar),
    ("hdf5", SkipReason::Columnar),
    ("pkl", SkipReason::Columnar),
    ("xml", SkipReason::Columnar),
    ("zip", SkipReason::Archive),
    ("tar", SkipReason::Archive),
    ("tgz", SkipReason::Archive),
    ("7z", SkipReason::Archive),
    ("rar", SkipReason::Archive),
    ("mdb", SkipReason::Database),
    ("accdb", SkipReason::Database),
    ("dbf", SkipReason::Database),
    ("sql", SkipReason::Database),
    ("dump", SkipReason::Database),
    ("pdf", SkipReason::Document),
    ("doc", SkipReason::Document),
    ("docx", SkipReason::Document),
    ("odt", SkipReason::Document),
    ("ppt", SkipReason::Document),
    ("pptx", SkipReason::Document),
    ("txt", SkipReason::Document),
    ("md", SkipReason::Document),
    ("html", SkipReason::Document),
    ("htm", SkipReason::Document),
    ("rtf", SkipReason::Document),
    ("png", SkipReason::Document),
    ("jpg", SkipReason::Document),
    ("jpeg", SkipReason::Document),
    ("svg", SkipReason::Document),
    ("yaml", SkipReason::Document),
    ("yml", SkipReason::Document),
    ("toml", SkipReason::Document),
];

/// Temporary files and files that belong to a database. No note mentions them.
const IGNORED_EXTENSIONS: &[&str] = &["tmp", "part", "crc", "lock", "wal", "shm", "journal", "bak", "swp"];

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct SkippedGroup {
    count: usize,
    /// The first of them, in order of names.
    names: BTreeSet<String>,
}

/// The files that are not tables, grouped by reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SkippedFiles {
    by_reason: BTreeMap<SkipReason, SkippedGroup>,
    opened: usize,
}

impl SkippedFiles {
    /// Counts the file at `location`. `open` opens it if its name does not identify its kind.
    pub(crate) fn add(&mut self, location: &str, open: impl FnOnce() -> Option<File>) {
        let file_name = location.rsplit('/').next().unwrap_or(location);
        let ending = file_name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
        let ending = ending.as_deref().unwrap_or_default();
        // Spark and others write their bookkeeping to files such as `_SUCCESS`; SQLite keeps `-wal` beside its file.
        let is_silent =
            IGNORED_EXTENSIONS.iter().any(|silent| ending == *silent || ending.ends_with(&format!("-{silent}")));
        if file_name.starts_with('_') || file_name.starts_with('~') || file_name.ends_with('~') || is_silent {
            return;
        }
        let known = REASONS_BY_EXTENSION.iter().find(|(known, _)| *known == ending).map(|(_, reason)| *reason);
        let reason = known.unwrap_or_else(|| self.detect_reason(open));
        let files = self.by_reason.entry(reason).or_default();
        files.count += 1;
        files.names.insert(location.to_owned());
        if files.names.len() > NAMES_SHOWN_MAX {
            files.names.pop_last();
        }
    }

    /// Detects the kind of a file with an unknown extension by its first bytes.
    fn detect_reason(&mut self, open: impl FnOnce() -> Option<File>) -> SkipReason {
        if self.opened == OPENED_MAX {
            return SkipReason::Unknown;
        }
        self.opened += 1;
        let mut beginning = Vec::new();
        let read = open().and_then(|file| file.take(16).read_to_end(&mut beginning).ok());
        match read {
            Some(16) if beginning == b"SQLite format 3\0" => SkipReason::Sqlite,
            Some(16) if &beginning[8..12] == b"DUCK" => SkipReason::DuckDb,
            _ => SkipReason::Unknown,
        }
    }

    /// One line for each reason.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        self.by_reason.iter().map(|(reason, files)| {
            let names = files.names.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            let more = match files.count - files.names.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let first = files.names.first().map(String::as_str).unwrap_or_default();
            format!("skipped {names}{more}: {}", reason.describe(first))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_skipped_files_by_reason() {
        let mut skipped = SkippedFiles::default();
        for location in ["a.pdf", "b.docx", "sub/c.md", "d.txt", "shop.sqlite", "old.xls", "_SUCCESS", "x.csv.tmp"] {
            skipped.add(location, || None);
        }
        let lines: Vec<String> = skipped.lines().collect();
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert!(lines[0].starts_with("skipped shop.sqlite: SQLite database: serve it"), "{lines:?}");
        assert!(lines[1].contains("save it as .xlsx"), "{lines:?}");
        assert_eq!(lines[2], "skipped a.pdf, b.docx, d.txt and 1 more: document, not a table");
    }

    #[test]
    fn detects_database_by_its_first_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let mut skipped = SkippedFiles::default();
        for (name, bytes) in
            [("a.db", &b"SQLite format 3\0 and more"[..]), ("b.db", b"12345678DUCK....more"), ("c", b"x")]
        {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            skipped.add(name, || File::open(&path).ok());
        }
        let reasons: Vec<SkipReason> = skipped.by_reason.keys().copied().collect();
        assert_eq!(reasons, [SkipReason::Sqlite, SkipReason::DuckDb, SkipReason::Unknown]);
    }
}
