//! Who listens to what: every listener with its URIs and what it has yet to hear, and what is polled for them.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::Arc;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::tenant_scheduler::TenantScheduler;
use crate::call::TemplateVariables;
use crate::caller::Caller;
use crate::error::{Error, ErrorKind};
use crate::limits::{LimitLevel, ShareCounter};
use crate::owner::Owner;
use crate::resource::ResourceWatcher;

/// Resources that one listener may subscribe to.
const SUBSCRIPTIONS_PER_LISTENER_MAX: usize = 1_000;
/// Subscriptions of all listeners together, of which the principals of one tenant have half.
const SUBSCRIPTIONS_MAX: usize = 10_000;
/// Those of one principal, where principals are told apart.
pub(super) const SUBSCRIPTIONS_PER_PRINCIPAL_MAX: usize = SUBSCRIPTIONS_MAX / 4;

/// A listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ListenerId(u64);

/// Something that is polled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct PolledEntryId(u64);

/// What tells of the changes of a resource, in one version of the registry.
#[derive(Clone)]
pub(super) struct ResolvedWatcher {
    pub(super) watcher: Arc<dyn ResourceWatcher>,
    pub(super) variables: Arc<TemplateVariables>,
    pub(super) version: u64,
}

/// A stamp that is to be asked for.
pub(super) struct StampRequest {
    pub(super) id: PolledEntryId,
    pub(super) caller: Arc<Caller>,
    pub(super) resolved_watcher: ResolvedWatcher,
}

/// What is to be done next.
pub(super) enum PollStep {
    /// To ask.
    Poll(StampRequest),
    /// To wait until then.
    WaitUntil(Instant),
    /// Nothing.
    Idle,
}

/// All listeners and all that is polled for them.
#[derive(Debug, Default)]
pub(super) struct WatchTable {
    listeners: HashMap<ListenerId, Listener>,
    entries: HashMap<PolledEntryId, PolledEntry>,
    ids: HashMap<PolledKey, PolledEntryId>,
    /// What was asked for last comes last, so that it is in the order of its times.
    due: VecDeque<(Instant, PolledEntryId)>,
    /// What is due.
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
    /// Whom its subscriptions count for.
    holder: Option<Owner>,
    /// Whether a first stamp counts as a change, since nobody waits for it any more.
    has_baseline: bool,
}

struct PolledEntry {
    key: PolledKey,
    resolved_watcher: ResolvedWatcher,
    /// The hash of what its watcher said last, once it has said anything.
    stamp: Option<u64>,
    is_polled: bool,
    has_failed: bool,
    listeners: BTreeSet<ListenerId>,
}

/// What the listeners of an entry share.
#[derive(Debug, Clone)]
struct PolledKey {
    uri: Arc<str>,
    version: u64,
    /// Who asks, without a state of the registry, which it would keep alive.
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

    /// Has the listener hear of `uri`, too; one principal has `of_one_max` subscriptions if it is held to that.
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

    /// Has the listener hear of what is found for its URIs from now on, and of nothing else that was.
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
            // One that was unsubscribed from meanwhile stays so.
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

    /// The URIs that the listener has subscribed to.
    pub(super) fn uris(&self, id: ListenerId) -> Vec<Arc<str>> {
        self.listeners.get(&id).map(|listener| listener.uris.keys().cloned().collect()).unwrap_or_default()
    }

    pub(super) fn mark_all_changed(&mut self, id: ListenerId) {
        if let Some(listener) = self.listeners.get_mut(&id) {
            listener.changed = listener.uris.keys().cloned().collect();
            listener.wake.notify_waiters();
        }
    }

    /// Counts one of its resources as changed, if the listener still subscribes to it.
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

    /// Whether there is an answer for all that the listener has subscribed to.
    pub(super) fn has_all_stamps(&self, id: ListenerId) -> bool {
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

    /// Whether the poller may end; then it must.
    pub(super) fn end_polling(&mut self) -> bool {
        self.is_polling = !self.entries.is_empty();
        !self.is_polling
    }

    /// What to ask next. Watchers of an earlier version are let go: who listens is told of the swap, and comes back.
    pub(super) fn next_step(&mut self, now: Instant, version: u64) -> PollStep {
        let later = self.queue_due(now, version);
        while let Some((id, tenant)) = self.scheduler.start_next() {
            if let Some(entry) = self.current_entry(id, version) {
                return PollStep::Poll(StampRequest {
                    id,
                    caller: entry.key.caller.clone(),
                    resolved_watcher: entry.resolved_watcher.clone(),
                });
            }
            self.scheduler.finish(&tenant);
        }
        later.map_or(PollStep::Idle, PollStep::WaitUntil)
    }

    /// Has what is due wait for its turn; says when more is.
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

    /// What is polled as `id`; one of another version is let go.
    fn current_entry(&mut self, id: PolledEntryId, version: u64) -> Option<&PolledEntry> {
        if self.entries.get(&id)?.key.version != version {
            self.remove_entry(id);
        }
        self.entries.get(&id)
    }

    /// What a watcher said, if it could tell; it is asked again at `again_at`. Says whether that it could not is new.
    pub(super) fn record_stamp(
        &mut self,
        id: PolledEntryId,
        caller: &Caller,
        stamp: Option<&Option<String>>,
        again_at: Instant,
    ) -> bool {
        self.scheduler.finish(&caller.principal.tenant);
        let stamp = stamp.map(|stamp| self.hasher.hash_one(stamp));
        let Some(entry) = self.entries.get_mut(&id) else { return false };
        self.due.push_back((again_at, id));
        let is_first_answer = !std::mem::replace(&mut entry.is_polled, true);
        let has_failed_before = std::mem::replace(&mut entry.has_failed, stamp.is_none());
        let has_failed_now = entry.has_failed && !has_failed_before;
        let before = entry.stamp;
        entry.stamp = stamp.or(before);
        let has_changed = before != entry.stamp;
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

    /// What is polled for the resource and somebody; new ones are due at once.
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
            stamp: None,
            is_polled: false,
            has_failed: false,
            listeners: BTreeSet::new(),
        };
        self.entries.insert(id, entry);
        if self.due.len() + self.scheduler.len() > 2 * SUBSCRIPTIONS_MAX {
            // Of those who came and went while watchers were slow.
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
        f.debug_struct("Entry").field("key", &self.key).finish_non_exhaustive()
    }
}
