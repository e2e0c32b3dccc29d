//! Tables that take rows, as the databases of a node.

mod folders;
mod table_source;
mod target;

pub(crate) use folders::{DeclaredTables, FolderUse, IngestFolders, OpenedTables};
pub(crate) use target::FolderTarget;
