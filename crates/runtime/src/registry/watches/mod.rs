//! Watches resources: listeners are notified that the contents of a resource may have changed.
//!
//! Version tags are polled only while there are listeners, once per URI and caller, because contents can differ between
//! callers. Changes are stored as a set of URIs, so a slow listener needs no queue and receives each change once. A
//! swap of the registry counts as a change of every resource.

mod manager;
mod watch_table;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_core::{AuthMethod, Caller, Error};
use tokio::sync::Notify;

pub(super) use self::manager::WatchManager;
use self::watch_table::{ListenerId, ResolvedWatcher, SUBSCRIPTIONS_PER_PRINCIPAL_MAX};
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
            AuthMethod::Key | AuthMethod::Token | AuthMethod::Certificate | AuthMethod::Proxy => true,
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
