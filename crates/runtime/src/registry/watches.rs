//! Watches resources: listeners are notified that the contents of a resource may have changed.
//!
//! Version tags are polled only while there are listeners, once per URI and caller, because contents can differ between
//! callers. Changes are stored as a set of URIs, so a slow listener needs no queue and receives each change once. A
//! swap of the registry counts as a change of every resource.
//!
//! Each polled entry has a task. A poll waits for a permit of its tenant and then for one of the registry, in the order
//! of requests. Few polls of a tenant wait for a permit of the registry, so slow watchers of one tenant leave room for
//! those of others.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::FutureExt;
use parking_lot::Mutex;
use tidegate_core::{
    AuthMethod, Caller, CallerIdentity, Error, ErrorKind, LimitLevel, ShareCounter, TemplateVariables, tenant_share,
};
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::CurrentSnapshot;
use crate::entry::{ResourceWatcher, panic_to_error};
use crate::event::EventDispatcher;
use crate::snapshot::{Snapshot, not_found};

/// How long a new listener waits for the first version tags of its resources. Later version tags count as changes.
const BASELINE_TIMEOUT: Duration = Duration::from_secs(2);
/// The number of delivered changes that are remembered, because a connection may break before they arrive. A listener
/// that missed more than these is notified of all its subscriptions.
const DELIVERED_MAX: usize = 64;

/// A listener for changes of the registry and of subscribed resources. Dropping it ends it.
#[derive(Debug)]
pub struct ChangeListener {
    manager: Arc<WatchManager>,
    id: ListenerId,
    wake: Arc<Notify>,
    state: Mutex<WatchListenerState>,
}

#[derive(Debug)]
struct WatchListenerState {
    /// The last known caller, without its registry snapshot, which it would keep alive.
    caller: Option<Caller>,
    seen_version: u64,
    registry_changed: bool,
    /// The resources of the last delivered changes, oldest first.
    delivered: VecDeque<Arc<str>>,
    delivered_count: u64,
}

/// A change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchEvent {
    /// The registry was replaced.
    Registry,
    /// The contents of the resource with that URI may have changed.
    Resource(Arc<str>),
}

impl ChangeListener {
    pub(super) fn new(manager: Arc<WatchManager>) -> Self {
        let wake = Arc::new(Notify::new());
        let id = manager.table.lock().open(wake.clone());
        let state = WatchListenerState {
            caller: None,
            seen_version: manager.snapshot.version(),
            registry_changed: false,
            delivered: VecDeque::new(),
            delivered_count: 0,
        };
        Self { manager, id, wake, state: Mutex::new(state) }
    }

    /// Subscribes to the resource `uri`. Must be called within a tokio runtime. After the last subscription, await
    /// [`ChangeListener::wait_for_baseline`].
    ///
    /// # Errors
    /// `NotFound` if `caller` may not read such a resource. `TooLarge` beyond 1,000 subscriptions of one listener.
    /// `RateLimited` beyond 10,000 of all listeners, half of these of one tenant, or a quarter of one principal where
    /// principals are distinguished.
    pub fn subscribe(&self, uri: &str, caller: &Caller) -> Result<(), Error> {
        let snapshot = self.manager.snapshot.load_for(caller);
        if !snapshot.has_resource(uri, caller) {
            return Err(not_found("resource", uri, Vec::new()));
        }
        let watcher = resolve_watcher(&snapshot, uri, caller);
        // Anonymous callers are distinguished by their networks if each network has a share of the calls.
        let is_distinguished = match caller.principal.auth_method {
            AuthMethod::Process => false,
            AuthMethod::Anonymous => snapshot.limits().per_principal.running_calls_max.is_some(),
            AuthMethod::Key
            | AuthMethod::Token
            | AuthMethod::Certificate
            | AuthMethod::Proxy
            | AuthMethod::Development => true,
        };
        let per_principal_max = is_distinguished.then_some(SUBSCRIPTIONS_PER_PRINCIPAL_MAX);
        self.manager.table.lock().subscribe(
            self.id,
            uri,
            &Arc::new(without_snapshot(caller)),
            watcher,
            per_principal_max,
        )?;
        self.state.lock().caller.get_or_insert_with(|| without_snapshot(caller));
        self.manager.start_polls();
        Ok(())
    }

