//! The tables of an ingest folder as a target of writes.

use std::sync::Arc;

use async_trait::async_trait;
use tidegate_core::{Error, Principal};
use tidegate_engines::FileDatabase;
use tidegate_ingest::IngestFolder;
use tidegate_query::{Database, IngestTable, IngestTarget, WriteRequest, WriteStart};

/// A folder with the database that reads it, whose last snapshot keeps the files of a dropped table.
pub(crate) struct FolderTarget {
    folder: Arc<IngestFolder>,
    database: Arc<FileDatabase>,
}

impl FolderTarget {
    pub(crate) fn new(folder: Arc<IngestFolder>, database: Arc<FileDatabase>) -> Self {
        Self { folder, database }
    }
}

impl std::fmt::Debug for FolderTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FolderTarget").field("folder", &self.folder).finish_non_exhaustive()
    }
}

#[async_trait]
impl IngestTarget for FolderTarget {
    fn database(&self) -> &str {
        self.folder.database()
    }

    fn tables(&self) -> Vec<String> {
        self.folder.tables()
    }

    async fn table(&self, table: &str) -> Result<IngestTable, Error> {
        self.folder.table(table).await
    }

    async fn begin(&self, request: WriteRequest) -> Result<WriteStart, Error> {
        self.folder.begin(request).await
    }

    async fn drop_table(&self, table: &str) -> Result<(), Error> {
        self.folder.drop_table(table).await?;
        // Replaces the snapshot of the database.
        self.database.catalog(&Principal::anonymous()).await?;
        self.folder.delete_dropped_tables().await;
        Ok(())
    }
}
