//! For whom stamps are asked for now: those for one tenant leave room for those for others, however slow they are.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::table::EntryId;
use crate::limits::tenant_share;

/// Stamps that are asked for at the same time; for the principals of one tenant, half of these.
pub(super) const CONCURRENT_MAX: usize = 8;

/// How many stamps are asked for each tenant, and what is due and waits for its turn. It is the turn of whom fewest are
/// asked for, and of several of these, of whoever has waited longest.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Whoever has no tenant is as one, and is not held to its share.
    by_tenant: BTreeMap<Tenant, Turn>,
    /// Those for whom something waits that may begin: how many are asked for them, and since when they wait.
    ready: BTreeSet<(usize, u64, Tenant)>,
    /// Counts up with each moment since which somebody waits.
    moment: u64,
    waiting: usize,
}

/// Whom stamps are asked for.
pub(super) type Tenant = Option<String>;

#[derive(Debug, Default)]
struct Turn {
    asked: usize,
    /// When it had its last turn, or when something began to wait.
    since: u64,
    waiting: VecDeque<EntryId>,
}

impl Turns {
    /// Has `id`, which is asked for `tenant`, wait for its turn.
    pub(super) fn wait(&mut self, id: EntryId, tenant: &Tenant) {
        self.waiting += 1;
        self.moment += 1;
        let now = self.moment;
        self.change(tenant, |turn| {
            if turn.waiting.is_empty() {
                turn.since = now;
            }
            turn.waiting.push_back(id);
        });
    }

    /// What is asked for now, and for whom.
    pub(super) fn next(&mut self) -> Option<(EntryId, Tenant)> {
        let (_, _, tenant) = self.ready.first()?.clone();
        self.moment += 1;
        let now = self.moment;
        let id = self.change(&tenant, |turn| {
            let id = turn.waiting.pop_front()?;
            (turn.asked, turn.since) = (turn.asked + 1, now);
            Some(id)
        })?;
        self.waiting -= 1;
        Some((id, tenant))
    }

    /// Counts one as answered that was asked for `tenant`.
    pub(super) fn end(&mut self, tenant: &Tenant) {
        self.change(tenant, |turn| turn.asked -= 1);
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.waiting
    }

    /// Lets go of those that are polled no more.
    pub(super) fn retain(&mut self, is_polled: impl Fn(&EntryId) -> bool) {
        let tenants: Vec<Tenant> = self.by_tenant.keys().cloned().collect();
        for tenant in &tenants {
            self.change(tenant, |turn| turn.waiting.retain(&is_polled));
        }
        self.waiting = self.by_tenant.values().map(|turn| turn.waiting.len()).sum();
    }

    fn change<T>(&mut self, tenant: &Tenant, change: impl FnOnce(&mut Turn) -> T) -> T {
        let turn = self.by_tenant.entry(tenant.clone()).or_default();
        self.ready.remove(&(turn.asked, turn.since, tenant.clone()));
        let changed = change(turn);
        if turn.asked == 0 && turn.waiting.is_empty() {
            self.by_tenant.remove(tenant);
        } else if turn.may_begin(tenant) {
            self.ready.insert((turn.asked, turn.since, tenant.clone()));
        }
        changed
    }
}

impl Turn {
    fn may_begin(&self, tenant: &Tenant) -> bool {
        !self.waiting.is_empty() && (tenant.is_none() || self.asked < tenant_share(CONCURRENT_MAX))
    }
}
