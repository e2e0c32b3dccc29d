//! Files in the folders of a database that are not tables, and what the operator can do about each kind.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read as _;

const NOTES_MAX: usize = 20;
const NAMES_LISTED_MAX: usize = 3;
const OPENED_MAX: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum SkippedKind {
    Sqlite,
    DuckDb,
    OldWorkbook,
    Columnar,
    Archive,
    Document,
    Database,
    Unknown,
}

impl SkippedKind {
    fn describe(self, first: &str) -> String {
        let text = match self {
            Self::Sqlite => {
                return format!(
                    "SQLite database: serve it as another database (tidegate serve . {first}), or write sqlite: \
                     {first} under databases"
                );
            }
            Self::DuckDb => "DuckDB database: not supported; export its tables as Parquet (COPY t TO 't.parquet')",
            Self::OldWorkbook => "unsupported workbook format; save it as .xlsx, .ods or .csv, without a password",
            Self::Columnar => "unsupported format; convert it to Parquet",
            Self::Archive => "archive, not read; unpack it",
            Self::Document => "document, not a table",
            Self::Database => "unsupported database format; export its tables as CSV or Parquet",
            Self::Unknown => "unsupported format",
        };
        text.to_owned()
    }
}

const EXTENSIONS: &[(SkippedKind, &[&str])] = &[
    (SkippedKind::Sqlite, &["sqlite", "sqlite3", "db3", "gpkg"]),
    (SkippedKind::DuckDb, &["duckdb", "ddb"]),
    (SkippedKind::OldWorkbook, &["xls", "xlsb", "numbers"]),
    (SkippedKind::Columnar, &["orc", "avro", "dta", "sav", "sas7bdat", "rds", "rdata", "h5", "hdf5", "pkl", "xml"]),
    (SkippedKind::Archive, &["zip", "tar", "tgz", "7z", "rar"]),
    (SkippedKind::Database, &["mdb", "accdb", "dbf", "sql", "dump"]),
    (
        SkippedKind::Document,
        &[
            "pdf", "doc", "docx", "odt", "ppt", "pptx", "txt", "md", "html", "htm", "rtf", "png", "jpg", "jpeg", "svg",
            "yaml", "yml", "toml",
        ],
    ),
];

/// Temporary files and files that belong to a database. No note mentions them.
const IGNORED_EXTENSIONS: &[&str] = &["tmp", "part", "crc", "lock", "wal", "shm", "journal", "bak", "swp"];

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct SkippedGroup {
    count: usize,
    /// The first of them, in order of names.
    names: BTreeSet<String>,
}

/// The files that are not tables, grouped by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SkippedFiles {
    by_kind: BTreeMap<SkippedKind, SkippedGroup>,
    opened: usize,
    logs: usize,
    /// How the first logs of no known format can be read.
    log_declarations: BTreeMap<String, String>,
}

impl SkippedFiles {
    /// Counts the file at `location`. `open` opens it if its name does not identify its kind.
    pub(crate) fn add(&mut self, location: &str, open: impl FnOnce() -> Option<File>) {
        let file_name = location.rsplit('/').next().unwrap_or(location);
        let extension = file_name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
        let extension = extension.as_deref().unwrap_or_default();
        // Spark and others write their bookkeeping to files such as `_SUCCESS`; SQLite keeps `-wal` beside its file.
        let is_silent =
            IGNORED_EXTENSIONS.iter().any(|silent| extension == *silent || extension.ends_with(&format!("-{silent}")));
        if file_name.starts_with('_') || file_name.starts_with('~') || file_name.ends_with('~') || is_silent {
            return;
        }
        let named = EXTENSIONS.iter().find(|(_, extensions)| extensions.contains(&extension)).map(|(kind, _)| *kind);
        let kind = named.unwrap_or_else(|| self.detect_kind(open));
        self.count(kind, location);
    }

    /// Counts the log whose files are at `locations` and have no known format. `declaration` would read it.
    pub(crate) fn add_unrecognized_log(&mut self, locations: BTreeSet<String>, declaration: &str) {
        self.logs += 1;
        let names = list_names(locations.iter().take(NAMES_LISTED_MAX), locations.len());
        self.log_declarations.insert(names, format!("unknown log format; declare one: {declaration}"));
        if self.log_declarations.len() > NAMES_LISTED_MAX {
            self.log_declarations.pop_last();
        }
    }

    fn count(&mut self, kind: SkippedKind, location: &str) {
        let files = self.by_kind.entry(kind).or_default();
        files.count += 1;
        files.names.insert(location.to_owned());
        if files.names.len() > NAMES_LISTED_MAX {
            files.names.pop_last();
        }
    }

    /// Detects the kind of a file with an unknown extension by its first bytes.
    fn detect_kind(&mut self, open: impl FnOnce() -> Option<File>) -> SkippedKind {
        if self.opened == OPENED_MAX {
            return SkippedKind::Unknown;
        }
        self.opened += 1;
        let mut beginning = Vec::new();
        let read = open().and_then(|file| file.take(16).read_to_end(&mut beginning).ok());
        match read {
            Some(16) if beginning == b"SQLite format 3\0" => SkippedKind::Sqlite,
            Some(16) if &beginning[8..12] == b"DUCK" => SkippedKind::DuckDb,
            _ => SkippedKind::Unknown,
        }
    }

    /// Adds the lines of these files to `notes` of the catalog, and limits their number.
    pub(crate) fn add_notes(&self, notes: &mut Vec<String>) {
        let skipped: Vec<String> = self.lines().collect();
        let room = NOTES_MAX.saturating_sub(skipped.len() + 1);
        if notes.len() > room + 1 {
            let more = notes.len() - room;
            notes.truncate(room);
            notes.push(format!("and {more} more folders"));
        }
        notes.extend(skipped);
    }

    fn lines(&self) -> impl Iterator<Item = String> {
        let of_kinds = self.by_kind.iter().map(|(kind, files)| {
            let first = files.names.first().map(String::as_str).unwrap_or_default();
            format!("skipped {}: {}", list_names(files.names.iter(), files.count), kind.describe(first))
        });
        let of_logs = self.log_declarations.iter().map(|(names, advice)| format!("skipped {names}: {advice}"));
        let more_logs = self.logs - self.log_declarations.len();
        let more = (more_logs > 0).then(|| format!("skipped {more_logs} more logs: unknown log format"));
        of_kinds.chain(of_logs).chain(more)
    }
}

/// The names, and how many more of `count` there are.
fn list_names<'a>(names: impl ExactSizeIterator<Item = &'a String>, count: usize) -> String {
    let more = match count - names.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    names.map(String::as_str).collect::<Vec<_>>().join(", ") + &more
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_skipped_files_by_kind() {
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
        let reasons: Vec<SkippedKind> = skipped.by_kind.keys().copied().collect();
        assert_eq!(reasons, [SkippedKind::Sqlite, SkippedKind::DuckDb, SkippedKind::Unknown]);
    }
}
