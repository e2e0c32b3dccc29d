//! Watching resources: who listens is told that what a resource holds may have changed.
//!
//! Stamps are asked for only while somebody listens, once for each URI and somebody, since what a resource holds may
//! differ from one to the other. What has changed waits as a set of URIs, so that a listener who takes its time costs
//! no memory and hears of each once. A swap of the registry counts as a change of every resource.

mod poller;
mod table;
mod turns;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::table::{Found, ListenerId, OF_ONE_MAX, Table};
use crate::caller::Caller;
use crate::error::Error;
use crate::event::Events;
use crate::principal::Proof;
use crate::registry::Registry;
use crate::snapshot::{Snapshot, not_found};

/// How long a listener waits for the first stamps of what it has begun to listen to. What is stamped later counts as
/// changed then.
const SETTLE_WITHIN: Duration = Duration::from_secs(2);
/// Changes of resources that are kept after they were told, since the connection that they were told to may have broken
/// before they arrived. Who missed more than these is told of all it subscribes to.
const TOLD_KEPT_MAX: usize = 64;

/// What is listened to in one registry.
#[derive(Debug)]
pub(crate) struct Watches {
    shared: Arc<Shared>,
}

/// What listeners and the poller share.
#[derive(Debug)]
struct Shared {
    table: Mutex<Table>,
    /// Something is due earlier than the poller knows.
    sooner: Notify,
    versions: watch::Receiver<u64>,
    events: Events,
    tasks: TaskTracker,
    ended: CancellationToken,
}

/// One who listens: to the registry, and to resources that it subscribes to. Ends when it is dropped.
#[derive(Debug)]
pub struct Watch {
    registry: Arc<Registry>,
    shared: Arc<Shared>,
    id: ListenerId,
    woken: Arc<Notify>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Who listens, as it was said last, without a state of the registry, which it would keep alive.
    caller: Option<Caller>,
    /// The version that resources were looked up in.
    seen: u64,
    has_swap: bool,
    /// The resources whose changes were told last, oldest first.
    told: VecDeque<Arc<str>>,
    /// How many changes of resources were told.
    told_count: u64,
}

/// Something that has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The registry was swapped.
    Registry,
    /// What the resource of that URI holds may be another.
    Resource(Arc<str>),
}

