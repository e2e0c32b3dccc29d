//! Open databases whose tables take rows.

use std::sync::Arc;

use tidegate_query::{CountedTarget, IngestTarget};

use super::databases::{DatabaseEngine, OpenDatabases, OpenedDatabase};
use crate::ingest::{DeclaredTables, FolderTarget, FolderUse, OpenedTables};

/// The tables of a database that take rows.
#[derive(Clone)]
pub(super) enum OpenedTarget {
    /// A folder has counters of its own.
    Folder(Arc<FolderTarget>),
    Counted(Arc<CountedTarget>),
}

impl OpenedTarget {
    pub(super) fn with_counters(target: impl IngestTarget) -> Self {
        Self::Counted(Arc::new(CountedTarget::new(Arc::new(target))))
    }

    /// The target of a database that takes the place of the one with `previous`.
    pub(super) fn with_counters_of(self, previous: Option<&Self>) -> Self {
        match (self, previous) {
            (Self::Counted(target), Some(Self::Counted(old))) if !Arc::ptr_eq(&target, old) => {
                Self::Counted(Arc::new(target.with_counters_of(old)))
            }
            (target, _) => target,
        }
    }

    pub(super) fn as_target(&self) -> Arc<dyn IngestTarget> {
        match self {
            Self::Folder(target) => target.clone(),
            Self::Counted(target) => target.clone(),
        }
    }
}

impl OpenDatabases {
    /// The tables that take rows, by database.
    pub(super) fn ingest_targets(&self) -> Vec<Arc<dyn IngestTarget>> {
        self.by_name.values().filter_map(|opened| opened.target.as_ref()).map(OpenedTarget::as_target).collect()
    }

    /// Continues the counters of the databases in `previous`, which were opened again because their entries changed.
    pub(super) fn continue_counters(&mut self, previous: &Self) {
        for opened in self.by_name.values_mut() {
            let before = previous.by_name.get(&opened.entry.name).and_then(|before| before.target.as_ref());
            opened.target = opened.target.take().map(|target| target.with_counters_of(before));
        }
    }

    /// The tables that take rows elsewhere than in folders.
    pub(super) fn counted_targets(&self) -> impl Iterator<Item = &Arc<CountedTarget>> {
        self.by_name.values().filter_map(|opened| match &opened.target {
            Some(OpenedTarget::Counted(target)) => Some(target),
            Some(OpenedTarget::Folder(_)) | None => None,
        })
    }

    /// The folders of tables that take rows.
    pub(super) fn ingest_folders(&self) -> impl Iterator<Item = &DeclaredTables> {
        self.by_name.values().filter_map(|opened| match &opened.engine {
            DatabaseEngine::Ingest(_, folder_use) => folder_use.declared(),
            _ => None,
        })
    }
}

impl OpenedDatabase {
    /// Whether this process writes to the folder just as before. Another process may have taken or left it.
    pub(super) fn has_same_folder(&self, opened: Option<&OpenedTables>) -> bool {
        let wrote = matches!(&self.engine, DatabaseEngine::Ingest(_, FolderUse::Writes(_)));
        wrote == opened.is_some_and(|tables| tables.folder_use.declared().is_some())
    }

    /// Where callers write to: the tables that take rows, or a target that refuses rows while another process writes.
    pub(super) fn caller_target(&self) -> Option<Arc<dyn IngestTarget>> {
        match &self.engine {
            DatabaseEngine::Ingest(_, FolderUse::Locked(refusing)) => Some(refusing.clone()),
            _ => self.target.as_ref().map(OpenedTarget::as_target),
        }
    }
}
