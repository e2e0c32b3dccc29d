//! Resources that change when a test says so.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use tidegate_core::{Access, Caller, Error, TemplateVariables, UriTemplate};
use tidegate_runtime::{
    Metadata, ResourceTemplate, ResourceWatcher, Snapshot, SnapshotBuilder, event::EventDispatcher, handler_fn,
};
use tokio_util::sync::CancellationToken;

use crate::host::{Host, entries};

/// How often each bed was dug.
#[derive(Debug, Default)]
pub(crate) struct Garden {
    dug: Mutex<BTreeMap<String, u64>>,
}

impl Garden {
    /// A host with a garden, `garden://` and the name of a bed.
    pub(crate) fn with_host() -> (Host, Arc<Self>) {
        let resources = Arc::new(Self::default());
        let host = Host::with(EventDispatcher::default(), |entries| resources.planted(entries, Access::default()));
        (host, resources)
    }

    /// What one of the beds holds becomes another.
    pub(crate) fn dig(&self, bed: &str) {
        *self.dug.lock().entry(bed.to_owned()).or_default() += 1;
    }

    /// A next state of the registry, with the same entries and the garden for those who have its access.
    pub(crate) fn state(self: &Arc<Self>, access: Access) -> Snapshot {
        self.planted(entries(&CancellationToken::new()), access).build()
    }

    fn planted(self: &Arc<Self>, entries: SnapshotBuilder, access: Access) -> SnapshotBuilder {
        let uri = UriTemplate::parse("garden://{bed}").unwrap();
        let mut beds = ResourceTemplate::new(uri, "garden", handler_fn(|_, _| async { Ok(Metadata::new()) }));
        beds.watcher = Some(self.clone());
        beds.access = access;
        entries.template(beds)
    }
}

#[async_trait]
impl ResourceWatcher for Garden {
    async fn stamp(&self, variables: &TemplateVariables, _: &Caller) -> Result<Option<String>, Error> {
        Ok(Some(self.dug.lock().get(&variables["bed"]).copied().unwrap_or_default().to_string()))
    }
}
