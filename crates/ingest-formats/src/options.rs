//! How a body is written, and what is done with rows that do not fit.

use std::collections::BTreeMap;

use arrow::datatypes::TimeUnit;

/// The usual media types of [`BodyFormat`], for messages and documentation. [`BodyFormat::from_media_type`] has more.
pub const BODY_MEDIA_TYPES: &[&str] = &[
    "application/json",
    "application/x-ndjson",
    "application/ndjson",
    "application/jsonl",
    "text/csv",
    TAB_SEPARATED,
    "application/vnd.apache.arrow.stream",
    "application/vnd.apache.arrow.file",
    "application/vnd.apache.parquet",
];
/// The names of [`BodyCoding`], for messages and documentation.
pub const BODY_CODING_NAMES: &[&str] = &["identity", "gzip", "zstd"];

const TAB_SEPARATED: &str = "text/tab-separated-values";

/// How the rows of a body are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BodyFormat {
    /// One JSON document: an array of objects, or one object.
    Json,
    /// One JSON object per line.
    Ndjson,
    /// Comma-separated values, with [`CsvSyntax`].
    Csv,
    /// The stream of Arrow IPC, or its file, which is read as a stream.
    Arrow,
    /// A Parquet file. It is read from the end, so [`crate::BodyDecoder`] refuses it; see [`crate::ParquetBody`].
    Parquet,
}

/// How a body is compressed: the values of `Content-Encoding`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum BodyCoding {
    /// Not compressed.
    #[default]
    Identity,
    /// One or several members of gzip.
    Gzip,
    /// One or several frames of zstd.
    Zstd,
}

/// What a row that does not fit does to the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RejectMode {
    /// The body is refused.
    #[default]
    All,
    /// The row is left out and reported; the others are accepted.
    Row,
}

/// What a member or column does that the table does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum UnknownColumns {
    /// It is refused.
    #[default]
    Refuse,
    /// It becomes a new column, nullable, with a type that is inferred from its values.
    Add,
}

/// How bytes are written in JSON and CSV.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum BinaryText {
    /// Base64 with the standard alphabet, with or without padding.
    #[default]
    Base64,
    /// Two hexadecimal digits for each byte, with or without `\x` before them.
    Hex,
}

/// The variant of CSV.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvSyntax {
    /// Separates fields. ASCII, and neither a quote nor a line break.
    pub delimiter: u8,
    /// Encloses fields; doubled within them.
    pub quote: u8,
    /// Whether the first line has the names of the columns. Without it, the fields are the columns of the table in order.
    pub has_header: bool,
    /// A field without quotes and with this text is null.
    pub null_text: String,
    /// Whether a last line without line break is refused, because the body may have been cut in it.
    pub requires_final_line_break: bool,
}

impl Default for CsvSyntax {
    /// RFC 4180: commas, double quotes, a header; an empty field without quotes is null.
    fn default() -> Self {
        Self {
            delimiter: b',',
            quote: b'"',
            has_header: true,
            null_text: String::new(),
            requires_final_line_break: false,
        }
    }
}

/// The bounds of one body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyLimits {
    /// The largest row in its format, in bytes: a line, an object of an array, a record of CSV.
    pub row_bytes_max: usize,
    /// The largest batch of an Arrow stream, in bytes, also after decompression.
    pub message_bytes_max: usize,
    /// The maximum number of columns, with those that are added.
    pub columns_max: usize,
    /// The maximum number of rows of a batch.
    pub batch_rows_max: usize,
    /// A batch ends once its rows have about so many bytes.
    pub batch_bytes: usize,
    /// The largest body after decompression, in bytes.
    pub decompressed_bytes_max: u64,
    /// How many times larger than its compressed form a body may be. It applies to bodies of more than 16 MiB.
    pub expansion_max: u64,
}

impl Default for BodyLimits {
    /// Rows of 16 MiB, batches of 64 MiB in Arrow, 2,000 columns, batches of 8,192 rows or 8 MiB, 1 TiB in all, 500 times the compressed size.
    fn default() -> Self {
        Self {
            row_bytes_max: 16 << 20,
            message_bytes_max: 64 << 20,
            columns_max: 2_000,
            batch_rows_max: 8_192,
            batch_bytes: 8 << 20,
            decompressed_bytes_max: 1 << 40,
            expansion_max: 500,
        }
    }
}

