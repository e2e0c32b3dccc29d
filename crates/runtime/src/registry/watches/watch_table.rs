//! The table of listeners: their URIs and pending changes, and what is polled for them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::{Arc, Weak};

use tidegate_core::{
    Caller, CallerIdentity, Error, ErrorKind, LimitLevel, ShareCounter, TemplateVariables, tenant_share,
};
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::resource::ResourceWatcher;

/// The maximum number of concurrent polls; the principals of one tenant can have half of these.
pub(super) const CONCURRENT_MAX: usize = 8;
const SUBSCRIPTIONS_PER_LISTENER_MAX: usize = 1_000;
/// The maximum number of subscriptions of all listeners; the principals of one tenant can have half of these.
const SUBSCRIPTIONS_MAX: usize = 10_000;
/// The maximum of one principal, where principals are distinguished.
pub(super) const SUBSCRIPTIONS_PER_PRINCIPAL_MAX: usize = SUBSCRIPTIONS_MAX / 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ListenerId(u64);

#[derive(Clone)]
pub(super) struct ResolvedWatcher {
    pub(super) watcher: Arc<dyn ResourceWatcher>,
    pub(super) variables: Arc<TemplateVariables>,
    pub(super) version: u64,
}

pub(super) struct VersionTagPoll {
    pub(super) id: PolledEntryId,
    pub(super) caller: Arc<Caller>,
    pub(super) watcher: ResolvedWatcher,
    pub(super) tenant_permits: Arc<Semaphore>,
    pub(super) ended: CancellationToken,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct PolledEntryId(u64);

#[derive(Debug, Default)]
pub(super) struct WatchTable {
    listeners: HashMap<ListenerId, Listener>,
    entries: HashMap<PolledEntryId, PolledEntry>,
    ids: HashMap<PolledKey, PolledEntryId>,
    new_polls: Vec<VersionTagPoll>,
    /// The poll permits of each tenant; those of callers without a tenant as of one tenant.
    tenant_permits: HashMap<Option<String>, Weak<Semaphore>>,
    last_id: u64,
    subscriptions: ShareCounter,
    hasher: RandomState,
}

#[derive(Debug)]
struct Listener {
    uris: BTreeMap<Arc<str>, Option<PolledEntryId>>,
    changed: BTreeSet<Arc<str>>,
    wake: Arc<Notify>,
    owner: Option<CallerIdentity>,
    /// Whether a first version tag counts as a change, because the listener no longer waits for its baseline.
    has_baseline: bool,
}

#[derive(Debug)]
struct PolledEntry {
    key: PolledKey,
    /// The hash of the last version tag of the watcher, if there was one.
    version_tag: Option<u64>,
    is_polled: bool,
    has_failed: bool,
    listeners: BTreeSet<ListenerId>,
    _ended: DropGuard,
}

#[derive(Debug, Clone)]
struct PolledKey {
    uri: Arc<str>,
    version: u64,
    /// The caller, without its registry snapshot, which it would keep alive.
    caller: Arc<Caller>,
}

impl WatchTable {
    pub(super) fn open(&mut self, wake: Arc<Notify>) -> ListenerId {
        let id = ListenerId(self.next_id());
        let (uris, changed) = (BTreeMap::new(), BTreeSet::new());
        self.listeners.insert(id, Listener { uris, changed, wake, owner: None, has_baseline: true });
        id
    }

    pub(super) fn close(&mut self, id: ListenerId) {
        for uri in self.uris(id) {
            self.unsubscribe(id, &uri);
        }
        self.listeners.remove(&id);
    }

    /// Subscribes the listener to `uri`. `per_principal_max` is the maximum of one principal, if there is one.
    pub(super) fn subscribe(
        &mut self,
        id: ListenerId,
        uri: &str,
        caller: &Arc<Caller>,
        watcher: Option<ResolvedWatcher>,
        per_principal_max: Option<usize>,
    ) -> Result<(), Error> {
        let Some(listener) = self.listeners.get_mut(&id) else { return Ok(()) };
        if listener.uris.contains_key(uri) {
            return Ok(());
        }
        if listener.uris.len() >= SUBSCRIPTIONS_PER_LISTENER_MAX {
            return Err(listener_limit_error());
        }
        let owner = listener.owner.get_or_insert_with(|| CallerIdentity::for_quota(caller));
        self.subscriptions.acquire(owner, SUBSCRIPTIONS_MAX, per_principal_max).map_err(subscription_limit_error)?;
        let uri: Arc<str> = uri.into();
        listener.uris.insert(uri.clone(), None);
        self.attach(id, caller, vec![(uri, watcher)]);
        Ok(())
    }

