//! Parquet and Arrow: the columns come from the metadata of the file.

use std::collections::HashSet;
use std::fs::File;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::ColumnStatistics;
use datafusion::datasource::physical_plan::parquet::metadata::DFParquetMetadata;
use datafusion::datasource::physical_plan::parquet::transform_schema_to_view;
use parquet::arrow::parquet_to_arrow_schema;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaDataReader};

use super::super::arrow_ipc::IpcReader;
use super::super::logical_types::{arrow_table_schema, parquet_table_schema};
use super::{ContentFormat, FileProfile};

/// For files with more columns only the row count is kept, since column bounds would use more memory than they are
/// worth.
const STATISTICS_COLUMNS_MAX: usize = 1_000;

pub(super) fn probe_parquet(file: File) -> Result<FileProfile, String> {
    let unreadable = |reason: &str| format!("it is not a readable Parquet file: {}", strip_error_kind(reason));
    let metadata = ParquetMetaDataReader::new()
        .with_page_index_policy(PageIndexPolicy::Skip)
        .parse_and_finish(&file)
        .map_err(|error| unreadable(&error.to_string()))?;
    let file_metadata = metadata.file_metadata();
    let schema = parquet_to_arrow_schema(file_metadata.schema_descr(), file_metadata.key_value_metadata())
        .map_err(|error| format!("its schema cannot be read: {}", strip_error_kind(&error.to_string())))?;
    // DataFusion reads text from Parquet as views. The metadata of the writer is not used.
    let in_file = without_metadata(&transform_schema_to_view(&schema));
    let schema = Arc::new(parquet_table_schema(&without_dictionaries(&in_file), file_metadata));
    check_names(&schema)?;
    // For columns that are read as another type, the bounds do not apply. The bounds of floating-point columns omit NaN.
    let statistics = DFParquetMetadata::statistics_from_parquet_metadata(&metadata, &Arc::new(in_file.clone()))
        .ok()
        .filter(|_| schema.fields().len() <= STATISTICS_COLUMNS_MAX)
        .map(|mut statistics| {
            let fields = schema.fields().iter().zip(in_file.fields());
            for ((in_table, in_file), column) in fields.zip(&mut statistics.column_statistics) {
                if in_table.data_type() != in_file.data_type() || in_table.data_type().is_floating() {
                    *column = ColumnStatistics::new_unknown();
                }
            }
            Arc::new(statistics)
        });
    let rows = u64::try_from(file_metadata.num_rows()).ok();
    let bytes: i64 = metadata.row_groups().iter().map(|group| group.total_byte_size()).sum();
    Ok(FileProfile {
        rows,
        row_bytes: rows.and_then(|rows| u64::try_from(bytes).ok()?.checked_div(rows)),
        statistics,
        ..FileProfile::new(ContentFormat::Parquet, schema)
    })
}

/// Reads the footer of an Arrow IPC file, or the beginning of an IPC stream.
pub(super) fn probe_arrow(file: File) -> Result<FileProfile, String> {
    let reader = IpcReader::open(file, None)?;
    check_names(reader.schema())?;
    let schema = arrow_table_schema(&without_dictionaries(reader.schema()));
    Ok(FileProfile::new(reader.format(), Arc::new(schema)))
}

/// `schema`, with views of the values for dictionaries of text and bytes. A few bytes of a dictionary can stand for gigabytes
/// once its values are written out; views have the same memory, and the size of each row is known.
pub(crate) fn without_dictionaries(schema: &Schema) -> Schema {
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
