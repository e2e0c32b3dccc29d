//! Probing one file: the actual format, the columns, and the number of rows. The columns of Parquet and Arrow come
//! from the metadata of the file.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::io::Seek;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::{ColumnStatistics, Statistics};
use datafusion::datasource::physical_plan::parquet::metadata::DFParquetMetadata;
use datafusion::datasource::physical_plan::parquet::transform_schema_to_view;
use parquet::arrow::parquet_to_arrow_schema;
use parquet::basic::Type as PhysicalType;
use parquet::file::metadata::{
    ColumnChunkMetaData, FileMetaData, PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData,
};
use parquet::file::reader::{ChunkReader as _, Length as _};
use tidegate_core::shorten;
use tidegate_ingest_formats::exact_parquet_columns;

use super::arrow_ipc::IpcReader;
use super::empty_groups::without_empty_groups;
use super::file_kind::{Compression, FileKind, NamedFormat};
use super::log_table::{self, LogDialect};
use super::logical_types::{arrow_table_schema, parquet_table_schema};
use super::number_format::NumberEvidence;
use super::path_sandbox::{FileIdentity, PathSandbox, io_error_reason};
use super::sheet_columns::number_notes;
use super::sheets::{SheetTable, WorkbookSheet, read_workbook};
use super::table_options::{CsvDialect, TableDeclarations, suggest_yaml};
use super::walk::{DataFile, FileLimits};
use super::{csv_probe, json_records};

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
    /// What its writer says about columns, by name.
    pub(crate) descriptions: BTreeMap<String, String>,
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
        let (null_marker_columns, type_notes, descriptions, evidence, note, sheets) = Default::default();
        let (rows, row_bytes, statistics, identity) = (None, None, None, None);
        Self {
            format,
            schema,
            rows,
            row_bytes,
            statistics,
            null_marker_columns,
            type_notes,
            descriptions,
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
            let file = csv_probe::CsvFile { open: &open, location, compression, delimiter, bytes, options };
            csv_probe::probe_csv(&file, limits)
        }
        NamedFormat::Json | NamedFormat::JsonLines => {
            let options = table_declarations.options_for_file(&file.location);
            let rows_max = options.inferred_rows(identity.version.bytes, compression, limits);
            json_records::probe_json(open()?, &file.location, compression, options, rows_max, limits)
        }
        NamedFormat::Log => {
            let declared = table_declarations.options_for_log(&file.location);
            log_table::probe_log(open()?, file.file_name(), compression, &declared.log)
        }
        _ if !format.may_grow() && compression != Compression::UNCOMPRESSED => {
            Err("files of this format cannot be compressed as a whole; unpack it".to_owned())
        }
        NamedFormat::Parquet => probe_parquet(open()?),
        NamedFormat::Arrow => probe_arrow(open()?),
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

pub(super) fn text_column(name: &str, data_type: DataType) -> Field {
    Field::new(name, data_type, true)
}

/// For files with more columns only the row count is kept, since column bounds would use more memory than they are
/// worth.
const STATISTICS_COLUMNS_MAX: usize = 1_000;
/// The length of the footer of a Parquet file, and the last bytes.
const PARQUET_TAIL_BYTES: u64 = 8;

fn probe_parquet(file: File) -> Result<FileProfile, String> {
    let unreadable = |reason: &str| format!("it is not a readable Parquet file: {}", strip_error_kind(reason));
    let metadata = ParquetMetaDataReader::new()
        .with_page_index_policy(PageIndexPolicy::Skip)
        .parse_and_finish(&file)
        .map_err(|error| unreadable(&error.to_string()))?;
    let metadata = without_empty_groups(&metadata).unwrap_or(metadata);
    let rows = count_rows(&metadata).map_err(|reason| unreadable(&reason))?;
    let file_metadata = metadata.file_metadata();
    let schema = parquet_to_arrow_schema(file_metadata.schema_descr(), file_metadata.key_value_metadata())
        .map_err(|error| format!("its schema cannot be read: {}", strip_error_kind(&error.to_string())))?;
    check_groups(&schema, file_metadata)?;
    let descriptions = column_descriptions(&schema);
    // DataFusion reads text from Parquet as views. Of the metadata of the writer, the columns have only extension types.
    let views = transform_schema_to_view(&schema);
    let schema = Arc::new(parquet_table_schema(&without_dictionaries(&views), file_metadata));
    let in_file = without_metadata(&views);
    check_names(&schema)?;
    let statistics = match schema.fields().len() <= STATISTICS_COLUMNS_MAX {
        true => parquet_statistics(&file, &metadata, &in_file, &schema).map(Arc::new),
        false => None,
    };
    let bytes = metadata.row_groups().iter().map(row_group_bytes).fold(0, u64::saturating_add);
    Ok(FileProfile {
        rows: Some(rows),
        row_bytes: bytes.checked_div(rows),
        statistics,
        descriptions,
        ..FileProfile::new(ContentFormat::Parquet, schema)
    })
}

