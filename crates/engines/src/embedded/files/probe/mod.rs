//! Probing one file: the actual format, the columns, and the number of rows.

mod columnar;
mod csv;
mod json;
mod log;
mod type_inference;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Seek;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::Statistics;

use super::file_kind::{Compression, FileKind, NamedFormat};
use super::file_version::FileIdentity;
use super::limits::FileLimits;
use super::log_table::LogDialect;
use super::number_evidence::NumberEvidence;
use super::path_sandbox::{PathSandbox, io_error_reason};
use super::sheets::{SheetTable, number_notes, read_workbook};
use super::table_options::{CsvDialect, TableDeclarations, suggest_yaml};
use super::walk::DataFile;

pub(crate) use columnar::{strip_error_kind, without_dictionaries};
pub(crate) use csv::{open_records, read_header};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ContentFormat {
    Csv(CsvDialect),
    /// Objects, in an array or one after the other.
    Json,
    Parquet,
    /// Arrow IPC with a footer.
    ArrowFile,
    /// Arrow IPC without a footer.
    ArrowStream,
    /// A sheet of a workbook.
    Sheet(WorkbookSheet),
    /// Entries of a log.
    Log(LogDialect),
    /// A file with the name of a log, whose format is unknown, with the options that would read it.
    UnrecognizedLog(Arc<SuggestedOptions>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorkbookSheet {
    /// The format of the workbook.
    pub(crate) format: NamedFormat,
    pub(crate) name: Arc<str>,
    /// Whether no other sheet has cells, so that the table has the name of the workbook.
    pub(crate) is_alone: bool,
}

/// Options that read a log of no known format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SuggestedOptions {
    /// As the configuration has them.
    pub(crate) options: String,
    /// What is not certain.
    pub(crate) doubt: Option<String>,
}

impl SuggestedOptions {
    /// Where they are declared for the log whose file is at `location`, and for `others`.
    pub(crate) fn declare(&self, location: &str, others: &str) -> String {
        let doubt = self.doubt.as_ref().map(|doubt| format!("{doubt}; ")).unwrap_or_default();
        format!("{doubt}declare one{others}: {}", suggest_yaml(location, &self.options))
    }
}

impl ContentFormat {
    /// Whether the types are inferred from rows, not read from the file's metadata.
    pub(crate) fn is_text(&self) -> bool {
        matches!(self, Self::Csv(_) | Self::Json | Self::Log(_) | Self::UnrecognizedLog(_))
    }
}

#[derive(Debug)]
pub(crate) struct FileProfile {
    pub(crate) format: ContentFormat,
    /// The columns. In text files, type `Null` means that no row has a value yet.
    pub(crate) schema: SchemaRef,
    /// Number of rows, if it is exact.
    pub(crate) rows: Option<u64>,
    /// Average number of uncompressed bytes of the known rows.
    pub(crate) row_bytes: Option<u64>,
    pub(crate) statistics: Option<Arc<Statistics>>,
    /// Typed columns in which a text such as `N/A` means null.
    pub(crate) null_marker_columns: BTreeSet<String>,
    /// Why columns do not have the type of their first values, by name.
    pub(crate) type_notes: BTreeMap<String, String>,
    /// The separators in the numbers of each column of a CSV file.
    pub(crate) evidence: Vec<NumberEvidence>,
    /// What is odd about the cells of a sheet.
    pub(crate) note: Option<String>,
    /// The sheets of a workbook, by name. Then `format` and the columns are those of the first sheet.
    pub(crate) sheets: Vec<(String, Result<Arc<FileProfile>, String>)>,
    /// The file that was probed.
    pub(crate) identity: Option<FileIdentity>,
}

impl FileProfile {
    /// The profile of a file of which only the columns are known.
    pub(crate) fn new(format: ContentFormat, schema: SchemaRef) -> Self {
        let (null_marker_columns, type_notes, evidence, note, sheets) = Default::default();
        let (rows, row_bytes, statistics, identity) = (None, None, None, None);
        Self {
            format,
            schema,
            rows,
            row_bytes,
            statistics,
            null_marker_columns,
            type_notes,
            evidence,
            note,
            sheets,
            identity,
        }
    }
}

/// Why a file cannot be read whose reader panicked.
pub(crate) const READER_PANICKED: &str = "it is damaged, or its reader does not support it";

/// Runs `read`, whose library may panic on a damaged file. The error is the reason why the file cannot be read. What
/// `read` has changed must not be used after it.
pub(crate) fn catch_reader_panic<T>(read: impl FnOnce() -> T) -> Result<T, &'static str> {
    catch_unwind(AssertUnwindSafe(read)).map_err(|_| READER_PANICKED)
}

