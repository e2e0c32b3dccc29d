//! Schedules polls fairly: slow watchers of one tenant leave room for other tenants.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tidegate_core::tenant_share;

/// The maximum number of concurrent polls; the principals of one tenant can have half of these.
pub(super) const CONCURRENT_MAX: usize = 8;

/// The id of a polled entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct PolledEntryId(pub(super) u64);

/// Counts the running polls of each tenant and queues the due ones. The tenant with the fewest running polls is next;
/// among several of these, the one that has waited longest.
#[derive(Debug, Default)]
pub(super) struct TenantScheduler {
    /// Callers without a tenant count as one tenant, without a maximum.
    by_tenant: BTreeMap<Tenant, TenantQueue>,
    /// Tenants with due polls that may start: number of running polls, and since when they wait.
    ready: BTreeSet<(usize, u64, Tenant)>,
    /// A counter that orders the beginnings of waits.
    sequence: u64,
    waiting: usize,
}

/// The tenant of a poll.
pub(super) type Tenant = Option<String>;

#[derive(Debug, Default)]
struct TenantQueue {
    in_flight: usize,
    /// When it last started a poll, or when its first due poll was queued.
    waiting_since: u64,
    waiting: VecDeque<PolledEntryId>,
}

impl TenantScheduler {
    /// Queues `id`, a poll for `tenant`.
    pub(super) fn enqueue(&mut self, id: PolledEntryId, tenant: &Tenant) {
        self.waiting += 1;
        self.sequence += 1;
        let now = self.sequence;
        self.update_queue(tenant, |queue| {
            if queue.waiting.is_empty() {
                queue.waiting_since = now;
            }
            queue.waiting.push_back(id);
        });
    }

    /// Starts the next poll, if one may start.
    pub(super) fn start_next(&mut self) -> Option<(PolledEntryId, Tenant)> {
        let (_, _, tenant) = self.ready.first()?.clone();
        self.sequence += 1;
        let now = self.sequence;
        let id = self.update_queue(&tenant, |queue| {
            let id = queue.waiting.pop_front()?;
            (queue.in_flight, queue.waiting_since) = (queue.in_flight + 1, now);
            Some(id)
        })?;
        self.waiting -= 1;
        Some((id, tenant))
    }

    /// Counts a poll for `tenant` as finished.
    pub(super) fn finish(&mut self, tenant: &Tenant) {
        self.update_queue(tenant, |queue| queue.in_flight -= 1);
    }

    /// The number of queued polls.
    pub(super) fn len(&self) -> usize {
        self.waiting
    }

    /// Removes queued polls of entries that are no longer polled.
    pub(super) fn retain(&mut self, is_polled: impl Fn(&PolledEntryId) -> bool) {
        let tenants: Vec<Tenant> = self.by_tenant.keys().cloned().collect();
        for tenant in &tenants {
            self.update_queue(tenant, |queue| queue.waiting.retain(&is_polled));
        }
        self.waiting = self.by_tenant.values().map(|queue| queue.waiting.len()).sum();
    }

    fn update_queue<T>(&mut self, tenant: &Tenant, change: impl FnOnce(&mut TenantQueue) -> T) -> T {
        let queue = self.by_tenant.entry(tenant.clone()).or_default();
        self.ready.remove(&(queue.in_flight, queue.waiting_since, tenant.clone()));
        let changed = change(queue);
        if queue.in_flight == 0 && queue.waiting.is_empty() {
            self.by_tenant.remove(tenant);
        } else if queue.can_start(tenant) {
            self.ready.insert((queue.in_flight, queue.waiting_since, tenant.clone()));
        }
        changed
    }
}

impl TenantQueue {
    fn can_start(&self, tenant: &Tenant) -> bool {
        !self.waiting.is_empty() && (tenant.is_none() || self.in_flight < tenant_share(CONCURRENT_MAX))
    }
}
