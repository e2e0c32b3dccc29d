//! Watching resources: who listens is told that what a resource holds may have changed.
//!
//! Stamps are asked for only while somebody listens, once for each URI and somebody, since what a resource holds may
//! differ from one to the other. What has changed waits as a set of URIs, so that a listener who takes its time costs
//! no memory and hears of each once. A swap of the registry counts as a change of every resource.

mod poller;
mod tenant_scheduler;
mod watch_table;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::watch_table::{ListenerId, ResolvedWatcher, SUBSCRIPTIONS_PER_PRINCIPAL_MAX, WatchTable};
use crate::caller::Caller;
use crate::error::Error;
use crate::event::EventDispatcher;
use crate::principal::AuthMethod;
use crate::registry::Registry;
use crate::snapshot::{Snapshot, not_found};

/// How long a listener waits for the first stamps of what it has begun to listen to. What is stamped later counts as
/// changed then.
const BASELINE_TIMEOUT: Duration = Duration::from_secs(2);
/// Changes of resources that are kept after they were told, since the connection that they were told to may have broken
/// before they arrived. Who missed more than these is told of all it subscribes to.
const DELIVERED_MAX: usize = 64;

/// What is listened to in one registry.
#[derive(Debug)]
pub(crate) struct WatchManager {
    shared: Arc<WatchShared>,
}

/// What listeners and the poller share.
#[derive(Debug)]
struct WatchShared {
    table: Mutex<WatchTable>,
    /// Something is due earlier than the poller knows.
    wake_poller: Notify,
    versions: watch::Receiver<u64>,
    events: EventDispatcher,
    tasks: TaskTracker,
    ended: CancellationToken,
}

/// One who listens: to the registry, and to resources that it subscribes to. Ends when it is dropped.
#[derive(Debug)]
pub struct Watch {
    registry: Arc<Registry>,
    shared: Arc<WatchShared>,
    id: ListenerId,
    wake: Arc<Notify>,
    state: Mutex<WatchListenerState>,
}

#[derive(Debug)]
struct WatchListenerState {
    /// Who listens, as it was said last, without a state of the registry, which it would keep alive.
    caller: Option<Caller>,
    /// The version that resources were looked up in.
    seen_version: u64,
    registry_changed: bool,
    /// The resources whose changes were told last, oldest first.
    delivered: VecDeque<Arc<str>>,
    /// How many changes of resources were told.
    delivered_count: u64,
}

/// Something that has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchEvent {
    /// The registry was swapped.
    Registry,
    /// What the resource of that URI holds may be another.
    Resource(Arc<str>),
}

