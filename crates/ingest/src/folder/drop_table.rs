//! Removes tables: first in the log, then on disk when no view uses the files.

use std::path::Path;

use tidegate_core::private_file;
use uuid::Uuid;

use super::closed_tables::LostRows;
use super::shared::FolderShared;
use super::storage::TableStorage;
use super::write_record::{RecordDescription, encode_record};
use super::{IngestError, TIDEGATE_FOLDER, TRASH_FOLDER};
use crate::delta::DeltaError;

impl FolderShared {
    /// Removes a table. It is invisible when this returns; its files are deleted when no view uses them.
    pub(crate) async fn drop_table(self: &std::sync::Arc<Self>, key: &str) -> Result<(), IngestError> {
        // Waits for admitted writes, so that their records come before.
        let commits = self.commits.write().await;
        let unknown = || IngestError::UnknownTable(key.to_owned());
        let name = {
            let state = self.state.lock();
            if state.is_closing {
                return Err(IngestError::Closed);
            }
            let table = state.tables.get(key).filter(|table| table.dropped_at.is_none()).ok_or_else(unknown)?;
            table.name.clone()
        };
        let payload = encode_record(&RecordDescription::DropTable { table: name.clone() }, Vec::new())?;
        let shared = self.clone();
        self.log
            .append_with(payload, move |sequence| {
                let mut state = shared.state.lock();
                state.drop_table(sequence, &name);
                shared.version.send_replace(state.version);
            })
            .await?;
        drop(commits);
        self.remove_dropped_tables().await;
        Ok(())
    }

    /// Deletes the files of dropped tables that no view uses.
    pub(crate) async fn remove_dropped_tables(&self) {
        let dropped: Vec<_> = {
            let mut state = self.state.lock();
            let tables = state.tables.values_mut();
            let unused = tables.filter_map(|table| {
                let is_unused = table.dropped_at.is_some() && table.live_views().is_empty();
                is_unused.then(|| (table.name.clone(), table.storage.clone()))
            });
            unused.collect()
        };
        let any = !dropped.is_empty();
        for (name, storage) in dropped {
            match self.remove_files(&storage).await {
                Ok(true) => self.state.lock().forget_table(&name),
                // A write that began before the removal still has files open. They are deleted later.
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(table = %name, %error, "a dropped table could not be deleted; it is tried again")
                }
            }
        }
        if any {
            self.release_log().await;
        }
    }

    async fn remove_files(&self, storage: &TableStorage) -> Result<bool, IngestError> {
        let _flush = storage.flush.lock().await;
        let Ok(_files) = storage.unlisted_files.try_write() else { return Ok(false) };
        let (root, name) = (self.path.clone(), storage.table.clone());
        let remove = move |delta: &mut Option<crate::delta::DeltaTable>, folder: &Path| {
            *delta = None;
            let removed = discard_folder(&root, folder).and_then(|()| LostRows::delete(&root, &name));
            removed.map_err(|source| DeltaError::Io { path: folder.to_owned(), source })
        };
        storage.with_delta(remove).await.map(|()| true)
    }
}

/// Deletes a folder below `root`. A crash leaves it whole, or out of the way.
pub(crate) fn discard_folder(root: &Path, folder: &Path) -> std::io::Result<()> {
    if !folder.try_exists()? {
        return Ok(());
    }
    let trash = root.join(TIDEGATE_FOLDER).join(TRASH_FOLDER);
    private_file::create_folder(&trash)?;
    let discarded = trash.join(Uuid::new_v4().to_string());
    std::fs::rename(folder, &discarded)?;
    std::fs::File::open(folder.parent().unwrap_or(root))?.sync_all()?;
    std::fs::remove_dir_all(&discarded)
}
