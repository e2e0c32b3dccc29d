//! The files of a database as tables: walk the folders, lay out tables, probe files, merge their columns.

mod arrow_ipc;
mod column_type;
mod csv_probe;
mod csv_records;
mod empty_groups;
mod file_kind;
mod json_records;
mod layout;
mod log_table;
mod logical_types;
mod names;
mod number_format;
mod path_sandbox;
mod probe;
mod recorded_tables;
mod refresh;
mod sheet_columns;
mod sheets;
mod skipped_files;
mod snapshot;
mod table;
mod table_options;
mod text_reader;
mod text_value;
mod walk;

pub use column_type::ColumnType;
pub use csv_records::RaggedRows;
pub use file_kind::table_glob;
pub use number_format::NumberFormat;
pub use recorded_tables::{ColumnRange, RecordedFile, RecordedTable, RecordedTables, TableRecorder};
pub use table_options::{Inference, LogOptionProblem, LogTableOptions, TextTableOptions};
pub use text_reader::TextEncoding;
pub use walk::{FileLimits, glob_folder};

pub(crate) use arrow_ipc::IpcReader;
pub(crate) use column_type::{CoercionMode, replace_null_type, wider};
pub(crate) use csv_probe::{open_records, read_header};
pub(crate) use csv_records::{CsvError, CsvRecord, CsvRecords, field_count_error};
pub(crate) use empty_groups::without_empty_groups;
pub(crate) use file_kind::{Compression, split_compression};
pub(crate) use json_records::{JsonColumns, JsonDefect, JsonError, JsonRecord, JsonRecords};
pub(crate) use log_table::LogDialect;
pub(crate) use logical_types::{UUID_BYTES, WIDE_BYTES, arrow_table_schema, is_read_as_bytes};
pub(crate) use names::column_names;
pub(crate) use number_format::{NumberEvidence, is_null_marker};
pub(crate) use path_sandbox::{CHANGED_WHILE_READ, FileVersion, STORE_ERROR_PREFIX, io_error_reason};
pub(crate) use probe::{ContentFormat, READER_PANICKED, catch_reader_panic, strip_error_kind, without_encodings};
pub(crate) use recorded_tables::DeltaFiles;
pub(crate) use refresh::FileSnapshots;
pub(crate) use sheets::{WorkbookSheet, read_workbook};
pub(crate) use snapshot::FileTablesSnapshot;
pub(crate) use table::{ColumnCorrections, FileTable, TableFile, from_location};
pub(crate) use table_options::{CsvDialect, TableDeclarations, suggest_yaml};
pub(crate) use text_reader::{ReadBudget, TextDecoding, open_decompressed, open_text, read_error_reason};
pub(crate) use text_value::{ColumnValues, TextReading, cut_value, infer_type, type_note};
pub(crate) use walk::{FilesPath, Glob};

#[cfg(test)]
pub(crate) use table::ColumnCorrection;
