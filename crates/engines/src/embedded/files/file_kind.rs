//! Format and compression of a file, from its name.

use datafusion::datasource::file_format::file_compression_type::FileCompressionType;

/// The format that a file name indicates. The contents determine the details.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum NamedFormat {
    /// Delimited text; the delimiter is detected.
    Csv,
    /// Tab-delimited text.
    Tsv,
    /// An array of objects, or objects one after the other.
    Json,
    /// One JSON object per line.
    JsonLines,
    /// Apache Parquet.
    Parquet,
    /// Arrow IPC, file or stream.
    Arrow,
    /// An Excel workbook.
    Xlsx,
    /// A LibreOffice workbook.
    Ods,
}

impl NamedFormat {
    /// Whether rows may be appended to the file while it is served.
    pub(crate) fn may_grow(self) -> bool {
        matches!(self, Self::Csv | Self::Tsv | Self::Json | Self::JsonLines)
    }

    /// The format of the workbook. `None` for other formats.
    pub(crate) fn workbook(self) -> Option<WorkbookFormat> {
        match self {
            Self::Xlsx => Some(WorkbookFormat::Xlsx),
            Self::Ods => Some(WorkbookFormat::Ods),
            _ => None,
        }
    }
}

/// The format of a workbook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum WorkbookFormat {
    Xlsx,
    Ods,
}

/// The compression of a whole file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Compression {
    None,
    Gzip,
    Zstd,
    Bzip2,
    Xz,
}

impl Compression {
    pub(crate) fn to_datafusion(self) -> FileCompressionType {
        match self {
            Self::None => FileCompressionType::UNCOMPRESSED,
            Self::Gzip => FileCompressionType::GZIP,
            Self::Zstd => FileCompressionType::ZSTD,
            Self::Bzip2 => FileCompressionType::BZIP2,
            Self::Xz => FileCompressionType::XZ,
        }
    }
}

/// Format and compression that a file name indicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
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
    (Compression::Gzip, &["gz", "gzip"]),
    (Compression::Zstd, &["zst", "zstd"]),
    (Compression::Bzip2, &["bz2"]),
    (Compression::Xz, &["xz"]),
];

/// Splits a file name into the part before its extensions and the kind that the extensions indicate. `None` for files
/// that are not tables.
pub(crate) fn parse_file_name(file_name: &str) -> Option<(&str, FileKind)> {
    let (name, compression) = split_extension(file_name, COMPRESSIONS).unwrap_or((file_name, Compression::None));
    let (stem, format) = split_extension(name, FORMATS)?;
    (!stem.is_empty()).then_some((stem, FileKind { format, compression }))
}

fn split_extension<'a, T: Copy>(name: &'a str, meanings: &[(T, &[&str])]) -> Option<(&'a str, T)> {
    let (stem, extension) = name.rsplit_once('.')?;
    let (meaning, _) =
        meanings.iter().find(|(_, known)| known.iter().any(|one| extension.eq_ignore_ascii_case(one)))?;
    Some((stem, *meaning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_name_the_kind() {
        let kind = |format, compression| FileKind { format, compression };
        assert_eq!(parse_file_name("a.csv"), Some(("a", kind(NamedFormat::Csv, Compression::None))));
        assert_eq!(parse_file_name("a.b.TSV.Gz"), Some(("a.b", kind(NamedFormat::Tsv, Compression::Gzip))));
        assert_eq!(parse_file_name("x.jsonl.zst"), Some(("x", kind(NamedFormat::JsonLines, Compression::Zstd))));
        for other in ["README.md", "csv", ".csv", "a.gz", "a.csv.tmp", ""] {
            assert_eq!(parse_file_name(other), None, "{other}");
        }
    }
}
