//! The current snapshot of the registry, with its version.

use std::sync::Arc;

use arc_swap::ArcSwap;
use tidegate_core::Caller;
use tokio::sync::watch;

use crate::snapshot::Snapshot;

/// The current snapshot. Each swap increments its version.
#[derive(Debug)]
pub(super) struct CurrentSnapshot {
    snapshot: ArcSwap<Snapshot>,
    version: watch::Sender<u64>,
}

impl CurrentSnapshot {
    pub(super) fn new(snapshot: Snapshot) -> Self {
        let version = 1;
        Self { snapshot: ArcSwap::from_pointee(snapshot.with_version(version)), version: watch::Sender::new(version) }
    }

    pub(super) fn load(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    pub(super) fn load_for(&self, caller: &Caller) -> Arc<Snapshot> {
        Snapshot::for_caller(caller).unwrap_or_else(|| self.load())
    }

    /// Replaces the snapshot, notifies the receivers of versions, and returns the new version.
    pub(super) fn swap(&self, snapshot: Snapshot) -> u64 {
        let mut version = 0;
        self.version.send_modify(|current| {
            *current += 1;
            version = *current;
            self.snapshot.store(Arc::new(snapshot.with_version(version)));
        });
        version
    }

    pub(super) fn version(&self) -> u64 {
        *self.version.borrow()
    }

    pub(super) fn versions(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }
}
