//! Folders of tables that take rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tidegate_core::{Error, Principal};
use tidegate_engines::{EmbeddedDatabase, TableRecorder};
use tidegate_ingest::IngestFolder;
use tidegate_query::{
    Database, DatabaseKind, IngestTable, PolicyPart, PolicyProblem, REJECTS_SUFFIX, WriteRequest, WriteStart,
    WriteTarget,
};

use super::{ConfiguredDatabase, KindParts, OpenedDatabase, Opening, OpeningResult, UsedKeys, key_problem};
use crate::config::quantities::OneOrMany;
use crate::config::types::{IngestTableConfig, PolicyConfig};
use crate::ingest::{FolderUse, OpenedTables};

/// A folder of tables that take rows.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct FolderConfig {
    /// Folder of tables that take rows. Roles grant the right to write.
    ingest: OneOrMany,
    /// Whether rows create undeclared tables. Default: true.
    create_tables: Option<bool>,
    /// Declared tables by name. Default: none.
    #[serde(default)]
    pub(in crate::config) tables: BTreeMap<String, IngestTableConfig>,
    /// Row and column policies. Default: none.
    #[serde(default)]
    policies: Vec<PolicyConfig>,
}

impl FolderConfig {
    /// The path of the folder, unless a list is in its place.
    pub(in crate::config) fn path(&self) -> Option<&String> {
        match &self.ingest {
            OneOrMany::One(path) => Some(path),
            OneOrMany::Many(_) => None,
        }
    }

    /// Whether rows create undeclared tables.
    pub(in crate::config) fn creates_tables(&self) -> bool {
        self.create_tables.unwrap_or(true)
    }

    /// The problems of policies that remain when tables get their first rows later. A policy of a declared table, or of its
    /// rejected rows, then applies. The name of another table may be wrong, which is a warning. The tables of a closed
    /// folder may be unknown.
    pub(super) fn admit_later_tables(&self, found: Vec<PolicyProblem>, is_closed: bool) -> Vec<PolicyProblem> {
        let may_exist_later = self.creates_tables() || is_closed;
        let remaining = found.into_iter().filter_map(|problem| {
            let Some(policy) = self.policies.get(problem.policy).filter(|_| problem.part == PolicyPart::Table) else {
                return Some(problem);
            };
            let table = policy.table.strip_suffix(REJECTS_SUFFIX).unwrap_or(&policy.table);
            if self.tables.contains_key(table) {
                return None;
            }
            let message = format!("{}; the policy applies once the table exists", problem.message);
            Some(if may_exist_later { PolicyProblem { message, is_warning: true, ..problem } } else { problem })
        });
        remaining.collect()
    }
}

impl ConfiguredDatabase for FolderConfig {
    fn used_keys(&self) -> UsedKeys<'_> {
        let ingest_tables = Some(self.tables.keys().cloned().collect());
        let (folder, has_column_types) = (Some(self), true);
        UsedKeys { policies: &self.policies, ingest_tables, folder, has_column_types, ..UsedKeys::default() }
    }

    /// It stays if this process uses the folder just as before. Another process may have taken or left it, and a closed one
    /// may have been mended, or be closed for another reason.
    fn may_keep(&self, old: &OpenedDatabase, opening: &Opening<'_>) -> bool {
        use FolderUse::{Locked, Reads, Writes};
        let before = old.parts.folder.as_ref().map(|folder| &folder.folder_use);
        let now = opening.folders.get(&old.entry.name).map(|tables| &tables.folder_use);
        matches!(
            (before, now),
            (Some(Writes(_)), Some(Writes(_))) | (Some(Locked(_)), Some(Locked(_))) | (Some(Reads), Some(Reads))
        )
    }

    fn open(&self, name: &str, path: &str, opening: &mut Opening<'_>) -> OpeningResult {
        if self.path().is_none() {
            let message = "is a folder; a list names tables of a database that another key opens, such as postgres";
            return Err(key_problem(path, "ingest", message));
        }
        // Without tables, opening the folder was a problem that is reported.
        let OpenedTables { source, folder_use, .. } = opening.folders.remove(name).ok_or_else(Vec::new)?;
        let policies = opening.row_policies(&self.policies, path)?;
        let opened = EmbeddedDatabase::of_source(name, DatabaseKind::Ingest, source.clone(), opening.engine());
        let opened = opened.map_err(|error| key_problem(path, "ingest", error))?;
        let files = Arc::new(opened.with_row_policies(policies));
        let folder = IngestDatabase { files: files.clone(), source, folder_use };
        Ok((files, KindParts { folder: Some(Arc::new(folder)), ..KindParts::default() }))
    }
}

/// An open folder, with the database that reads it.
pub(super) struct IngestDatabase {
    files: Arc<EmbeddedDatabase>,
    source: Arc<dyn TableRecorder>,
    pub(super) folder_use: FolderUse,
}

impl IngestDatabase {
    fn writer(&self) -> Result<&IngestFolder, Error> {
        match &self.folder_use {
            FolderUse::Writes(declared) => Ok(&declared.folder),
            FolderUse::Locked(refusal) | FolderUse::Closed(refusal) => Err(refusal.clone()),
            FolderUse::Reads => Err(Error::internal("this process does not write to the folder")),
        }
    }
}

tidegate_core::impl_debug!(IngestDatabase, "IngestDatabase(..)");

#[async_trait]
impl WriteTarget for IngestDatabase {
    fn database(&self) -> &str {
        self.files.name()
    }

    fn tables(&self) -> Vec<String> {
        match self.writer() {
            Ok(folder) => folder.tables(),
            Err(_) => {
                let stored = self.source.tables();
                stored.tables.keys().filter(|name| !name.ends_with(REJECTS_SUFFIX)).cloned().collect()
            }
        }
    }

    async fn table(&self, table: &str) -> Result<IngestTable, Error> {
        self.writer()?.table(table).await
    }

    async fn begin(&self, request: WriteRequest) -> Result<WriteStart, Error> {
        self.writer()?.begin(request).await
    }

    fn count_rejected(&self, rows: u64) {
        if let Ok(folder) = self.writer() {
            folder.count_rejected(rows);
        }
    }

    async fn drop_table(&self, table: &str) -> Result<(), Error> {
        let folder = self.writer()?;
        folder.drop_table(table).await?;
        // Replaces the snapshot of the database, which keeps the files of the table.
        self.files.catalog(&Principal::anonymous()).await?;
        folder.delete_dropped_tables().await;
        Ok(())
    }
}