    /// Unsubscribes from the resource `uri`.
    pub fn unsubscribe(&self, uri: &str) {
        self.manager.table.lock().unsubscribe(self.id, uri);
    }

    /// Resolves when the contents of the resources at subscription are known, or after a timeout. No change is missed
    /// from then on.
    pub async fn wait_for_baseline(&self) {
        let settling = async {
            loop {
                let mut notified = std::pin::pin!(self.wake.notified());
                notified.as_mut().enable();
                if self.manager.table.lock().has_all_version_tags(self.id) {
                    return;
                }
                notified.await;
            }
        };
        // A slow watcher must not delay the subscription.
        let _ = tokio::time::timeout(BASELINE_TIMEOUT, settling).await;
        self.manager.table.lock().set_baseline(self.id);
    }

    /// Resolves when something has changed. Then authenticate the listener again and call [`ChangeListener::update_caller`].
    pub async fn changed(&self) {
        let mut versions = self.manager.snapshot.versions();
        loop {
            let mut notified = std::pin::pin!(self.wake.notified());
            notified.as_mut().enable();
            if self.has_changes() {
                return;
            }
            tokio::select! {
                () = notified => {}
                Ok(()) = versions.changed() => {}
            }
        }
    }

    /// Continues for `caller`, the listener as authenticated against the current registry. Resources that it may no
    /// longer read send no changes until it may read them again.
    pub async fn update_caller(&self, caller: &Caller) {
        let snapshot = self.manager.snapshot.load_for(caller);
        let is_swapped = {
            let mut state = self.state.lock();
            let is_swapped = state.seen_version != snapshot.version();
            let is_same = state.caller.as_ref().is_some_and(|before| has_same_view(before, caller));
            if is_same && !is_swapped {
                return;
            }
            (state.seen_version, state.caller) = (snapshot.version(), Some(without_snapshot(caller)));
            state.registry_changed |= is_swapped;
            is_swapped
        };
        let uris = self.manager.table.lock().uris(self.id);
        let watchers = uris.into_iter().map(|uri| {
            let watcher = resolve_watcher(&snapshot, &uri, caller);
            (uri, watcher)
        });
        let watchers: Vec<_> = watchers.collect();
        {
            let mut table = self.manager.table.lock();
            table.attach(self.id, &Arc::new(without_snapshot(caller)), watchers);
            if is_swapped {
                table.mark_all_changed(self.id);
            }
        }
        self.manager.start_polls();
        self.wait_for_baseline().await;
    }

    /// The next change; `None` if there is none, or if [`ChangeListener::update_caller`] must be called first.
    pub fn next_change(&self) -> Option<WatchEvent> {
        let caller = {
            let mut state = self.state.lock();
            if state.seen_version != self.manager.snapshot.version() {
                return None;
            }
            if std::mem::take(&mut state.registry_changed) {
                return Some(WatchEvent::Registry);
            }
            state.caller.clone()?
        };
        loop {
            let uri = self.manager.table.lock().next_changed(self.id)?;
            if self.manager.snapshot.load().has_resource(&uri, &caller) {
                self.state.lock().record_delivered(uri.clone());
                return Some(WatchEvent::Resource(uri));
            }
        }
    }

    /// Marks everything as changed, because the listener may have missed notifications.
    pub fn mark_all_changed(&self) {
        self.state.lock().registry_changed = true;
        self.manager.table.lock().mark_all_changed(self.id);
    }

    /// Discards the pending change of the registry, for a listener that reads the registry anyway.
    pub fn skip_registry_change(&self) {
        self.state.lock().registry_changed = false;
    }

    /// Marks the resources as changed again whose changes were delivered after the first `delivered` ones.
    pub fn redeliver_after(&self, delivered: u64) {
        let state = self.state.lock();
        let missed = state.delivered_count.saturating_sub(delivered);
        let mut table = self.manager.table.lock();
        match usize::try_from(missed).ok().and_then(|missed| state.delivered.len().checked_sub(missed)) {
            Some(first) => state.delivered.range(first..).for_each(|uri| table.mark_changed(self.id, uri)),
            None => table.mark_all_changed(self.id),
        }
    }

    /// The number of delivered changes of resources.
    pub fn delivered_count(&self) -> u64 {
        self.state.lock().delivered_count
    }

    /// The registry version that the listener has seen.
    pub fn version(&self) -> u64 {
        self.state.lock().seen_version
    }

