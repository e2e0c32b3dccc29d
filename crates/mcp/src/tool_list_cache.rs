//! The cached first pages of `tools/list`, the most frequent request: as text until the registry changes, once for all
//! callers that see the same tools.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tidegate_core::{Caller, Grants, Principal, Toolset, TransportKind};
use tidegate_runtime::Snapshot;

use crate::revision::Dialect;

/// The maximum number of cached pages; the oldest page is evicted.
const CACHED_PAGES_MAX: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct ToolListCache {
    pages: Mutex<VecDeque<(ToolListKey, Arc<str>)>>,
}

/// Grants and toolsets are compared by address: principals with the same roles share one object.
#[derive(Debug)]
pub(crate) struct ToolListKey {
    version: u64,
    dialect: &'static Dialect,
    transport: TransportKind,
    grants: Arc<Grants>,
    toolset: Option<Arc<Toolset>>,
    /// The principal, if more than its grants determines the tools.
    principal: Option<Arc<Principal>>,
}

impl ToolListKey {
    /// `None` if the tools depend on the peer's address.
    pub(crate) fn for_caller(caller: &Caller, snapshot: &Snapshot, dialect: &'static Dialect) -> Option<Self> {
        (!snapshot.depends_on_networks()).then(|| Self {
            version: snapshot.version(),
            dialect,
            transport: caller.origin.transport,
            grants: caller.principal.grants.clone(),
            toolset: caller.toolset.clone(),
            principal: snapshot.depends_on_principals().then(|| caller.principal.clone()),
        })
    }
}

impl PartialEq for ToolListKey {
    fn eq(&self, other: &Self) -> bool {
        let same_toolset = match (&self.toolset, &other.toolset) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
        self.version == other.version
            && self.dialect == other.dialect
            && self.transport == other.transport
            && Arc::ptr_eq(&self.grants, &other.grants)
            && same_toolset
            && self.principal == other.principal
    }
}

impl ToolListCache {
    pub(crate) fn get(&self, seen: &ToolListKey) -> Option<Arc<str>> {
        self.pages.lock().iter().find(|(other, _)| other == seen).map(|(_, members)| members.clone())
    }

    pub(crate) fn put(&self, seen: ToolListKey, members: Arc<str>) {
        let mut pages = self.pages.lock();
        pages.retain(|(other, _)| other.version == seen.version && *other != seen);
        if pages.len() >= CACHED_PAGES_MAX {
            pages.pop_front();
        }
        pages.push_back((seen, members));
    }
}
