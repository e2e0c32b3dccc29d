//! Resources that tests change.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use tidegate_core::{Access, Caller, Error, TemplateVariables, UriTemplate};
use tidegate_runtime::{
    Answer, ResourceTemplate, ResourceWatcher, Snapshot, SnapshotBuilder, event::EventDispatcher, handler_fn,
};
use tokio_util::sync::CancellationToken;

use crate::host::{Host, entries};

/// Resources `watched://NAME` with a version each, which tests increment.
#[derive(Debug, Default)]
pub struct WatchedResources {
    versions: Mutex<BTreeMap<String, u64>>,
}

impl WatchedResources {
    /// A host with these resources.
    pub fn with_host() -> (Host, Arc<Self>) {
        let resources = Arc::new(Self::default());
        let host =
            Host::with_entries(EventDispatcher::default(), |entries| resources.added_to(entries, Access::default()));
        (host, resources)
    }

    /// Changes the resource `name`.
    pub fn change(&self, name: &str) {
        *self.versions.lock().entry(name.to_owned()).or_default() += 1;
    }

    /// A snapshot with the entries of the host, and these resources for callers with `access`.
    pub fn snapshot(self: &Arc<Self>, access: Access) -> Snapshot {
        self.added_to(entries(&CancellationToken::new()), access).build()
    }

    fn added_to(self: &Arc<Self>, entries: SnapshotBuilder, access: Access) -> SnapshotBuilder {
        let uri = UriTemplate::parse("watched://{name}").unwrap();
        let mut template = ResourceTemplate::new(uri, "watched", handler_fn(|_| async { Ok(Answer::content(vec![])) }));
        template.watcher = Some(self.clone());
        template.access = access;
        entries.template(template)
    }
}

#[async_trait]
impl ResourceWatcher for WatchedResources {
    async fn version_tag(&self, variables: &TemplateVariables, _: &Caller) -> Result<Option<String>, Error> {
        Ok(Some(self.versions.lock().get(&variables["name"]).copied().unwrap_or_default().to_string()))
    }
}
