//! A folder of Delta tables that take rows.
//!
//! A write is one record of the write-ahead log: its rows, or the descriptions of data files that it made itself. When the
//! record is synced, its rows are visible. A background task moves rows from the log to the Delta tables. A Delta table
//! keeps the sequence number up to which it has the records (`txn` of the protocol), in the same commit as the rows. So a
//! crash at any point neither loses nor doubles rows.
//!
//! - `folder_handle`, `target`: what other crates use. `options`: declarations and bounds. `error`, `names`.
//! - `writer`, `stager`, `staged_file`: a write. `columns`: whether its columns fit. `write_record`: its record.
//! - `state`, `table_state`, `pending`, `view`: the tables in memory, and views of them. `shared`: their owner.
//! - `keys`: the keys of writes. `lock`: one process writes. `log_id`: the id of the log. `recovery`: what happens at a
//!   start. `closed_tables`, `kept_records`: what becomes of damage.
//! - `background`: when the steps in `flush`, `maintenance` and `drop_table` run. `storage`: their blocking parts.
//! - `status`, `verify`, `upkeep`: what an owner reads and starts.

mod background;
mod closed_tables;
mod columns;
mod declarations;
mod drop_table;
mod error;
mod flush;
mod folder_handle;
mod kept_records;
mod keys;
mod lock;
mod log_id;
mod maintenance;
mod names;
mod options;
mod pending;
mod recovery;
mod shared;
mod staged_file;
mod stager;
mod state;
mod status;
mod storage;
mod table_state;
mod target;
mod upkeep;
mod verify;
mod verify_folder;
mod view;
mod write_record;
mod writer;

pub use closed_tables::lost_tables;
pub use error::IngestError;
pub use folder_handle::IngestFolder;
pub use options::{IngestOptions, SchemaEvolution, TableDeclaration};
pub use shared::IngestCounters;
pub use verify::TableVerification;
pub use verify_folder::verify_folder;
pub use view::IngestTableView;

/// The folder of our own files in a folder of tables. No table has such a name.
pub(crate) const TIDEGATE_FOLDER: &str = ".tidegate";
/// Where folders of dropped tables are deleted, and where files without a name are created. What a crash leaves there is
/// deleted at the next start.
pub(crate) const TRASH_FOLDER: &str = "trash";