    pub(super) fn unsubscribe(&mut self, id: ListenerId, uri: &str) {
        let Some(listener) = self.listeners.get_mut(&id) else { return };
        let Some(entry) = listener.uris.remove(uri) else { return };
        listener.changed.remove(uri);
        if let Some(owner) = &listener.owner {
            self.subscriptions.release(owner);
        }
        self.detach(id, entry);
    }

    /// Attaches the listener to the watchers found for its URIs, and detaches it from earlier ones.
    pub(super) fn attach(
        &mut self,
        id: ListenerId,
        caller: &Arc<Caller>,
        watchers: Vec<(Arc<str>, Option<ResolvedWatcher>)>,
    ) {
        for (uri, watcher) in watchers {
            let entry = watcher.map(|watcher| self.get_or_insert_entry(&uri, caller, watcher));
            let listener = self.listeners.get_mut(&id);
            let state = listener.and_then(|listener| Some((listener.uris.get_mut(&uri)?, &mut listener.has_baseline)));
            // The URI was unsubscribed from meanwhile.
            let Some((uri_entry, has_baseline)) = state else {
                self.detach(id, entry);
                continue;
            };
            let before = std::mem::replace(uri_entry, entry);
            if let Some(entry) = entry.and_then(|entry| self.entries.get_mut(&entry)) {
                *has_baseline &= entry.is_polled;
                entry.listeners.insert(id);
            }
            if before != entry {
                self.detach(id, before);
            }
        }
    }

    pub(super) fn uris(&self, id: ListenerId) -> Vec<Arc<str>> {
        self.listeners.get(&id).map(|listener| listener.uris.keys().cloned().collect()).unwrap_or_default()
    }

    pub(super) fn mark_all_changed(&mut self, id: ListenerId) {
        if let Some(listener) = self.listeners.get_mut(&id) {
            listener.changed = listener.uris.keys().cloned().collect();
            listener.wake.notify_waiters();
        }
    }

    pub(super) fn mark_changed(&mut self, id: ListenerId, uri: &Arc<str>) {
        if let Some(listener) = self.listeners.get_mut(&id).filter(|listener| listener.uris.contains_key(uri)) {
            listener.changed.insert(uri.clone());
            listener.wake.notify_waiters();
        }
    }

    pub(super) fn has_changes(&self, id: ListenerId) -> bool {
        self.listeners.get(&id).is_some_and(|listener| !listener.changed.is_empty())
    }

    pub(super) fn next_changed(&mut self, id: ListenerId) -> Option<Arc<str>> {
        self.listeners.get_mut(&id)?.changed.pop_first()
    }

    pub(super) fn has_all_version_tags(&self, id: ListenerId) -> bool {
        let Some(listener) = self.listeners.get(&id) else { return true };
        let mut entries = listener.uris.values().flatten().filter_map(|entry| self.entries.get(entry));
        entries.all(|entry| entry.is_polled)
    }

    pub(super) fn set_baseline(&mut self, id: ListenerId) {
        if let Some(listener) = self.listeners.get_mut(&id) {
            listener.has_baseline = true;
        }
    }

    pub(super) fn take_new_polls(&mut self) -> Vec<VersionTagPoll> {
        std::mem::take(&mut self.new_polls)
    }

    /// Whether the entry is of `version`. If not, it is removed: the swap notifies its listeners, which attach again.
    pub(super) fn is_current(&mut self, id: PolledEntryId, version: u64) -> bool {
        let is_current = self.entries.get(&id).is_some_and(|entry| entry.key.version == version);
        if !is_current {
            self.remove_entry(id);
        }
        is_current
    }

