//! The tables of an ingest folder as a target of writes.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_engines::{FileDatabase, TableSource};
use tidegate_ingest::IngestFolder;
use tidegate_query::{Database, IngestTable, IngestTarget, REJECTS_SUFFIX, WriteRequest, WriteStart};

/// When a caller may try again: the other process must end first.
const LOCKED_RETRY_AFTER: Duration = Duration::from_secs(60);

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

tidegate_core::impl_debug!(FolderTarget { folder });

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

    fn count_rejected(&self, rows: u64) {
        self.folder.count_rejected(rows);
    }

    async fn drop_table(&self, table: &str) -> Result<(), Error> {
        self.folder.drop_table(table).await?;
        // Replaces the snapshot of the database.
        self.database.catalog(&Principal::anonymous()).await?;
        self.folder.delete_dropped_tables().await;
        Ok(())
    }
}

/// The tables of a folder that another process writes to. Refuses all rows, with the reason.
#[derive(Debug)]
pub(crate) struct LockedTarget {
    database: String,
    source: Arc<dyn TableSource>,
    /// The process that writes, as it describes itself.
    writer: String,
}

impl LockedTarget {
    pub(crate) fn new(database: String, source: Arc<dyn TableSource>, writer: String) -> Self {
        Self { database, source, writer }
    }

    fn refusal(&self) -> Error {
        let Self { database, writer, .. } = self;
        let message = format!("database {database:?} takes no rows here, because its folder is in use by {writer}");
        let error = Error::new(ErrorKind::Unavailable, message).with_retry_after(LOCKED_RETRY_AFTER);
        error.with_hint("Send the rows to the server that writes to the folder.")
    }
}

#[async_trait]
impl IngestTarget for LockedTarget {
    fn database(&self) -> &str {
        &self.database
    }

    fn tables(&self) -> Vec<String> {
        let tables = self.source.tables();
        let names = tables.tables.keys().filter(|name| !name.ends_with(REJECTS_SUFFIX));
        names.cloned().collect()
    }

    async fn table(&self, _: &str) -> Result<IngestTable, Error> {
        Err(self.refusal())
    }

    async fn begin(&self, _: WriteRequest) -> Result<WriteStart, Error> {
        Err(self.refusal())
    }

    async fn drop_table(&self, _: &str) -> Result<(), Error> {
        Err(self.refusal())
    }
}
