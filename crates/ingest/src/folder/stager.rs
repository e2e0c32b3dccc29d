//! Writes the rows of a large write to data files while they arrive.

use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use tokio::sync::OwnedRwLockReadGuard;

use super::IngestError;
use super::storage::TableStorage;
use crate::delta::{DataFile, DataFileWriter, DeltaError, PartitionBy, WriterOptions};

/// Data files that a write produces. Dropping it deletes them.
#[derive(Debug)]
pub(crate) struct Stager {
    storage: Arc<TableStorage>,
    /// `None` after an error.
    writer: Option<DataFileWriter>,
    guard: OwnedRwLockReadGuard<()>,
}

impl Stager {
    pub(crate) async fn new(
        storage: Arc<TableStorage>,
        schema: SchemaRef,
        partition_by: Vec<PartitionBy>,
        options: WriterOptions,
    ) -> Result<Self, IngestError> {
        let guard = storage.unlisted_files.clone().read_owned().await;
        let folder = storage.folder.clone();
        let open = move || DataFileWriter::new(&folder, &schema, &partition_by, options);
        let writer = blocking(&storage.table, open).await?;
        Ok(Self { storage, writer: Some(writer), guard })
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.writer.as_ref().map_or(0, DataFileWriter::memory_bytes)
    }

    pub(crate) async fn write(&mut self, batches: Vec<RecordBatch>) -> Result<(), IngestError> {
        let Some(mut writer) = self.writer.take() else { return Err(IngestError::Closed) };
        let write = move || {
            batches.iter().try_for_each(|batch| writer.write(batch))?;
            Ok(writer)
        };
        self.writer = Some(blocking(&self.storage.table, write).await?);
        Ok(())
    }

    /// Completes the files. Returns the folder that their paths are relative to, and the guard that protects them until
    /// a record has them.
    pub(crate) async fn finish(self) -> Result<(PathBuf, Vec<DataFile>, OwnedRwLockReadGuard<()>), IngestError> {
        let Some(writer) = self.writer else { return Err(IngestError::Closed) };
        let files = blocking(&self.storage.table, move || writer.finish()).await?;
        Ok((self.storage.folder.clone(), files, self.guard))
    }
}

async fn blocking<T: Send + 'static>(
    table: &str,
    work: impl FnOnce() -> Result<T, DeltaError> + Send + 'static,
) -> Result<T, IngestError> {
    let step = tokio::task::spawn_blocking(work);
    step.await.map_err(|_| IngestError::Panicked)?.map_err(IngestError::delta(table))
}