    /// Records a version tag, or its failure as `None`. Returns whether the failure is new.
    pub(super) fn record_version_tag(&mut self, id: PolledEntryId, version_tag: Option<&Option<String>>) -> bool {
        let version_tag = version_tag.map(|version_tag| self.hasher.hash_one(version_tag));
        let Some(entry) = self.entries.get_mut(&id) else { return false };
        let is_first_answer = !std::mem::replace(&mut entry.is_polled, true);
        let has_failed_before = std::mem::replace(&mut entry.has_failed, version_tag.is_none());
        let is_new_failure = entry.has_failed && !has_failed_before;
        let before = entry.version_tag;
        entry.version_tag = version_tag.or(before);
        let has_changed = before != entry.version_tag;
        for id in &entry.listeners {
            let Some(listener) = self.listeners.get_mut(id) else { continue };
            if has_changed && (before.is_some() || listener.has_baseline) {
                listener.changed.insert(entry.key.uri.clone());
            }
            if has_changed || is_first_answer {
                listener.wake.notify_waiters();
            }
        }
        is_new_failure
    }

    fn get_or_insert_entry(&mut self, uri: &Arc<str>, caller: &Arc<Caller>, watcher: ResolvedWatcher) -> PolledEntryId {
        let key = PolledKey { uri: uri.clone(), version: watcher.version, caller: caller.clone() };
        if let Some(id) = self.ids.get(&key) {
            return *id;
        }
        let id = PolledEntryId(self.next_id());
        self.ids.insert(key.clone(), id);
        let tenant_permits = self.tenant_permits(&caller.principal.tenant);
        let ended = CancellationToken::new();
        let poll = VersionTagPoll { id, caller: caller.clone(), watcher, tenant_permits, ended: ended.clone() };
        self.new_polls.push(poll);
        let (version_tag, is_polled, has_failed, listeners) = (None, false, false, BTreeSet::new());
        let entry = PolledEntry { key, version_tag, is_polled, has_failed, listeners, _ended: ended.drop_guard() };
        self.entries.insert(id, entry);
        id
    }

    fn tenant_permits(&mut self, tenant: &Option<String>) -> Arc<Semaphore> {
        if let Some(permits) = self.tenant_permits.get(tenant).and_then(Weak::upgrade) {
            return permits;
        }
        self.tenant_permits.retain(|_, permits| permits.strong_count() > 0);
        let polls_max = if tenant.is_some() { tenant_share(CONCURRENT_MAX) } else { CONCURRENT_MAX };
        let permits = Arc::new(Semaphore::new(polls_max));
        self.tenant_permits.insert(tenant.clone(), Arc::downgrade(&permits));
        permits
    }

    fn detach(&mut self, id: ListenerId, entry_id: Option<PolledEntryId>) {
        let Some(entry_id) = entry_id else { return };
        let Some(entry) = self.entries.get_mut(&entry_id) else { return };
        entry.listeners.remove(&id);
        if entry.listeners.is_empty() {
            self.remove_entry(entry_id);
        }
    }

    fn remove_entry(&mut self, id: PolledEntryId) {
        let Some(entry) = self.entries.remove(&id) else { return };
        self.ids.remove(&entry.key);
        for listener in entry.listeners.iter().filter_map(|id| self.listeners.get(id)) {
            listener.wake.notify_waiters();
        }
    }

    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }
}

fn listener_limit_error() -> Error {
    let message = format!("too many resource subscriptions; at most {SUBSCRIPTIONS_PER_LISTENER_MAX} at once");
    Error::new(ErrorKind::TooLarge, message)
}

fn subscription_limit_error(level: LimitLevel) -> Error {
    let origin = match level {
        LimitLevel::Principal => " by you",
        LimitLevel::Tenant => " by your tenant",
        LimitLevel::Tool | LimitLevel::Node => "",
    };
    Error::new(ErrorKind::RateLimited, format!("too many resource subscriptions{origin}; try again later"))
}

impl PartialEq for PolledKey {
    fn eq(&self, other: &Self) -> bool {
        let (one, another) = (&self.caller, &other.caller);
        let sees_the_same =
            || one.is_same_identity(another) && one.principal == another.principal && one.toolset == another.toolset;
        self.uri == other.uri && self.version == other.version && (Arc::ptr_eq(one, another) || sees_the_same())
    }
}

impl Eq for PolledKey {}

impl Hash for PolledKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.uri, self.version, &self.caller.principal.subject).hash(state);
    }
}

tidegate_core::impl_debug!(VersionTagPoll { id });
