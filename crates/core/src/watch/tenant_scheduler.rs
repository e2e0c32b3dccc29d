//! For whom stamps are asked for now: those for one tenant leave room for those for others, however slow they are.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::watch_table::PolledEntryId;
use crate::limits::tenant_share;

/// Stamps that are asked for at the same time; for the principals of one tenant, half of these.
pub(super) const CONCURRENT_MAX: usize = 8;

/// How many stamps are asked for each tenant, and what is due and waits for its turn. It is the turn of whom fewest are
/// asked for, and of several of these, of whoever has waited longest.
#[derive(Debug, Default)]
pub(super) struct TenantScheduler {
    /// Whoever has no tenant is as one, and is not held to its share.
    by_tenant: BTreeMap<Tenant, TenantQueue>,
    /// Those for whom something waits that may begin: how many are asked for them, and since when they wait.
    ready: BTreeSet<(usize, u64, Tenant)>,
    /// Counts up with each moment since which somebody waits.
    sequence: u64,
    waiting: usize,
}

/// Whom stamps are asked for.
pub(super) type Tenant = Option<String>;

#[derive(Debug, Default)]
struct TenantQueue {
    in_flight: usize,
    /// When it had its last turn, or when something began to wait.
    waiting_since: u64,
    waiting: VecDeque<PolledEntryId>,
}

impl TenantScheduler {
    /// Has `id`, which is asked for `tenant_meter`, wait for its turn.
    pub(super) fn enqueue(&mut self, id: PolledEntryId, tenant: &Tenant) {
        self.waiting += 1;
        self.sequence += 1;
        let now = self.sequence;
        self.update_queue(tenant, |turn| {
            if turn.waiting.is_empty() {
                turn.waiting_since = now;
            }
            turn.waiting.push_back(id);
        });
    }

    /// What is asked for now, and for whom.
    pub(super) fn start_next(&mut self) -> Option<(PolledEntryId, Tenant)> {
        let (_, _, tenant) = self.ready.first()?.clone();
        self.sequence += 1;
        let now = self.sequence;
        let id = self.update_queue(&tenant, |turn| {
            let id = turn.waiting.pop_front()?;
            (turn.in_flight, turn.waiting_since) = (turn.in_flight + 1, now);
            Some(id)
        })?;
        self.waiting -= 1;
        Some((id, tenant))
    }

    /// Counts one as answered that was asked for `tenant_meter`.
    pub(super) fn finish(&mut self, tenant: &Tenant) {
        self.update_queue(tenant, |turn| turn.in_flight -= 1);
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.waiting
    }

    /// Lets go of those that are polled no more.
    pub(super) fn retain(&mut self, is_polled: impl Fn(&PolledEntryId) -> bool) {
        let tenants: Vec<Tenant> = self.by_tenant.keys().cloned().collect();
        for tenant in &tenants {
            self.update_queue(tenant, |turn| turn.waiting.retain(&is_polled));
        }
        self.waiting = self.by_tenant.values().map(|turn| turn.waiting.len()).sum();
    }

    fn update_queue<T>(&mut self, tenant: &Tenant, change: impl FnOnce(&mut TenantQueue) -> T) -> T {
        let turn = self.by_tenant.entry(tenant.clone()).or_default();
        self.ready.remove(&(turn.in_flight, turn.waiting_since, tenant.clone()));
        let changed = change(turn);
        if turn.in_flight == 0 && turn.waiting.is_empty() {
            self.by_tenant.remove(tenant);
        } else if turn.can_start(tenant) {
            self.ready.insert((turn.in_flight, turn.waiting_since, tenant.clone()));
        }
        changed
    }
}

impl TenantQueue {
    fn can_start(&self, tenant: &Tenant) -> bool {
        !self.waiting.is_empty() && (tenant.is_none() || self.in_flight < tenant_share(CONCURRENT_MAX))
    }
}