/// Everything about a body that its bytes do not say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyOptions {
    /// How the rows are written.
    pub format: BodyFormat,
    /// How the body is compressed.
    pub coding: BodyCoding,
    /// What a row that does not fit does to the others.
    pub reject_mode: RejectMode,
    /// What a column does that the table does not have.
    pub unknown_columns: UnknownColumns,
    /// The variant of CSV.
    pub csv: CsvSyntax,
    /// How bytes are written in JSON and CSV.
    pub binary_text: BinaryText,
    /// Columns of timestamps that take numbers in JSON and CSV: the name of the column, and the unit since 1970. In other
    /// columns, numbers are rejected as timestamps.
    pub epoch_units: BTreeMap<String, TimeUnit>,
    /// The bounds.
    pub limits: BodyLimits,
}

impl BodyOptions {
    /// Options for a body that is not compressed, with the default of each.
    #[must_use]
    pub fn new(format: BodyFormat) -> Self {
        Self {
            format,
            coding: BodyCoding::default(),
            reject_mode: RejectMode::default(),
            unknown_columns: UnknownColumns::default(),
            csv: CsvSyntax::default(),
            binary_text: BinaryText::default(),
            epoch_units: BTreeMap::new(),
            limits: BodyLimits::default(),
        }
    }

    /// Options for a body with this media type, or nothing if no format has it. Tab-separated values are CSV with tabs.
    #[must_use]
    pub fn from_media_type(media_type: &str) -> Option<Self> {
        let mut options = Self::new(BodyFormat::from_media_type(media_type)?);
        if essence(media_type) == TAB_SEPARATED {
            options.csv.delimiter = b'\t';
        }
        Some(options)
    }
}

impl BodyFormat {
    /// The name, for messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Ndjson => "ndjson",
            Self::Csv => "csv",
            Self::Arrow => "arrow",
            Self::Parquet => "parquet",
        }
    }

    /// The format of a media type such as `text/csv; charset=utf-8`, or nothing if no format has it.
    #[must_use]
    pub fn from_media_type(media_type: &str) -> Option<Self> {
        match essence(media_type).as_str() {
            "application/json" | "text/json" => Some(Self::Json),
            "application/x-ndjson"
            | "application/ndjson"
            | "application/jsonl"
            | "application/x-jsonlines"
            | "application/json-lines"
            | "application/jsonlines" => Some(Self::Ndjson),
            "text/csv" | "application/csv" | TAB_SEPARATED => Some(Self::Csv),
            "application/vnd.apache.arrow.stream" | "application/vnd.apache.arrow.file" => Some(Self::Arrow),
            "application/vnd.apache.parquet" | "application/x-parquet" => Some(Self::Parquet),
            _ => None,
        }
    }
}

impl BodyCoding {
    /// The coding with this name in `Content-Encoding`, or nothing if it is unknown. An empty name is `identity`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Some(Self::Identity),
            "gzip" | "x-gzip" => Some(Self::Gzip),
            "zstd" => Some(Self::Zstd),
            _ => None,
        }
    }
}

/// A media type without its parameters.
fn essence(media_type: &str) -> String {
    media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_and_codings_have_names() {
        assert_eq!(BodyFormat::from_media_type("Text/CSV; charset=utf-8"), Some(BodyFormat::Csv));
        assert_eq!(BodyFormat::from_media_type("application/x-ndjson"), Some(BodyFormat::Ndjson));
        assert_eq!(BodyFormat::from_media_type("application/octet-stream"), None);
        let tabs = BodyOptions::from_media_type("text/tab-separated-values").expect("it has a format");
        assert_eq!((tabs.format, tabs.csv.delimiter), (BodyFormat::Csv, b'\t'));
        assert_eq!(BodyCoding::from_name("GZIP"), Some(BodyCoding::Gzip));
        assert_eq!(BodyCoding::from_name(""), Some(BodyCoding::Identity));
        assert_eq!(BodyCoding::from_name("br"), None);
        for media_type in BODY_MEDIA_TYPES {
            assert!(BodyFormat::from_media_type(media_type).is_some(), "{media_type}");
        }
        for name in BODY_CODING_NAMES {
            assert!(BodyCoding::from_name(name).is_some());
        }
    }
}