/// Probes `file`. The error is the reason why it cannot be read, for the operator.
pub(crate) fn probe_file(
    file: &DataFile,
    path_sandbox: &PathSandbox,
    limits: &FileLimits,
    table_declarations: &TableDeclarations,
) -> Result<FileProfile, String> {
    let probed = catch_reader_panic(|| probe_content(file, path_sandbox, limits, table_declarations));
    probed.unwrap_or_else(|reason| Err(format!("the file {} cannot be read: {reason}", file.location)))
}

fn probe_content(
    file: &DataFile,
    path_sandbox: &PathSandbox,
    limits: &FileLimits,
    table_declarations: &TableDeclarations,
) -> Result<FileProfile, String> {
    let version = file.version.as_ref().map_err(Clone::clone)?;
    let FileKind { format, compression } = file.kind;
    if version.bytes == 0 {
        return Err("the file is empty".to_owned());
    }
    // One open file for all steps, even if the path is replaced meanwhile.
    let opened = path_sandbox.open(&file.path).map_err(|refusal| refusal.reason())?;
    let identity = FileIdentity::from_file(&opened, format.may_grow()).map_err(|error| io_error_reason(&error))?;
    let open = || -> Result<File, String> {
        let mut retried = opened.try_clone().map_err(|error| io_error_reason(&error))?;
        retried.rewind().map_err(|error| io_error_reason(&error))?;
        Ok(retried)
    };
    let mut probed = match format {
        NamedFormat::Csv | NamedFormat::Tsv => {
            let options = &table_declarations.options_for_file(&file.location);
            let delimiter = (format == NamedFormat::Tsv).then_some(b'\t');
            let (location, bytes) = (file.location.as_str(), identity.version.bytes);
            let file = csv::CsvFile { open: &open, location, compression, delimiter, bytes, options };
            csv::probe_csv(&file, limits)
        }
        NamedFormat::Json | NamedFormat::JsonLines => {
            let options = table_declarations.options_for_file(&file.location);
            let rows_max = options.inferred_rows(identity.version.bytes, compression, limits);
            json::probe_json(open()?, &file.location, compression, options, rows_max, limits)
        }
        NamedFormat::Log => {
            let declared = table_declarations.options_for_log(&file.location);
            log::probe_log(open()?, file.file_name(), compression, &declared.log)
        }
        _ if !format.may_grow() && compression != Compression::UNCOMPRESSED => {
            Err("files of this format cannot be compressed as a whole; unpack it".to_owned())
        }
        NamedFormat::Parquet => columnar::probe_parquet(open()?),
        NamedFormat::Arrow => columnar::probe_arrow(open()?),
        NamedFormat::Xlsx | NamedFormat::Ods => {
            probe_workbook(open()?, format, &file.location, table_declarations, identity)
        }
    }?;
    probed.identity = Some(identity);
    let columns = probed.schema.fields().len();
    if columns > limits.columns_max {
        return Err(format!("it has {columns} columns; the limit is {}", limits.columns_max));
    }
    Ok(probed)
}

fn probe_workbook(
    file: File,
    format: NamedFormat,
    location: &str,
    table_declarations: &TableDeclarations,
    identity: FileIdentity,
) -> Result<FileProfile, String> {
    let found = read_workbook(file, format, location, table_declarations, None)?;
    let (mut sheets, is_alone) = (Vec::new(), found.len() == 1);
    let sheet = |name: &str| ContentFormat::Sheet(WorkbookSheet { format, name: name.into(), is_alone });
    for (name, rows) in found {
        let probed = rows.map(|SheetTable { rows, note }| {
            let count = rows.num_rows() as u64;
            let options = table_declarations.options_for_sheet(location, &name, is_alone);
            Arc::new(FileProfile {
                type_notes: number_notes(&rows, &options, &name, |option| {
                    table_declarations.suggest_for_sheet(location, &name, is_alone, option)
                }),
                rows: Some(count),
                row_bytes: (rows.get_array_memory_size() as u64).checked_div(count),
                identity: Some(identity),
                note,
                ..FileProfile::new(sheet(&name), rows.schema())
            })
        });
        sheets.push((name, probed));
    }
    let first = match sheets.first() {
        None => return Err("none of its sheets has cells".to_owned()),
        Some((_, Ok(first))) => first.clone(),
        Some((_, Err(reason))) if sheets.len() == 1 => return Err(reason.clone()),
        Some((name, Err(_))) => Arc::new(FileProfile::new(sheet(name), Arc::new(Schema::empty()))),
    };
    Ok(FileProfile { sheets, ..FileProfile::new(first.format.clone(), first.schema.clone()) })
}

fn text_column(name: &str, data_type: DataType) -> Field {
    Field::new(name, data_type, true)
}
