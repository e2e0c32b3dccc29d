//! Folders of tables that take rows.

use std::collections::BTreeMap;
use std::mem::take;
use std::sync::Arc;

use tidegate_engines::FileDatabase;
use tidegate_query::{DatabaseKind, IngestTarget, PolicyPart, PolicyProblem, REJECTS_SUFFIX};

use super::{ConfiguredDatabase, KindParts, OpenedDatabase, Opening, OpeningResult, key_problem};
use crate::config::quantities::OneOrMany;
use crate::config::types::{DatabaseConfig, PolicyConfig, TableConfig};
use crate::ingest::{DeclaredTables, FolderTarget, FolderUse, OpenedTables};

/// The keys beside the folder, which is opened before, as it is shared by configurations.
#[derive(Clone)]
pub(super) struct FolderConfig {
    creates_tables: bool,
    tables: BTreeMap<String, TableConfig>,
    policies: Vec<PolicyConfig>,
}

impl FolderConfig {
    /// Moves the keys of a folder out of an entry.
    pub(super) fn take_keys(keys: &mut DatabaseConfig) -> Option<Box<dyn ConfiguredDatabase>> {
        keys.ingest.take_if(|folder| matches!(folder, OneOrMany::One(_)))?;
        let creates_tables = keys.create_tables.take().unwrap_or(true);
        Some(Box::new(Self { creates_tables, tables: take(&mut keys.tables), policies: take(&mut keys.policies) }))
    }
}

impl ConfiguredDatabase for FolderConfig {
    /// It stays if this process writes to the folder just as before. Another process may have taken or left it.
    fn may_keep(&self, old: &OpenedDatabase, _: &str, opening: &Opening<'_>) -> bool {
        let opened = opening.folders.get(&old.entry.name);
        old.declared_tables().is_some() == opened.is_some_and(|tables| tables.folder_use.declared().is_some())
    }

    fn open(&self, name: &str, path: &str, opening: &mut Opening<'_>) -> OpeningResult {
        // Without tables, opening the folder was a problem that is reported.
        let OpenedTables { source, folder_use, .. } = opening.folders.remove(name).ok_or_else(Vec::new)?;
        let policies = opening.row_policies(&self.policies, path)?;
        let opened = FileDatabase::of_source(name, DatabaseKind::Ingest, source, opening.engine());
        let opened = opened.map_err(|error| key_problem(path, "ingest", error))?;
        let files = Arc::new(opened.with_row_policies(policies));
        let folder = IngestDatabase { files: files.clone(), folder_use, config: self.clone() };
        Ok((files, KindParts { folder: Some(Arc::new(folder)), ..KindParts::default() }))
    }
}

/// An open folder.
pub(super) struct IngestDatabase {
    files: Arc<FileDatabase>,
    folder_use: FolderUse,
    config: FolderConfig,
}

impl IngestDatabase {
    /// What is declared, if this process writes to the folder.
    pub(super) fn declared_tables(&self) -> Option<&DeclaredTables> {
        self.folder_use.declared()
    }

    pub(super) fn folder_target(&self) -> Option<Arc<dyn IngestTarget>> {
        let declared = self.declared_tables()?;
        Some(Arc::new(FolderTarget::new(declared.folder.clone(), self.files.clone())))
    }

    /// The target, or one that refuses rows while another process writes.
    pub(super) fn caller_target(&self) -> Option<Arc<dyn IngestTarget>> {
        match &self.folder_use {
            FolderUse::Locked(refusing) => Some(refusing.clone()),
            FolderUse::Writes(_) | FolderUse::Reads => self.folder_target(),
        }
    }

    /// The problems of policies that remain when tables get their first rows later. A policy of a declared table, or of its
    /// rejected rows, then applies. The name of another table may be wrong, which is a warning.
    pub(super) fn admit_later_tables(&self, found: Vec<PolicyProblem>) -> Vec<PolicyProblem> {
        let FolderConfig { creates_tables, tables, policies } = &self.config;
        let remaining = found.into_iter().filter_map(|problem| {
            let Some(policy) = policies.get(problem.policy).filter(|_| problem.part == PolicyPart::Table) else {
                return Some(problem);
            };
            let table = policy.table.strip_suffix(REJECTS_SUFFIX).unwrap_or(&policy.table);
            if tables.contains_key(table) {
                return None;
            }
            let message = format!("{}; the policy applies once the table exists", problem.message);
            Some(if *creates_tables { PolicyProblem { message, is_warning: true, ..problem } } else { problem })
        });
        remaining.collect()
    }
}
