//! The files of a database as tables: walk the folders, lay out tables, probe files, merge their columns.

mod arrow_ipc;
mod column_type;
mod column_values;
mod csv_records;
mod delta_table;
mod empty_groups;
mod encoding;
mod file_kind;
mod file_version;
mod files_object_store;
mod folder_scan;
mod glob;
mod json_records;
mod json_types;
mod lake_format;
mod layout;
mod limits;
mod local_file_system;
mod log_options;
mod log_table;
mod logical_types;
mod names;
mod number_evidence;
mod number_format;
mod partitions;
mod path_sandbox;
mod probe;
mod ragged_rows;
mod record_buffer;
mod refresh;
mod rotated_logs;
mod sheets;
mod skipped_files;
mod snapshot;
mod source_tables;
mod table;
mod table_builder;
mod table_descriptions;
mod table_options;
mod text_reader;
mod text_value;
mod type_widening;
mod walk;

pub use column_type::ColumnType;
pub use encoding::TextEncoding;
pub use file_kind::table_glob;
pub use glob::glob_folder;
pub use limits::FileLimits;
pub use log_options::{LogOptionProblem, LogTableOptions};
pub use number_format::NumberFormat;
pub use ragged_rows::RaggedRows;
pub use source_tables::{ColumnRange, SourceFile, SourceTable, SourceTables, TableSource};
pub use table_options::{Inference, TextTableOptions};

pub(crate) use arrow_ipc::IpcReader;
pub(crate) use column_values::{ColumnValues, TextReading};
pub(crate) use csv_records::{CsvError, CsvRecord, CsvRecords, field_count_error};
pub(crate) use delta_table::DeltaFiles;
pub(crate) use empty_groups::without_empty_groups;
pub(crate) use file_kind::{Compression, NamedFormat, split_compression};
pub(crate) use file_version::FileVersion;
pub(crate) use files_object_store::{CHANGED_WHILE_READ, STORE_ERROR_PREFIX};
pub(crate) use folder_scan::FilesPath;
pub(crate) use glob::Glob;
pub(crate) use json_records::{JsonDefect, JsonError, JsonRecord, JsonRecords};
pub(crate) use json_types::JsonColumns;
pub(crate) use log_table::LogDialect;
pub(crate) use logical_types::{UUID_BYTES, WIDE_BYTES, arrow_table_schema, is_read_as_bytes};
pub(crate) use names::column_names;
pub(crate) use number_evidence::late_type_note;
pub(crate) use number_format::is_null_marker;
pub(crate) use path_sandbox::io_error_reason;
pub(crate) use probe::{
    ContentFormat, READER_PANICKED, catch_reader_panic, open_records, read_header, strip_error_kind,
    without_dictionaries,
};
pub(crate) use refresh::FileSnapshots;
pub(crate) use sheets::read_workbook;
pub(crate) use snapshot::FileTablesSnapshot;
#[cfg(test)]
pub(crate) use table::ColumnCorrection;
pub(crate) use table::{ColumnCorrections, FileTable, TableFile};
pub(crate) use table_options::{CsvDialect, TableDeclarations, suggest_yaml};
pub(crate) use text_reader::{ReadBudget, TextDecoding, open_decompressed, open_text, read_error_reason};
pub(crate) use text_value::{cut_value, infer_type};
pub(crate) use type_widening::{CoercionMode, replace_null_type, wider};
