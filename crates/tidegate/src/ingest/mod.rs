//! Tables that take rows, as the databases of a node.

mod folders;
mod table_recorder;

pub(crate) use folders::{DeclaredTables, FolderUse, IngestFolders, OpenedTables, REOPEN_LONGEST};