impl WatchManager {
    pub(crate) fn new(versions: watch::Receiver<u64>, events: EventDispatcher) -> Self {
        let shared = WatchShared {
            table: Mutex::default(),
            wake_poller: Notify::new(),
            versions,
            events,
            tasks: TaskTracker::new(),
            ended: CancellationToken::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    pub(crate) fn open(&self, registry: Arc<Registry>) -> Watch {
        let woken = Arc::new(Notify::new());
        let id = self.shared.table.lock().open(woken.clone());
        let seen = *self.shared.versions.borrow();
        let state = WatchListenerState {
            caller: None,
            seen_version: seen,
            registry_changed: false,
            delivered: VecDeque::new(),
            delivered_count: 0,
        };
        Watch { registry, shared: self.shared.clone(), id, wake: woken, state: Mutex::new(state) }
    }

    /// Stops asking for stamps, for good.
    pub(crate) async fn drain(&self) {
        self.shared.ended.cancel();
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }
}

impl Watch {
    /// Listens to the resource of `uri`, too. Must be called within a tokio runtime; once all that is wanted is
    /// subscribed to, [`Watch::wait_for_baseline`] is to be waited for.
    ///
    /// # Errors
    /// `NotFound` when there is none that `caller` may reach, `TooLarge` beyond 1,000 of one listener, `RateLimited`
    /// beyond 10,000 of all, half of these of one tenant, and a quarter of one principal where these are told apart.
    pub fn subscribe(&self, uri: &str, caller: &Caller) -> Result<(), Error> {
        let snapshot = self.registry.snapshot_for(caller);
        if !snapshot.has_resource(uri, caller) {
            return Err(not_found("resource", uri, Vec::new()));
        }
        let found = resolve_watcher(&snapshot, uri, caller);
        // Callers that show nothing are told apart by their networks, where each has a share of the calls.
        let is_told_apart = match caller.principal.auth_method {
            AuthMethod::Process => false,
            AuthMethod::Anonymous => snapshot.limits().per_principal.running_calls_max.is_some(),
            AuthMethod::Key | AuthMethod::Token | AuthMethod::Certificate | AuthMethod::Proxy => true,
        };
        let of_one_max = is_told_apart.then_some(SUBSCRIPTIONS_PER_PRINCIPAL_MAX);
        self.shared.table.lock().subscribe(self.id, uri, &Arc::new(without_snapshot(caller)), found, of_one_max)?;
        self.state.lock().caller.get_or_insert_with(|| without_snapshot(caller));
        self.shared.ensure_polling();
        Ok(())
    }

    /// Listens to the resource of `uri` no more.
    pub fn unsubscribe(&self, uri: &str) {
        self.shared.table.lock().unsubscribe(self.id, uri);
    }

    /// Resolves when it is known what the resources held when they were subscribed to, or after a while: from then on
    /// no change is missed.
    pub async fn wait_for_baseline(&self) {
        let settling = async {
            loop {
                let mut woken = std::pin::pin!(self.wake.notified());
                woken.as_mut().enable();
                if self.shared.table.lock().has_all_stamps(self.id) {
                    return;
                }
                woken.await;
            }
        };
        // What is slow to tell holds up nobody.
        let _ = tokio::time::timeout(BASELINE_TIMEOUT, settling).await;
        self.shared.table.lock().set_baseline(self.id);
    }

    /// Resolves when something has changed. Then it is to be asked who listens, and [`Watch::update_caller`] to be told.
    pub async fn changed(&self) {
        let mut versions = self.registry.versions();
        loop {
            let mut woken = std::pin::pin!(self.wake.notified());
            woken.as_mut().enable();
            if self.has_changes() {
                return;
            }
            tokio::select! {
                () = woken => {}
                Ok(()) = versions.changed() => {}
            }
        }
    }

    /// Goes on for `caller`, who is the listener by the gate and the registry of this moment. Resources that it has
    /// lost the right to are silent until it has it again.
    pub async fn update_caller(&self, caller: &Caller) {
        let snapshot = self.registry.snapshot_for(caller);
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
        let uris = self.shared.table.lock().uris(self.id);
        let found = uris.into_iter().map(|uri| {
            let found = resolve_watcher(&snapshot, &uri, caller);
            (uri, found)
        });
        let found: Vec<_> = found.collect();
        {
            let mut table = self.shared.table.lock();
            table.attach(self.id, &Arc::new(without_snapshot(caller)), found);
            if is_swapped {
                table.mark_all_changed(self.id);
            }
        }
        self.shared.ensure_polling();
        self.wait_for_baseline().await;
    }

    /// The next change; none when there is none, or when [`Watch::update_caller`] must come first.
    pub fn next_change(&self) -> Option<WatchEvent> {
        let caller = {
            let mut state = self.state.lock();
            if state.seen_version != *self.shared.versions.borrow() {
                return None;
            }
            if std::mem::take(&mut state.registry_changed) {
                return Some(WatchEvent::Registry);
            }
            state.caller.clone()?
        };
        loop {
            let uri = self.shared.table.lock().next_changed(self.id)?;
            if self.registry.snapshot().has_resource(&uri, &caller) {
                self.state.lock().record_delivered(uri.clone());
                return Some(WatchEvent::Resource(uri));
            }
        }
    }

    /// Counts everything as changed: the listener may have missed what it was told.
    pub fn mark_all_changed(&self) {
        self.state.lock().registry_changed = true;
        self.shared.table.lock().mark_all_changed(self.id);
    }

    /// Counts the swap as told that was not: the listener reads the registry anew anyway.
    pub fn skip_registry_change(&self) {
        self.state.lock().registry_changed = false;
    }

    /// Counts as changed again what was told after the first `delivered_count` changes of resources.
    pub fn redeliver_after(&self, told_count: u64) {
        let state = self.state.lock();
        let missed = state.delivered_count.saturating_sub(told_count);
        let mut table = self.shared.table.lock();
        match usize::try_from(missed).ok().and_then(|missed| state.delivered.len().checked_sub(missed)) {
            Some(first) => state.delivered.range(first..).for_each(|uri| table.mark_changed(self.id, uri)),
            None => table.mark_all_changed(self.id),
        }
    }

    /// How many changes of resources were told.
    pub fn delivered_count(&self) -> u64 {
        self.state.lock().delivered_count
    }

    /// The version of the registry that the listener knows of.
    pub fn version(&self) -> u64 {
        self.state.lock().seen_version
    }

    fn has_changes(&self) -> bool {
        let state = self.state.lock();
        let has_swap = state.registry_changed || state.seen_version != *self.shared.versions.borrow();
        drop(state);
        has_swap || self.shared.table.lock().has_changes(self.id)
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

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.table.lock().close(self.id);
    }
}

impl WatchShared {
    /// Sees to it that what is due is asked for.
    fn ensure_polling(self: &Arc<Self>) {
        if self.table.lock().begin_polling() {
            self.tasks.spawn(poller::poll(self.clone()));
        }
        self.wake_poller.notify_one();
    }
}

/// What tells of the changes of a resource in that state; none where it changes with the registry alone, or is hidden.
fn resolve_watcher(snapshot: &Snapshot, uri: &str, caller: &Caller) -> Option<ResolvedWatcher> {
    let (watcher, variables) = snapshot.watcher(uri, caller)?;
    Some(ResolvedWatcher { watcher, variables: Arc::new(variables), version: snapshot.version() })
}

fn without_snapshot(caller: &Caller) -> Caller {
    Caller { snapshot: None, ..caller.clone() }
}

fn has_same_view(before: &Caller, now: &Caller) -> bool {
    let is_same_principal = Arc::ptr_eq(&before.principal, &now.principal) || before.principal == now.principal;
    is_same_principal && before.origin == now.origin && before.toolset == now.toolset
}