impl Watches {
    pub(crate) fn new(versions: watch::Receiver<u64>, events: Events) -> Self {
        let shared = Shared {
            table: Mutex::default(),
            sooner: Notify::new(),
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
        let state = State { caller: None, seen, has_swap: false, told: VecDeque::new(), told_count: 0 };
        Watch { registry, shared: self.shared.clone(), id, woken, state: Mutex::new(state) }
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
    /// subscribed to, [`Watch::settled`] is to be waited for.
    ///
    /// # Errors
    /// `NotFound` when there is none that `caller` may reach, `TooLarge` beyond 1,000 of one listener, `RateLimited`
    /// beyond 10,000 of all, half of these of one tenant, and a quarter of one principal where these are told apart.
    pub fn subscribe(&self, uri: &str, caller: &Caller) -> Result<(), Error> {
        let snapshot = self.registry.state_for(caller);
        if !snapshot.has_resource(uri, caller) {
            return Err(not_found("resource", uri, Vec::new()));
        }
        let found = found(&snapshot, uri, caller);
        // Callers that show nothing are told apart by their networks, where each has a share of the calls.
        let is_told_apart = match caller.principal.proof {
            Proof::Process => false,
            Proof::Anonymous => snapshot.limits().of_principal.running_calls_max.is_some(),
            Proof::Key | Proof::Token | Proof::Certificate | Proof::Proxy => true,
        };
        let of_one_max = is_told_apart.then_some(OF_ONE_MAX);
        self.shared.table.lock().subscribe(self.id, uri, &Arc::new(stateless(caller)), found, of_one_max)?;
        self.state.lock().caller.get_or_insert_with(|| stateless(caller));
        self.shared.keep_polling();
        Ok(())
    }

    /// Listens to the resource of `uri` no more.
    pub fn unsubscribe(&self, uri: &str) {
        self.shared.table.lock().unsubscribe(self.id, uri);
    }

    /// Resolves when it is known what the resources held when they were subscribed to, or after a while: from then on
    /// no change is missed.
    pub async fn settled(&self) {
        let settling = async {
            loop {
                let mut woken = std::pin::pin!(self.woken.notified());
                woken.as_mut().enable();
                if self.shared.table.lock().is_stamped(self.id) {
                    return;
                }
                woken.await;
            }
        };
        // What is slow to tell holds up nobody.
        let _ = tokio::time::timeout(SETTLE_WITHIN, settling).await;
        self.shared.table.lock().settle(self.id);
    }

    /// Resolves when something has changed. Then it is to be asked who listens, and [`Watch::renew`] to be told.
    pub async fn changed(&self) {
        let mut versions = self.registry.versions();
        loop {
            let mut woken = std::pin::pin!(self.woken.notified());
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
    pub async fn renew(&self, caller: &Caller) {
        let snapshot = self.registry.state_for(caller);
        let is_swapped = {
            let mut state = self.state.lock();
            let is_swapped = state.seen != snapshot.version();
            let is_same = state.caller.as_ref().is_some_and(|before| sees_the_same(before, caller));
            if is_same && !is_swapped {
                return;
            }
            (state.seen, state.caller) = (snapshot.version(), Some(stateless(caller)));
            state.has_swap |= is_swapped;
            is_swapped
        };
        let uris = self.shared.table.lock().uris(self.id);
        let found = uris.into_iter().map(|uri| {
            let found = found(&snapshot, &uri, caller);
            (uri, found)
        });
        let found: Vec<_> = found.collect();
        {
            let mut table = self.shared.table.lock();
            table.attach(self.id, &Arc::new(stateless(caller)), found);
            if is_swapped {
                table.mark_all(self.id);
            }
        }
        self.shared.keep_polling();
        self.settled().await;
    }

    /// The next change; none when there is none, or when [`Watch::renew`] must come first.
    pub fn next_change(&self) -> Option<Change> {
        let caller = {
            let mut state = self.state.lock();
            if state.seen != *self.shared.versions.borrow() {
                return None;
            }
            if std::mem::take(&mut state.has_swap) {
                return Some(Change::Registry);
            }
            state.caller.clone()?
        };
        loop {
            let uri = self.shared.table.lock().next_changed(self.id)?;
            if self.registry.snapshot().has_resource(&uri, &caller) {
                self.state.lock().note_told(uri.clone());
                return Some(Change::Resource(uri));
            }
        }
    }

    /// Counts everything as changed: the listener may have missed what it was told.
    pub fn mark_all(&self) {
        self.state.lock().has_swap = true;
        self.shared.table.lock().mark_all(self.id);
    }

    /// Counts the swap as told that was not: the listener reads the registry anew anyway.
    pub fn forget_swap(&self) {
        self.state.lock().has_swap = false;
    }

    /// Counts as changed again what was told after the first `told_count` changes of resources.
    pub fn tell_again_after(&self, told_count: u64) {
        let state = self.state.lock();
        let missed = state.told_count.saturating_sub(told_count);
        let mut table = self.shared.table.lock();
        match usize::try_from(missed).ok().and_then(|missed| state.told.len().checked_sub(missed)) {
            Some(first) => state.told.range(first..).for_each(|uri| table.mark(self.id, uri)),
            None => table.mark_all(self.id),
        }
    }

    /// How many changes of resources were told.
    pub fn told_count(&self) -> u64 {
        self.state.lock().told_count
    }

    /// The version of the registry that the listener knows of.
    pub fn version(&self) -> u64 {
        self.state.lock().seen
    }

    fn has_changes(&self) -> bool {
        let state = self.state.lock();
        let has_swap = state.has_swap || state.seen != *self.shared.versions.borrow();
        drop(state);
        has_swap || self.shared.table.lock().has_changes(self.id)
    }
}

impl State {
    fn note_told(&mut self, uri: Arc<str>) {
        if self.told.len() >= TOLD_KEPT_MAX {
            self.told.pop_front();
        }
        self.told.push_back(uri);
        self.told_count += 1;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.table.lock().close(self.id);
    }
}

impl Shared {
    /// Sees to it that what is due is asked for.
    fn keep_polling(self: &Arc<Self>) {
        if self.table.lock().begin_polling() {
            self.tasks.spawn(poller::poll(self.clone()));
        }
        self.sooner.notify_one();
    }
}

/// What tells of the changes of a resource in that state; none where it changes with the registry alone, or is hidden.
fn found(snapshot: &Snapshot, uri: &str, caller: &Caller) -> Option<Found> {
    let (watcher, variables) = snapshot.watcher(uri, caller)?;
    Some(Found { watcher, variables: Arc::new(variables), version: snapshot.version() })
}

fn stateless(caller: &Caller) -> Caller {
    Caller { state: None, ..caller.clone() }
}

fn sees_the_same(before: &Caller, now: &Caller) -> bool {
    let is_same_principal = Arc::ptr_eq(&before.principal, &now.principal) || before.principal == now.principal;
    is_same_principal && before.origin == now.origin && before.toolset == now.toolset
}