/// The number of bytes of the rows of `group`. Few bytes of an encoding can stand for many items of lists, which the library writes
/// out. Other values of a dictionary become views.
fn row_group_bytes(group: &RowGroupMetaData) -> u64 {
    let encoded = u64::try_from(group.total_byte_size()).unwrap_or(0);
    let lists = group.columns().iter().filter(|column| column.column_descr().max_rep_level() > 0);
    lists.map(item_bytes).fold(0, u64::saturating_add).max(encoded)
}

fn item_bytes(column: &ColumnChunkMetaData) -> u64 {
    let width = match column.column_type() {
        PhysicalType::BOOLEAN => 1,
        PhysicalType::INT32 | PhysicalType::FLOAT => 4,
        PhysicalType::INT64 | PhysicalType::DOUBLE => 8,
        PhysicalType::INT96 => 12,
        PhysicalType::FIXED_LEN_BYTE_ARRAY => u64::try_from(column.column_descr().type_length()).unwrap_or(0),
        // With an offset. Most writers say how long all texts are.
        PhysicalType::BYTE_ARRAY => 4,
    };
    let texts = column.unencoded_byte_array_data_bytes().and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0);
    u64::try_from(column.num_values()).unwrap_or(0).saturating_mul(width).saturating_add(texts)
}

/// The library omits a map whose values are groups without fields, and columns are found by their position.
fn check_groups(schema: &Schema, footer: &FileMetaData) -> Result<(), String> {
    let mut columns = footer.schema_descr().root_schema().get_fields().iter();
    match columns.find(|column| schema.column_with_name(column.name()).is_none()) {
        Some(column) => {
            Err(format!("its column {:?} has a group without fields, which is not supported", column.name()))
        }
        None => Ok(()),
    }
}

/// The number of rows, which a footer has twice.
fn count_rows(metadata: &ParquetMetaData) -> Result<u64, String> {
    let declared = metadata.file_metadata().num_rows();
    let add = |sum: i64, rows: i64| sum.checked_add(rows).filter(|_| rows >= 0);
    let of_groups = metadata.row_groups().iter().try_fold(0, |sum, group| add(sum, group.num_rows()));
    let of_groups = of_groups.ok_or("a row group has no valid number of rows")?;
    match u64::try_from(declared) {
        Ok(rows) if declared == of_groups => Ok(rows),
        _ => Err(format!("its footer declares {declared} rows, and its row groups have {of_groups}")),
    }
}

/// The statistics of the columns of `table`, which are `in_file` for the library. They answer queries where they are exact.
fn parquet_statistics(file: &File, metadata: &ParquetMetaData, in_file: &Schema, table: &Schema) -> Option<Statistics> {
    let mut statistics =
        DFParquetMetadata::statistics_from_parquet_metadata(metadata, &Arc::new(in_file.clone())).ok()?;
    let rows = statistics.num_rows.get_value().copied()?;
    let leaves = metadata.file_metadata().schema_descr().columns().iter().enumerate();
    let leaves: HashMap<&str, usize> =
        leaves.filter(|(_, leaf)| leaf.path().parts().len() == 1).map(|(index, leaf)| (leaf.name(), index)).collect();
    let exact = footer_bytes(file).and_then(|footer| exact_parquet_columns(&footer)).unwrap_or_default();
    let fields = table.fields().iter().zip(in_file.fields());
    for ((in_table, in_file), column) in fields.zip(&mut statistics.column_statistics) {
        // For columns that are read as another type, the bounds do not apply. The bounds of floating-point columns omit NaN.
        let is_known = in_table.data_type() == in_file.data_type() && !in_table.data_type().is_floating();
        if !is_known || !is_consistent(column, rows) {
            *column = ColumnStatistics::new_unknown();
            continue;
        }
        // No mark says whether the number of distinct values is exact.
        column.distinct_count = column.distinct_count.to_inexact();
        let is_exact = leaves.get(in_table.name().as_str()).and_then(|leaf| exact.get(*leaf));
        if is_exact != Some(&true) {
            *column = std::mem::take(column).to_inexact();
        }
    }
    Some(statistics)
}

/// Whether the statistics of a column do not contradict themselves.
fn is_consistent(column: &ColumnStatistics, rows: usize) -> bool {
    let nulls = column.null_count.get_value().copied().unwrap_or_default();
    let bounds = column.min_value.get_value().zip(column.max_value.get_value());
    let has_bounds = bounds.filter(|(minimum, maximum)| !minimum.is_null() && !maximum.is_null());
    nulls <= rows && has_bounds.is_none_or(|(minimum, maximum)| minimum <= maximum)
}

fn footer_bytes(file: &File) -> Option<Bytes> {
    let tail_start = file.len().checked_sub(PARQUET_TAIL_BYTES)?;
    let tail = file.get_bytes(tail_start, usize::try_from(PARQUET_TAIL_BYTES).ok()?).ok()?;
    let length = u32::from_le_bytes(*tail.first_chunk()?);
    file.get_bytes(tail_start.checked_sub(u64::from(length))?, usize::try_from(length).ok()?).ok()
}

