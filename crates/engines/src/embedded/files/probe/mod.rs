//! Looking into one file: which format it really has, its columns, and how many rows.

mod columnar;
mod csv;
mod json;
mod values;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Seek;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, SchemaRef};
use datafusion::common::Statistics;

use super::identity::FileIdentity;
use super::kind::{Compression, FileKind, NamedFormat};
use super::limits::FileLimits;
use super::told::{CsvDialect, Told};
use super::walk::FoundFile;
use super::wall::{Wall, reason_of};

pub(crate) use csv::{column_names, header_of, rows_of, written_as};
pub(crate) use values::type_of;

/// How the contents of a file are to be read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
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
    pub(crate) fn is_text(&self) -> bool {
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
    /// The typed columns in which a text such as `N/A` stands for null.
    pub(crate) marked: BTreeSet<String>,
    /// The file that all this was learned of.
    pub(crate) identity: Option<FileIdentity>,
}

impl Probed {
    /// A file of which nothing but its columns is known.
    pub(crate) fn new(shape: Shape, schema: SchemaRef) -> Self {
        let (rows, row_bytes, statistics, identity) = (None, None, None, None);
        Self { shape, schema, rows, row_bytes, statistics, identity, marked: BTreeSet::new() }
    }
}

/// Looks into `file`. The error is the reason why it cannot be read, for people.
pub(crate) fn probe(file: &FoundFile, wall: &Wall, limits: &FileLimits, told: &Told) -> Result<Probed, String> {
    let fingerprint = file.fingerprint.as_ref().map_err(Clone::clone)?;
    let FileKind { format, compression } = file.kind;
    if fingerprint.bytes == 0 {
        return Err("the file is empty".to_owned());
    }
    // One file for all that is learned, whatever becomes of its name meanwhile.
    let opened = wall.open(&file.path).map_err(|refusal| refusal.reason())?;
    let may_grow = !matches!(format, NamedFormat::Parquet | NamedFormat::Arrow);
    let identity = FileIdentity::of(&opened, may_grow).map_err(|error| reason_of(&error))?;
    let open = || -> Result<File, String> {
        let mut again = opened.try_clone().map_err(|error| reason_of(&error))?;
        again.rewind().map_err(|error| reason_of(&error))?;
        Ok(again)
    };
    let mut probed = match format {
        NamedFormat::Csv | NamedFormat::Tsv => {
            let told = told.about(&file.location);
            let delimiter = (format == NamedFormat::Tsv).then_some(b'\t');
            let (location, bytes) = (file.location.as_str(), identity.fingerprint.bytes);
            let file = csv::CsvFile { open: &open, location, compression, delimiter, bytes, told: &told };
            csv::probe(&file, limits)
        }
        NamedFormat::Json | NamedFormat::JsonLines => json::probe(open()?, compression, limits),
        NamedFormat::Parquet | NamedFormat::Arrow if compression != Compression::None => {
            Err("files of this format are compressed inside, not as a whole; unpack it".to_owned())
        }
        NamedFormat::Parquet => columnar::probe_parquet(open()?),
        NamedFormat::Arrow => columnar::probe_arrow(open()?),
    }?;
    probed.identity = Some(identity);
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
