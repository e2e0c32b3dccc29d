//! Delta tables: their log, their columns and their data files.
//!
//! A table is a folder with Parquet files and a log, `_delta_log`, that says which of them make up which version. This
//! crate writes and reads the part of the [Delta protocol](https://github.com/delta-io/delta/blob/master/PROTOCOL.md)
//! that a table with one writer needs, so that other programs can read the table at any time. [`TableLog`] reads the newest
//! version of tables that other programs write.
//!
//! # How declared columns are stored
//!
//! [`DeltaSnapshot::schema`] has the columns as they were declared, [`DeltaSnapshot::stored_schema`] the columns of the
//! data files. A column of the first is found in a data file by its name:
//!
//! - A column that is a [`PartitionBy::Column`] is not in the file. Its value is that of [`DataFile::partition_values`] at
//!   the position of the [`PartitionColumn`], parsed by [`PartitionColumn::parse`]. The columns that `Day`, `Month` and
//!   `Hour` add are neither in the files nor declared; other readers see them.
//! - A column that is not in the file was added to the table later; its values are null.
//! - All others have the type of the stored schema, and become the declared type by Arrow's `cast`, without loss:
//!
//! | declared | stored | Delta type |
//! |---|---|---|
//! | Boolean, Int8 to Int64, Float32, Float64, Utf8, Binary, Date32 | the same | boolean, byte, short, integer, long, float, double, string, binary, date |
//! | Timestamp(µs, any zone) | Timestamp(µs, UTC) | timestamp |
//! | Timestamp(µs) | the same | timestamp_ntz |
//! | Timestamp(s, ms, ns), Date64, Time64, Duration | Int64 | long |
//! | Time32 | Int32 | integer |
//! | UInt8, UInt16, UInt32, UInt64 | Int16, Int32, Int64, Decimal128(20, 0) | short, integer, long, decimal(20,0) |
//! | Float16 | Float32 | float |
//! | Decimal32, Decimal64, Decimal128, Decimal256 up to 38 digits | Decimal128 | decimal |
//! | LargeUtf8, Utf8View; LargeBinary, BinaryView, FixedSizeBinary | Utf8; Binary | string; binary |
//! | List, LargeList, FixedSizeList; Struct; Map | List; Struct; Map of stored types | array; struct; map |
//!
//! All other types are refused by name. Where the Delta type does not imply the declared type, the metadata of the field
//! has it as `tidegate.arrow_type`. Metadata of a field, such as `ARROW:extension:name`, is kept.
//!
//! # What is on disk when
//!
//! [`DataFileWriter::finish`] returns when the files and the names of their folders are on disk. [`DeltaTable::commit`]
//! writes the log entry to a temporary file, gives it the name of the version unless that exists, and returns when the
//! name is on disk. Files of an interrupted write are in no version; [`unreferenced_files`] finds them.

mod calendar;
mod column_mapping;
mod error;
mod features;
mod log_files;
mod partition;
mod partitioned_rows;
mod schema;
mod snapshot;
mod state;
mod statistics;
mod table;
mod table_log;
mod types;
mod writer;

use std::fs::File;
use std::path::Path;

pub use column_mapping::ColumnMapping;
pub use error::{DeltaError, StopFlag};
pub use partition::{PartitionBy, PartitionColumn};
pub use snapshot::{DataFile, DataFileReader, DeltaSnapshot, read_file, verify_file};
pub use statistics::{ColumnStatistics, StatisticsValue};
pub use table::{
    CompactionOptions, DeltaCommit, DeltaTable, OPTIMIZE, expired_files, plan_compaction, unreferenced_files,
};
pub use table_log::{DeletedRows, TableLog, TableVersion, VersionFile};
pub use types::is_readable_type;
pub use writer::{DataFileWriter, WriterOptions};

/// How long the log remembers that a file was removed.
pub const TOMBSTONE_RETENTION_MS: i64 = 24 * 60 * 60 * 1000;

/// Opens a file of a table for reading, or refuses its path.
pub type FileAccess<'a> = &'a (dyn Fn(&Path) -> std::io::Result<File> + 'a);
