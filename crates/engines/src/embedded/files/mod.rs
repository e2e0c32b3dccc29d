//! What lies in a database's folders, as tables: walk, lay out, look into, unite.

mod encoding;
mod glob;
mod identity;
mod json_array;
mod kind;
mod layout;
mod limits;
mod names;
mod notes;
mod numbers;
mod partitions;
mod probe;
mod refresh;
mod rows;
mod sheets;
mod skipped;
mod snapshot;
mod table;
mod text;
mod told;
mod unite;
mod walk;
mod wall;
mod widen;

pub use encoding::TextEncoding;
pub use glob::glob_folder;
pub use limits::FileLimits;
pub use numbers::NumberFormat;
pub use rows::RaggedRows;
pub use told::{ColumnType, TextTable};

pub(crate) use glob::Glob;
pub(crate) use identity::FileIdentity;
pub(crate) use json_array::ArrayElements;
pub(crate) use kind::Compression;
pub(crate) use numbers::is_null_marker;
pub(crate) use probe::{Shape, column_names, header_of, rows_of, type_of, written_as};
pub(crate) use refresh::{Files, FilesPath};
pub(crate) use sheets::{WorkbookFormat, read_workbook};
pub(crate) use snapshot::Snapshot;
#[cfg(test)]
pub(crate) use table::Lesson;
pub(crate) use table::{FileTable, Learned, TableFile};
pub(crate) use text::{Allowance, TextForm, first_byte, open_text, problem_of};
pub(crate) use told::{CsvDialect, Told, yaml_line};
pub(crate) use walk::Fingerprint;
pub(crate) use wall::{Wall, reason_of};
pub(crate) use widen::{Bend, wider};
