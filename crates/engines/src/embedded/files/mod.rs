//! What lies in a database's folders, as tables: walk, lay out, look into, unite.

mod glob;
mod json_array;
mod kind;
mod layout;
mod limits;
mod names;
mod partitions;
mod probe;
mod refresh;
mod snapshot;
mod table;
mod text;
mod told;
mod unite;
mod walk;
mod wall;
mod widen;

pub use glob::glob_folder;
pub use limits::FileLimits;
pub use told::{ColumnType, TextTable};

pub(crate) use glob::Glob;
pub(crate) use json_array::ArrayElements;
pub(crate) use kind::Compression;
pub(crate) use probe::{Shape, column_names, header_of, written_as};
pub(crate) use refresh::{Files, FilesPath};
pub(crate) use snapshot::Snapshot;
pub(crate) use table::{FileTable, Learned, TableFile};
pub(crate) use text::{Allowance, first_byte, open_text, problem_of};
pub(crate) use told::{CsvDialect, Told};
pub(crate) use walk::Fingerprint;
pub(crate) use wall::{Wall, reason_of};
