//! A table at one moment.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use crate::delta::{DataFile, DeltaSnapshot};

/// The rows of a table at one moment: data files, and batches in memory. Each row is in one of them. A clone is cheap.
///
/// The files are not deleted as long as a clone exists.
#[derive(Debug, Clone)]
pub struct IngestTableView(pub(crate) Arc<ViewContent>);

#[derive(Debug)]
pub(crate) struct ViewContent {
    pub(crate) table: String,
    pub(crate) version: u64,
    pub(crate) schema: SchemaRef,
    pub(crate) folder: PathBuf,
    pub(crate) snapshot: Option<Arc<DeltaSnapshot>>,
    pub(crate) files: Vec<Arc<DataFile>>,
    pub(crate) batches: Vec<RecordBatch>,
}

impl IngestTableView {
    /// The name of the table.
    pub fn table(&self) -> &str {
        &self.0.table
    }

    /// The version of the database that changed the rows of the table last. Two views of the table with one version have
    /// the same rows, maybe in other files.
    pub fn version(&self) -> u64 {
        self.0.version
    }

    /// Whether both are the same rows in the same files and batches.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.0.schema
    }

    /// The folder to which the paths of the files are relative.
    pub fn folder(&self) -> &Path {
        &self.0.folder
    }

    /// The Delta table, with which the files are read: its columns are the columns of the files. Its files may be other
    /// ones than [`IngestTableView::files`]. `None` if there are no files.
    pub fn snapshot(&self) -> Option<&Arc<DeltaSnapshot>> {
        self.0.snapshot.as_ref()
    }

    /// The data files. A file may lack columns of the schema, which are null.
    pub fn files(&self) -> &[Arc<DataFile>] {
        &self.0.files
    }

    /// The rows in memory, with all columns of the schema.
    pub fn batches(&self) -> &[RecordBatch] {
        &self.0.batches
    }

    /// The number of rows.
    pub fn rows(&self) -> u64 {
        let in_memory = self.0.batches.iter().map(|batch| batch.num_rows() as u64).sum::<u64>();
        in_memory + self.0.files.iter().map(|file| file.rows).sum::<u64>()
    }
}
