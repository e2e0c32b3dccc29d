//! The table of listeners: their URIs and pending changes, and what is polled for them.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::Arc;

use tidegate_core::{Caller, Error, ErrorKind, LimitLevel, Owner, ShareCounter, TemplateVariables};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::tenant_scheduler::{PolledEntryId, TenantScheduler};
use crate::resource::ResourceWatcher;

/// The maximum number of subscriptions of one listener.
const SUBSCRIPTIONS_PER_LISTENER_MAX: usize = 1_000;
/// The maximum number of subscriptions of all listeners; the principals of one tenant can have half of these.
const SUBSCRIPTIONS_MAX: usize = 10_000;
/// The maximum of one principal, where principals are distinguished.
pub(super) const SUBSCRIPTIONS_PER_PRINCIPAL_MAX: usize = SUBSCRIPTIONS_MAX / 4;

/// The id of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ListenerId(u64);

/// The watcher of a resource in one version of the registry.
#[derive(Clone)]
pub(super) struct ResolvedWatcher {
    pub(super) watcher: Arc<dyn ResourceWatcher>,
    pub(super) variables: Arc<TemplateVariables>,
    pub(super) version: u64,
}

/// A version tag to be polled.
pub(super) struct VersionTagRequest {
    pub(super) id: PolledEntryId,
    pub(super) caller: Arc<Caller>,
    pub(super) resolved_watcher: ResolvedWatcher,
}

/// The next step of the poller.
pub(super) enum PollStep {
    /// Polls a version tag.
    Poll(VersionTagRequest),
    /// Waits until this time.
    WaitUntil(Instant),
    /// Does nothing.
    Idle,
}

/// All listeners and polled entries.
#[derive(Debug, Default)]
pub(super) struct WatchTable {
    listeners: HashMap<ListenerId, Listener>,
    entries: HashMap<PolledEntryId, PolledEntry>,
    ids: HashMap<PolledKey, PolledEntryId>,
    /// Ordered by time: entries that were just polled are appended.
    due: VecDeque<(Instant, PolledEntryId)>,
    /// The due polls.
    scheduler: TenantScheduler,
    last_id: u64,
    subscriptions: ShareCounter,
    is_polling: bool,
    hasher: RandomState,
}

#[derive(Debug)]
struct Listener {
    uris: BTreeMap<Arc<str>, Option<PolledEntryId>>,
    changed: BTreeSet<Arc<str>>,
    wake: Arc<Notify>,
    /// The holder that its subscriptions count for.
    holder: Option<Owner>,
    /// Whether a first version tag counts as a change, because the listener no longer waits for its baseline.
    has_baseline: bool,
}

struct PolledEntry {
    key: PolledKey,
    resolved_watcher: ResolvedWatcher,
    /// The hash of the last version tag of the watcher, if there was one.
    version_tag: Option<u64>,
    is_polled: bool,
    has_failed: bool,
    listeners: BTreeSet<ListenerId>,
}

/// What listeners of the same entry have in common.
#[derive(Debug, Clone)]
struct PolledKey {
    uri: Arc<str>,
    version: u64,
    /// The caller, without its registry snapshot, which it would keep alive.
    caller: Arc<Caller>,
}

impl WatchTable {
    pub(super) fn open(&mut self, woken: Arc<Notify>) -> ListenerId {
        let id = ListenerId(self.next_id());
        let (uris, changed) = (BTreeMap::new(), BTreeSet::new());
        self.listeners.insert(id, Listener { uris, changed, wake: woken, holder: None, has_baseline: true });
        id
    }

    pub(super) fn close(&mut self, id: ListenerId) {
        for uri in self.uris(id) {
            self.unsubscribe(id, &uri);
        }
        self.listeners.remove(&id);
    }

    /// Subscribes the listener to `uri`. `of_one_max` is the maximum of one principal, if there is one.
    pub(super) fn subscribe(
        &mut self,
        id: ListenerId,
        uri: &str,
        caller: &Arc<Caller>,
        found: Option<ResolvedWatcher>,
        of_one_max: Option<usize>,
    ) -> Result<(), Error> {
        let Some(listener) = self.listeners.get_mut(&id) else { return Ok(()) };
        if listener.uris.contains_key(uri) {
            return Ok(());
        }
        if listener.uris.len() >= SUBSCRIPTIONS_PER_LISTENER_MAX {
            return Err(listener_limit_error());
        }
        let holder = listener.holder.get_or_insert_with(|| Owner::for_quota(caller));
        self.subscriptions.acquire(holder, SUBSCRIPTIONS_MAX, of_one_max).map_err(subscription_limit_error)?;
        let uri: Arc<str> = uri.into();
        listener.uris.insert(uri.clone(), None);
        self.attach(id, caller, vec![(uri, found)]);
        Ok(())
    }

    pub(super) fn unsubscribe(&mut self, id: ListenerId, uri: &str) {
        let Some(listener) = self.listeners.get_mut(&id) else { return };
        let Some(entry) = listener.uris.remove(uri) else { return };
        listener.changed.remove(uri);
        if let Some(holder) = &listener.holder {
            self.subscriptions.release(holder);
        }
        self.detach(id, entry);
    }

