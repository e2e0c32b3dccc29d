//! Format and compression of a file, from its name.

use super::rotated_logs::{is_log_name, rotated_logs_glob};

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
}
