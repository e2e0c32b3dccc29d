//! Files in the folders of a database that are not tables, and what the operator can do about each kind.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read as _;

use super::probe::SuggestedOptions;

const NOTES_MAX: usize = 20;
const NAMES_LISTED_MAX: usize = 3;
/// How many forms of logs have a note with the options that read them.
const LOG_FORMS_MAX: usize = 8;
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

impl SkippedGroup {
    fn add(&mut self, location: &str) {
        self.count += 1;
        self.names.insert(location.to_owned());
        if self.names.len() > NAMES_LISTED_MAX {
            self.names.pop_last();
        }
    }

    fn list_names(&self) -> String {
        let more = match self.count - self.names.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        self.names.iter().map(String::as_str).collect::<Vec<_>>().join(", ") + &more
    }
}

/// Logs of no known format that the same options read.
#[derive(Debug, Clone, PartialEq, Eq)]
struct UnrecognizedLogs {
    suggested: SuggestedOptions,
    /// A file of the first of them.
    location: String,
    logs: usize,
    files: SkippedGroup,
}

/// The files that are not tables, grouped by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SkippedFiles {
    by_kind: BTreeMap<SkippedKind, SkippedGroup>,
    opened: usize,
    /// The first forms of logs of no known format.
    log_forms: Vec<UnrecognizedLogs>,
    /// The files of logs of other forms.
    more_logs: SkippedGroup,
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

    /// Counts the log whose files are at `locations`, the last of which is `location`, and have no known format. The options
    /// `suggested` would read it.
    pub(crate) fn add_unrecognized_log(
        &mut self,
        locations: &BTreeSet<String>,
        location: &str,
        suggested: &SuggestedOptions,
    ) {
        let is_same = |form: &UnrecognizedLogs| form.suggested.options == suggested.options;
        if self.log_forms.len() < LOG_FORMS_MAX && !self.log_forms.iter().any(is_same) {
            let (suggested, location) = (suggested.clone(), location.to_owned());
            self.log_forms.push(UnrecognizedLogs { suggested, location, logs: 0, files: SkippedGroup::default() });
        }
        let files = match self.log_forms.iter_mut().find(|form| is_same(form)) {
            Some(form) => {
                form.logs += 1;
                &mut form.files
            }
            None => &mut self.more_logs,
        };
        locations.iter().for_each(|location| files.add(location));
    }

    fn count(&mut self, kind: SkippedKind, location: &str) {
        self.by_kind.entry(kind).or_default().add(location);
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
            format!("skipped {}: {}", files.list_names(), kind.describe(first))
        });
        let of_logs = self.log_forms.iter().map(|form| {
            let others = if form.logs > 1 { ", and the others with the same options" } else { "" };
            let (names, advice) = (form.files.list_names(), form.suggested.declare(&form.location, others));
            format!("skipped {names}: unknown log format; {advice}")
        });
        let more = (self.more_logs.count > 0).then(|| {
            let names = self.more_logs.list_names();
            format!("skipped {names}: unknown log format; declare the logs above, and what reads these is shown")
        });
        of_kinds.chain(of_logs).chain(more)
    }
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
    fn logs_are_noted_by_their_form() {
        let mut skipped = SkippedFiles::default();
        let mut add = |name: String, options: &str| {
            let suggested = SuggestedOptions { options: options.to_owned(), doubt: None };
            skipped.add_unrecognized_log(&BTreeSet::from([format!("{name}.log")]), &format!("{name}.log"), &suggested);
        };
        for number in 1..=5 {
            add(format!("a{number}"), "pattern: x");
        }
        for number in 10..20 {
            add(format!("b{number}"), &format!("pattern: {number}"));
        }
        add("a6".to_owned(), "pattern: x");
        let lines: Vec<String> = skipped.lines().collect();
        assert_eq!(lines.len(), LOG_FORMS_MAX + 1);
        assert_eq!(
            lines[0],
            "skipped a1.log, a2.log, a3.log and 3 more: unknown log format; declare one, and the others with the same \
             options: in tidegate.yaml, under its database, tables: {a1: {pattern: x}}"
        );
        assert!(
            lines[1].starts_with("skipped b10.log: unknown log format; declare one: in tidegate.yaml"),
            "{lines:?}"
        );
        assert!(lines[8].starts_with("skipped b17.log, b18.log, b19.log: unknown log format; declare the logs above"));
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
