//! Format and compression of a file, from its name; and which log files are one log.

use std::collections::{BTreeMap, HashSet};

use tidegate_log_formats::group_rotated_logs;

use super::walk::DataFile;

pub(crate) use datafusion::common::parsers::CompressionTypeVariant as Compression;

/// The format that a file name indicates. The contents determine the details.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum NamedFormat {
    /// Delimited text; the delimiter is detected.
    Csv,
    /// Tab-delimited text.
    Tsv,
    /// An array of objects, or objects one after the other.
    Json,
    JsonLines,
    Parquet,
    /// Arrow IPC, file or stream.
    Arrow,
    Xlsx,
    Ods,
    /// A log file. Its name may also belong to other text.
    Log,
}

impl NamedFormat {
    pub(crate) fn may_grow(self) -> bool {
        matches!(self, Self::Csv | Self::Tsv | Self::Json | Self::JsonLines | Self::Log)
    }

    pub(crate) fn is_workbook(self) -> bool {
        matches!(self, Self::Xlsx | Self::Ods)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileKind {
    pub(crate) format: NamedFormat,
    pub(crate) compression: Compression,
}

const FORMATS: &[(NamedFormat, &[&str])] = &[
    (NamedFormat::Csv, &["csv"]),
    (NamedFormat::Tsv, &["tsv", "tab"]),
    (NamedFormat::Json, &["json"]),
    (NamedFormat::JsonLines, &["ndjson", "jsonl"]),
    (NamedFormat::Parquet, &["parquet", "pq"]),
    (NamedFormat::Arrow, &["arrow", "arrows", "feather", "ipc"]),
    (NamedFormat::Xlsx, &["xlsx", "xlsm"]),
    (NamedFormat::Ods, &["ods"]),
];

const COMPRESSIONS: &[(Compression, &[&str])] = &[
    (Compression::GZIP, &["gz", "gzip"]),
    (Compression::ZSTD, &["zst", "zstd"]),
    (Compression::BZIP2, &["bz2"]),
    (Compression::XZ, &["xz"]),
];

/// Splits a file name into the part before its extensions and the kind that the extensions indicate. `None` for files
/// that are not tables.
pub(crate) fn parse_file_name(file_name: &str) -> Option<(&str, FileKind)> {
    let (name, compression) = split_compression(file_name);
    match split_extension(name, FORMATS) {
        Some((stem, format)) => (!stem.is_empty()).then_some((stem, FileKind { format, compression })),
        None => {
            let base_name = name.rsplit('/').next().unwrap_or(name);
            is_log_name(base_name).then_some((name, FileKind { format: NamedFormat::Log, compression }))
        }
    }
}

/// The glob for the files that are read like the one called `file_name`: `*.csv`, `*.csv.gz`, and `*.log*` for the rotated
/// files of logs. `None` for files that are not tables.
pub fn table_glob(file_name: &str) -> Option<String> {
    let (stem, kind) = parse_file_name(file_name)?;
    Some(match kind.format {
        NamedFormat::Log => rotated_logs_glob(stem),
        _ => format!("*{}", file_name.get(stem.len()..)?),
    })
}

/// The kind of a file that the configuration declares as a log. `None` if it has a format that is no text.
pub(crate) fn declared_log_kind(file_name: &str) -> Option<FileKind> {
    let (name, compression) = split_compression(file_name);
    let is_text = split_extension(name, FORMATS).is_none_or(|(_, format)| format.may_grow());
    is_text.then_some(FileKind { format: NamedFormat::Log, compression })
}

/// Splits a file name into the part before the ending of its compression, and the compression.
pub(crate) fn split_compression(file_name: &str) -> (&str, Compression) {
    split_extension(file_name, COMPRESSIONS).unwrap_or((file_name, Compression::UNCOMPRESSED))
}

fn split_extension<'a, T: Copy>(name: &'a str, meanings: &[(T, &[&str])]) -> Option<(&'a str, T)> {
    let (stem, extension) = name.rsplit_once('.')?;
    let is_named = |extensions: &[&str]| extensions.iter().any(|one| extension.eq_ignore_ascii_case(one));
    meanings.iter().find(|(_, extensions)| is_named(extensions)).map(|(meaning, _)| (stem, *meaning))
}

/// Names of logs that do not end in `.log`, as they are in `/var/log`.
const SYSTEM_LOG_NAMES: &[&str] = &[
    "auth",
    "boot",
    "cron",
    "daemon",
    "debug",
    "kern",
    "mail.err",
    "mail.info",
    "mail.warn",
    "maillog",
    "messages",
    "secure",
    "syslog",
    "user",
];
/// How names of logs end: `app.log`, and `access_log` of Apache.
const LOG_NAME_ENDINGS: &[&str] = &[".log", "_log"];
/// Endings of compressions that are not read.
const UNREAD_COMPRESSIONS: &[&str] = &[".lz4", ".Z", ".br"];

/// The files of one log in a folder, from the oldest to the newest, with the name of its table.
pub(super) struct LogFiles {
    pub(super) table: String,
    pub(super) files: Vec<DataFile>,
}

/// Whether a file with this name, without folders and without the ending of its compression, is probably a log, and
/// which may be rotated.
fn is_log_name(name: &str) -> bool {
    if UNREAD_COMPRESSIONS.iter().any(|ending| name.ends_with(ending)) {
        return false;
    }
    let base_name = log_base_name(name).to_ascii_lowercase();
    let has_ending = |ending: &&str| base_name.len() > ending.len() && base_name.ends_with(*ending);
    SYSTEM_LOG_NAMES.contains(&base_name.as_str()) || LOG_NAME_ENDINGS.iter().any(has_ending)
}

/// The glob for the files of the log called `name` and of those whose names end like it. Files of one log must match one
/// glob, because each glob is a folder of its own.
fn rotated_logs_glob(name: &str) -> String {
    let base_name = log_base_name(name);
    let folded = base_name.to_ascii_lowercase();
    let ending = LOG_NAME_ENDINGS.iter().find(|ending| folded.ends_with(**ending));
    match ending.and_then(|ending| base_name.get(base_name.len() - ending.len()..)) {
        Some(ending) => format!("*{ending}*"),
        None => format!("{base_name}*"),
    }
}

/// The name of the file that is written, of the log that the file called `name` belongs to.
pub(super) fn log_base_name(name: &str) -> String {
    group_rotated_logs([name]).pop().map_or_else(|| name.to_owned(), |log| log.base_name)
}

/// The name of the table of a log file, without folders: that of its log.
pub(super) fn log_table_name(file_name: &str) -> String {
    let (name, _) = split_compression(file_name);
    group_rotated_logs([name]).pop().map_or_else(|| name.to_owned(), |log| log.table)
}

/// Takes the log files out of the files of one folder, and groups them by log.
pub(super) fn take_logs(files: &mut Vec<DataFile>) -> Vec<LogFiles> {
    let (logs, others) = std::mem::take(files).into_iter().partition(|file| file.kind.format == NamedFormat::Log);
    *files = others;
    let logs: Vec<DataFile> = logs;
    let names: Vec<String> = logs.iter().map(|file| file.file_name().to_owned()).collect();
    let mut by_name: BTreeMap<String, DataFile> = names.iter().cloned().zip(logs).collect();
    let groups = group_rotated_logs(names.iter().map(String::as_str));
    let groups = groups.into_iter().map(|log| {
        let mut files: Vec<DataFile> = log.files.iter().filter_map(|name| by_name.remove(name)).collect();
        remove_links(&mut files);
        LogFiles { table: log.table, files }
    });
    groups.filter(|log| !log.files.is_empty()).collect()
}

/// Two names of one file would give its lines twice: `current.log` is often a link to the newest file.
fn remove_links(files: &mut Vec<DataFile>) {
    let mut seen = HashSet::new();
    files.retain(|file| {
        file.version.as_ref().ok().and_then(|version| version.file_id()).is_none_or(|id| seen.insert(id))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_files_of_one_kind() {
        for (name, glob) in [
            ("a.csv", "*.csv"),
            ("a.b.TSV.Gz", "*.TSV.Gz"),
            ("a.json", "*.json"),
            ("app.log", "*.log*"),
            ("app-20240101.log.gz", "*.log*"),
            ("app.log.2.gz", "*.log*"),
            ("error_log-20240301", "*_log*"),
            ("syslog.1", "syslog*"),
        ] {
            assert_eq!(table_glob(name).as_deref(), Some(glob), "{name}");
        }
        assert_eq!(table_glob("README.md"), None);
    }

    #[test]
    fn extensions_name_the_kind() {
        let kind = |format, compression| FileKind { format, compression };
        assert_eq!(parse_file_name("a.csv"), Some(("a", kind(NamedFormat::Csv, Compression::UNCOMPRESSED))));
        assert_eq!(parse_file_name("a.b.TSV.Gz"), Some(("a.b", kind(NamedFormat::Tsv, Compression::GZIP))));
        assert_eq!(parse_file_name("x.jsonl.zst"), Some(("x", kind(NamedFormat::JsonLines, Compression::ZSTD))));
        assert_eq!(parse_file_name("a.log.2.gz"), Some(("a.log.2", kind(NamedFormat::Log, Compression::GZIP))));
        assert_eq!(
            parse_file_name("var/syslog"),
            Some(("var/syslog", kind(NamedFormat::Log, Compression::UNCOMPRESSED)))
        );
        for other in ["README.md", "csv", ".csv", "a.gz", "a.csv.tmp", ""] {
            assert_eq!(parse_file_name(other), None, "{other}");
        }
    }

    #[test]
    fn names_of_logs() {
        for name in [
            "access.log",
            "access.log.1",
            "app-20240101.log",
            "app.log-20240102",
            "access_log",
            "error_log-20240301",
            "syslog",
            "syslog.1",
            "messages-20240301",
            "mail.err",
            "ERROR.LOG",
            "auth.log.old",
        ] {
            assert!(is_log_name(name), "{name}");
        }
        for name in ["notes.txt", "log", ".log", "catalog", "access.log.lz4", "access.log.1.bak", "blog", "README"] {
            assert!(!is_log_name(name), "{name}");
        }
        assert_eq!(log_table_name("access.log.2.gz"), "access");
        assert_eq!(log_table_name("messages-20240301"), "messages");
    }
}