    fn has_changes(&self) -> bool {
        let state = self.state.lock();
        let has_swap = state.registry_changed || state.seen_version != self.manager.snapshot.version();
        drop(state);
        has_swap || self.manager.table.lock().has_changes(self.id)
    }
}

impl WatchListenerState {
    fn record_delivered(&mut self, uri: Arc<str>) {
        if self.delivered.len() >= DELIVERED_MAX {
            self.delivered.pop_front();
        }
        self.delivered.push_back(uri);
        self.delivered_count += 1;
    }
}

impl Drop for ChangeListener {
    fn drop(&mut self) {
        self.manager.table.lock().close(self.id);
    }
}

/// The watcher of a resource in that snapshot. `None` if the resource changes only with the registry, or is hidden.
fn resolve_watcher(snapshot: &Snapshot, uri: &str, caller: &Caller) -> Option<ResolvedWatcher> {
    let (watcher, variables) = snapshot.watcher(uri, caller)?;
    Some(ResolvedWatcher { watcher, variables: Arc::new(variables), version: snapshot.version() })
}

fn without_snapshot(caller: &Caller) -> Caller {
    Caller { pinned_snapshot: None, ..caller.clone() }
}

fn has_same_view(before: &Caller, now: &Caller) -> bool {
    let is_same_principal = Arc::ptr_eq(&before.principal, &now.principal) || before.principal == now.principal;
    is_same_principal && before.origin == now.origin && before.toolset == now.toolset
}

/// The maximum number of concurrent polls; the principals of one tenant can have half of these.
const CONCURRENT_MAX: usize = 8;
const SUBSCRIPTIONS_PER_LISTENER_MAX: usize = 1_000;
/// The maximum number of subscriptions of all listeners; the principals of one tenant can have half of these.
const SUBSCRIPTIONS_MAX: usize = 10_000;
/// The maximum of one principal, where principals are distinguished.
const SUBSCRIPTIONS_PER_PRINCIPAL_MAX: usize = SUBSCRIPTIONS_MAX / 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct ListenerId(u64);

#[derive(Clone)]
struct ResolvedWatcher {
    watcher: Arc<dyn ResourceWatcher>,
    variables: Arc<TemplateVariables>,
    version: u64,
}

struct VersionTagPoll {
    id: PolledEntryId,
    caller: Arc<Caller>,
    watcher: ResolvedWatcher,
    tenant_permits: Arc<Semaphore>,
    ended: CancellationToken,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct PolledEntryId(u64);

#[derive(Debug, Default)]
struct WatchTable {
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
    fn open(&mut self, wake: Arc<Notify>) -> ListenerId {
        let id = ListenerId(self.next_id());
        let (uris, changed) = (BTreeMap::new(), BTreeSet::new());
        self.listeners.insert(id, Listener { uris, changed, wake, owner: None, has_baseline: true });
        id
    }

    fn close(&mut self, id: ListenerId) {
        for uri in self.uris(id) {
            self.unsubscribe(id, &uri);
        }
        self.listeners.remove(&id);
    }

