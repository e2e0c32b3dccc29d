//! Looking into one file: which format it really has, its columns, and how many rows.

mod columnar;
mod csv;
mod json;

use std::fs::File;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, SchemaRef};
use datafusion::common::Statistics;

use super::kind::{Compression, FileKind, NamedFormat};
use super::limits::FileLimits;
use super::told::{CsvDialect, Told};
use super::walk::FoundFile;
use super::wall::Wall;

pub(crate) use csv::{column_names, header_of, written_as};

/// How the contents of a file are to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Shape {
    /// Values between delimiters.
    Csv(CsvDialect),
    /// Objects, in an array or one after the other.
    Json,
    /// Parquet.
    Parquet,
    /// Arrow IPC with a footer.
    ArrowFile,
    /// Arrow IPC without a footer.
    ArrowStream,
}

impl Shape {
    /// Whether its types were learned from its first rows and not told by the file.
    pub(crate) fn is_text(self) -> bool {
        matches!(self, Self::Csv(_) | Self::Json)
    }
}

/// What one file turned out to be.
#[derive(Debug)]
pub(crate) struct Probed {
    pub(crate) shape: Shape,
    /// Its columns. In text files a type of `Null` means that no row has told yet.
    pub(crate) schema: SchemaRef,
    /// Its rows, where they are known for certain.
    pub(crate) rows: Option<u64>,
    /// Bytes of one row before compression, on average over the rows that are known.
    pub(crate) row_bytes: Option<u64>,
    /// What Parquet's footer tells, for the columns of `schema`.
    pub(crate) statistics: Option<Arc<Statistics>>,
}

/// Looks into `file`. The error is the reason why it cannot be read, for people.
pub(crate) fn probe(file: &FoundFile, wall: &Wall, limits: &FileLimits, told: &Told) -> Result<Probed, String> {
    let fingerprint = file.fingerprint.as_ref().map_err(Clone::clone)?;
    let FileKind { format, compression } = file.kind;
    if fingerprint.bytes == 0 {
        return Err("the file is empty".to_owned());
    }
    let open = || -> Result<File, String> { wall.open(&file.path).map_err(|refusal| refusal.reason()) };
    let probed = match format {
        NamedFormat::Csv | NamedFormat::Tsv => {
            let told = told.about(&file.location);
            let delimiter = (format == NamedFormat::Tsv).then_some(b'\t');
            let file = csv::CsvFile { open: &open, compression, delimiter, bytes: fingerprint.bytes, told: &told };
            csv::probe(&file, limits)
        }
        NamedFormat::Json | NamedFormat::JsonLines => json::probe(open()?, compression, limits),
        NamedFormat::Parquet | NamedFormat::Arrow if compression != Compression::None => {
            Err("files of this format are compressed inside, not as a whole; unpack it".to_owned())
        }
        NamedFormat::Parquet => columnar::probe_parquet(open()?),
        NamedFormat::Arrow => columnar::probe_arrow(open()?),
    }?;
    let columns = probed.schema.fields().len();
    if columns > limits.columns_max {
        return Err(format!("it has {columns} columns, more than {}", limits.columns_max));
    }
    Ok(probed)
}

/// A column of a text file, which may always be null.
fn text_column(name: &str, data_type: DataType) -> Field {
    Field::new(name, data_type, true)
}