/// Reads the footer of an Arrow IPC file, or the beginning of an IPC stream.
fn probe_arrow(file: File) -> Result<FileProfile, String> {
    let reader = IpcReader::open(file, None)?;
    check_names(reader.schema())?;
    let descriptions = column_descriptions(reader.schema());
    let schema = arrow_table_schema(&without_encodings(reader.schema()));
    Ok(FileProfile { descriptions, ..FileProfile::new(reader.format(), Arc::new(schema)) })
}

/// The keys of metadata in which writers describe a column; the first one counts.
const DESCRIPTION_KEYS: [&str; 2] = ["description", "comment"];
const DESCRIPTION_CHARACTERS_MAX: usize = 1_000;

/// What the writer of a file says about its columns, by name.
fn column_descriptions(schema: &Schema) -> BTreeMap<String, String> {
    let described = |field: &Arc<Field>| {
        let texts = DESCRIPTION_KEYS.iter().filter_map(|key| field.metadata().get(*key));
        let text = texts.map(|text| text.trim()).find(|text| !text.is_empty())?;
        Some((field.name().clone(), shorten(text, DESCRIPTION_CHARACTERS_MAX)))
    };
    schema.fields().iter().filter_map(described).collect()
}

/// `schema` with the types of the values, however they are encoded. A few bytes of an Arrow file can stand for gigabytes: rows
/// share the values of dictionaries, runs and views of lists. Most operators have no form for these, or one that copies all
/// that is shared. Text and bytes are views in columns, which share them too, and whose rows can be measured. A value of zero
/// bytes is one of variable length, because the library loses the number of rows without bytes.
pub(crate) fn without_encodings(schema: &Schema) -> Schema {
    let columns = schema.fields().iter().map(|field| decoded_field(field, true)).collect::<Vec<_>>();
    Schema::new_with_metadata(columns, schema.metadata().clone())
}

fn decoded_field(field: &Arc<Field>, is_column: bool) -> Arc<Field> {
    let data_type = decoded_type(field.data_type(), is_column);
    if data_type == *field.data_type() {
        return field.clone();
    }
    // Nulls may be among the values of an encoding.
    let is_encoded = matches!(field.data_type(), DataType::Dictionary(..) | DataType::RunEndEncoded(..));
    let is_nullable = field.is_nullable() || is_encoded;
    Arc::new(field.as_ref().clone().with_data_type(data_type).with_nullable(is_nullable))
}

fn decoded_type(data_type: &DataType, is_column: bool) -> DataType {
    let member = |field: &Arc<Field>| decoded_field(field, false);
    match data_type {
        DataType::Dictionary(_, values) => decoded_values(values, is_column),
        DataType::RunEndEncoded(_, values) => decoded_values(values.data_type(), is_column),
        DataType::FixedSizeBinary(0) if is_column => DataType::BinaryView,
        DataType::FixedSizeBinary(0) => DataType::Binary,
        DataType::FixedSizeList(item, 0) => DataType::List(member(item)),
        DataType::FixedSizeList(item, length) => DataType::FixedSizeList(member(item), *length),
        DataType::List(item) | DataType::ListView(item) => DataType::List(member(item)),
        DataType::LargeList(item) | DataType::LargeListView(item) => DataType::LargeList(member(item)),
        DataType::Map(entries, is_sorted) => DataType::Map(member(entries), *is_sorted),
        DataType::Struct(members) => DataType::Struct(members.iter().map(member).collect()),
        other => other.clone(),
    }
}

fn decoded_values(values: &DataType, is_column: bool) -> DataType {
    match values {
        DataType::Utf8 | DataType::LargeUtf8 if is_column => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary if is_column => DataType::BinaryView,
        other => decoded_type(other, is_column),
    }
}

/// `schema` of a Parquet file, with views of the values for dictionaries of text and bytes. Views have the same memory, and the
/// size of each row is known.
fn without_dictionaries(schema: &Schema) -> Schema {
    let views = |field: &Arc<Field>| {
        let DataType::Dictionary(_, values) = field.data_type() else { return field.clone() };
        let data_type = match &**values {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8View,
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => DataType::BinaryView,
            _ => return field.clone(),
        };
        Arc::new(field.as_ref().clone().with_data_type(data_type))
    };
    Schema::new_with_metadata(schema.fields().iter().map(views).collect::<Vec<_>>(), schema.metadata().clone())
}

fn without_metadata(schema: &Schema) -> Schema {
    let plain = |field: &Arc<Field>| field.as_ref().clone().with_metadata(Default::default());
    Schema::new(schema.fields().iter().map(plain).collect::<Vec<_>>())
}

fn check_names(schema: &Schema) -> Result<(), String> {
    if schema.fields().is_empty() {
        return Err("it has no columns".to_owned());
    }
    let mut names = HashSet::new();
    match schema.fields().iter().find(|field| !names.insert(field.name().as_str())) {
        Some(twice) => Err(format!("it has two columns named {:?}", twice.name())),
        None => Ok(()),
    }
}

/// The message without the names of the library's error kinds.
pub(crate) fn strip_error_kind(message: &str) -> &str {
    message.rsplit_once(" error: ").map_or(message, |(_, text)| text)
}