    /// Subscribes the listener to `uri`. `per_principal_max` is the maximum of one principal, if there is one.
    fn subscribe(
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

    fn unsubscribe(&mut self, id: ListenerId, uri: &str) {
        let Some(listener) = self.listeners.get_mut(&id) else { return };
        let Some(entry) = listener.uris.remove(uri) else { return };
        listener.changed.remove(uri);
        if let Some(owner) = &listener.owner {
            self.subscriptions.release(owner);
        }
        self.detach(id, entry);
    }

    /// Attaches the listener to the watchers found for its URIs, and detaches it from earlier ones.
    fn attach(&mut self, id: ListenerId, caller: &Arc<Caller>, watchers: Vec<(Arc<str>, Option<ResolvedWatcher>)>) {
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

    fn uris(&self, id: ListenerId) -> Vec<Arc<str>> {
        self.listeners.get(&id).map(|listener| listener.uris.keys().cloned().collect()).unwrap_or_default()
    }

    fn mark_all_changed(&mut self, id: ListenerId) {
        if let Some(listener) = self.listeners.get_mut(&id) {
            listener.changed = listener.uris.keys().cloned().collect();
            listener.wake.notify_waiters();
        }
    }

    fn mark_changed(&mut self, id: ListenerId, uri: &Arc<str>) {
        if let Some(listener) = self.listeners.get_mut(&id).filter(|listener| listener.uris.contains_key(uri)) {
            listener.changed.insert(uri.clone());
            listener.wake.notify_waiters();
        }
    }

    fn has_changes(&self, id: ListenerId) -> bool {
        self.listeners.get(&id).is_some_and(|listener| !listener.changed.is_empty())
    }

    fn next_changed(&mut self, id: ListenerId) -> Option<Arc<str>> {
        self.listeners.get_mut(&id)?.changed.pop_first()
    }

    fn has_all_version_tags(&self, id: ListenerId) -> bool {
        let Some(listener) = self.listeners.get(&id) else { return true };
        let mut entries = listener.uris.values().flatten().filter_map(|entry| self.entries.get(entry));
        entries.all(|entry| entry.is_polled)
    }

    fn set_baseline(&mut self, id: ListenerId) {
        if let Some(listener) = self.listeners.get_mut(&id) {
            listener.has_baseline = true;
        }
    }

    fn take_new_polls(&mut self) -> Vec<VersionTagPoll> {
        std::mem::take(&mut self.new_polls)
    }

    /// Whether the entry is of `version`. If not, it is removed: the swap notifies its listeners, which attach again.
    fn is_current(&mut self, id: PolledEntryId, version: u64) -> bool {
        let is_current = self.entries.get(&id).is_some_and(|entry| entry.key.version == version);
        if !is_current {
            self.remove_entry(id);
        }
        is_current
    }

    /// Records a version tag, or its failure as `None`. Returns whether the failure is new.
    fn record_version_tag(&mut self, id: PolledEntryId, version_tag: Option<&Option<String>>) -> bool {
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

const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// The maximum time for a version tag; after it, the version tag counts as unchanged.
const VERSION_TAG_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct WatchManager {
    table: Mutex<WatchTable>,
    snapshot: Arc<CurrentSnapshot>,
    poll_permits: Semaphore,
    events: EventDispatcher,
    tasks: TaskTracker,
    ended: CancellationToken,
}

impl WatchManager {
    pub(crate) fn new(snapshot: Arc<CurrentSnapshot>, events: EventDispatcher) -> Self {
        Self {
            table: Mutex::default(),
            snapshot,
            poll_permits: Semaphore::new(CONCURRENT_MAX),
            events,
            tasks: TaskTracker::new(),
            ended: CancellationToken::new(),
        }
    }

    pub(crate) async fn drain(&self) {
        self.ended.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn start_polls(self: &Arc<Self>) {
        let polls = self.table.lock().take_new_polls();
        for poll in polls {
            let manager = self.clone();
            self.tasks.spawn(async move {
                tokio::select! {
                    biased;
                    () = manager.ended.cancelled() => {}
                    () = poll.ended.cancelled() => {}
                    () = manager.poll(&poll) => {}
                }
            });
        }
    }

    /// Polls until the registry has another version.
    async fn poll(&self, poll: &VersionTagPoll) {
        while let Some(version_tag) = self.next_version_tag(poll).await {
            let is_new_failure = self.table.lock().record_version_tag(poll.id, version_tag.as_ref().ok());
            if let Err(error) = version_tag
                && is_new_failure
            {
                self.events.emit_error_detail(&error, Uuid::new_v4());
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    async fn next_version_tag(&self, poll: &VersionTagPoll) -> Option<Result<Option<String>, Error>> {
        // The semaphores are never closed.
        let _tenant_permit = poll.tenant_permits.acquire().await.ok()?;
        let _permit = self.poll_permits.acquire().await.ok()?;
        let is_current = self.table.lock().is_current(poll.id, self.snapshot.version());
        if is_current { Some(version_tag(&poll.watcher, &poll.caller).await) } else { None }
    }
}

async fn version_tag(watcher: &ResolvedWatcher, caller: &Caller) -> Result<Option<String>, Error> {
    let version_tag = AssertUnwindSafe(watcher.watcher.version_tag(&watcher.variables, caller)).catch_unwind();
    match tokio::time::timeout(VERSION_TAG_TIMEOUT, version_tag).await {
        Ok(version_tag) => version_tag.unwrap_or_else(|panic| Err(panic_to_error(&*panic))),
        Err(_) => Err(Error::new(ErrorKind::TimedOut, "checking whether a resource has changed took too long")),
    }
}