    /// Attaches the listener to the watchers found for its URIs, and detaches it from earlier ones.
    pub(super) fn attach(
        &mut self,
        id: ListenerId,
        caller: &Arc<Caller>,
        found: Vec<(Arc<str>, Option<ResolvedWatcher>)>,
    ) {
        for (uri, found) in found {
            let entry = found.map(|found| self.get_or_insert_entry(&uri, caller, found));
            let listener = self.listeners.get_mut(&id);
            let found = listener.and_then(|listener| Some((listener.uris.get_mut(&uri)?, &mut listener.has_baseline)));
            // The URI was unsubscribed from meanwhile.
            let Some((of_uri, is_settled)) = found else {
                self.detach(id, entry);
                continue;
            };
            let before = std::mem::replace(of_uri, entry);
            if let Some(entry) = entry.and_then(|entry| self.entries.get_mut(&entry)) {
                *is_settled &= entry.is_polled;
                entry.listeners.insert(id);
            }
            if before != entry {
                self.detach(id, before);
            }
        }
    }

    /// The URIs of the listener's subscriptions.
    pub(super) fn uris(&self, id: ListenerId) -> Vec<Arc<str>> {
        self.listeners.get(&id).map(|listener| listener.uris.keys().cloned().collect()).unwrap_or_default()
    }

    pub(super) fn mark_all_changed(&mut self, id: ListenerId) {
        if let Some(listener) = self.listeners.get_mut(&id) {
            listener.changed = listener.uris.keys().cloned().collect();
            listener.wake.notify_waiters();
        }
    }

    /// Marks one resource as changed, if the listener still subscribes to it.
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

    /// Whether each subscription of the listener has been polled.
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

    /// Whether a poller must be started.
    pub(super) fn begin_polling(&mut self) -> bool {
        !self.entries.is_empty() && !std::mem::replace(&mut self.is_polling, true)
    }

    /// Whether the poller must end.
    pub(super) fn end_polling(&mut self) -> bool {
        self.is_polling = !self.entries.is_empty();
        !self.is_polling
    }

    /// The next step of the poller. Entries of an earlier version are removed: the swap notifies their listeners, which
    /// attach again.
    pub(super) fn next_step(&mut self, now: Instant, version: u64) -> PollStep {
        let later = self.queue_due(now, version);
        while let Some((id, tenant)) = self.scheduler.start_next() {
            if let Some(entry) = self.current_entry(id, version) {
                return PollStep::Poll(VersionTagRequest {
                    id,
                    caller: entry.key.caller.clone(),
                    resolved_watcher: entry.resolved_watcher.clone(),
                });
            }
            self.scheduler.finish(&tenant);
        }
        later.map_or(PollStep::Idle, PollStep::WaitUntil)
    }

    /// Queues the due polls. Returns the time at which the next one is due.
    fn queue_due(&mut self, now: Instant, version: u64) -> Option<Instant> {
        while let Some((due, id)) = self.due.front().copied() {
            if let Some(entry) = self.current_entry(id, version) {
                if due > now {
                    return Some(due);
                }
                let caller = entry.key.caller.clone();
                self.scheduler.enqueue(id, &caller.principal.tenant);
            }
            self.due.pop_front();
        }
        None
    }

    /// The polled entry `id`, unless it is of another version; then it is removed.
    fn current_entry(&mut self, id: PolledEntryId, version: u64) -> Option<&PolledEntry> {
        if self.entries.get(&id)?.key.version != version {
            self.remove_entry(id);
        }
        self.entries.get(&id)
    }

    /// Records a version tag, or its failure as `None`, and schedules the next poll at `again_at`. Returns whether the
    /// failure is new.
    pub(super) fn record_version_tag(
        &mut self,
        id: PolledEntryId,
        caller: &Caller,
        version_tag: Option<&Option<String>>,
        again_at: Instant,
    ) -> bool {
        self.scheduler.finish(&caller.principal.tenant);
        let version_tag = version_tag.map(|version_tag| self.hasher.hash_one(version_tag));
        let Some(entry) = self.entries.get_mut(&id) else { return false };
        self.due.push_back((again_at, id));
        let is_first_answer = !std::mem::replace(&mut entry.is_polled, true);
        let has_failed_before = std::mem::replace(&mut entry.has_failed, version_tag.is_none());
        let has_failed_now = entry.has_failed && !has_failed_before;
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
        has_failed_now
    }

    /// The polled entry for the resource and the caller; new entries are due at once.
    fn get_or_insert_entry(&mut self, uri: &Arc<str>, caller: &Arc<Caller>, found: ResolvedWatcher) -> PolledEntryId {
        let key = PolledKey { uri: uri.clone(), version: found.version, caller: caller.clone() };
        if let Some(id) = self.ids.get(&key) {
            return *id;
        }
        let id = PolledEntryId(self.next_id());
        self.ids.insert(key.clone(), id);
        let entry = PolledEntry {
            key,
            resolved_watcher: found,
            version_tag: None,
            is_polled: false,
            has_failed: false,
            listeners: BTreeSet::new(),
        };
        self.entries.insert(id, entry);
        if self.due.len() + self.scheduler.len() > 2 * SUBSCRIPTIONS_MAX {
            // Entries of listeners that ended while their watchers were slow.
            self.due.retain(|(_, id)| self.entries.contains_key(id));
            self.scheduler.retain(|id| self.entries.contains_key(id));
        }
        self.due.push_front((Instant::now(), id));
        id
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
    let owner_key = match level {
        LimitLevel::Principal => " by you",
        LimitLevel::Tenant => " by your tenant",
        LimitLevel::Tool | LimitLevel::Node => "",
    };
    Error::new(ErrorKind::RateLimited, format!("too many resource subscriptions{owner_key}; try again later"))
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

impl fmt::Debug for PolledEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolledEntry").field("key", &self.key).finish_non_exhaustive()
    }
}
