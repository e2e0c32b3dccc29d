//! For whom stamps are asked for now: those for one tenant leave room for those for others, however slow they are.

use std::collections::{BTreeMap, VecDeque};

use super::table::EntryId;
use crate::limits::tenant_share;

/// Stamps that are asked for at the same time; for the principals of one tenant, half of these.
pub(super) const CONCURRENT_MAX: usize = 8;

/// How many stamps are asked for each tenant, and what waits for its turn.
#[derive(Debug, Default)]
pub(super) struct Turns {
    by_tenant: BTreeMap<String, Turn>,
}

#[derive(Debug, Default)]
struct Turn {
    asked: usize,
    waiting: VecDeque<EntryId>,
}

impl Turns {
    /// Begins to ask for `id`; false if as many are asked for `tenant` as may be. Then it waits for its turn.
    pub(super) fn begin(&mut self, id: EntryId, tenant: Option<&str>) -> bool {
        // Whoever has no tenant is not held to its share.
        let Some(tenant) = tenant else { return true };
        let turn = self.by_tenant.entry(tenant.to_owned()).or_default();
        let has_room = turn.has_room();
        if has_room {
            turn.asked += 1;
        } else {
            turn.waiting.push_back(id);
        }
        has_room
    }

    /// Counts one as answered that was asked for `tenant`.
    pub(super) fn end(&mut self, tenant: Option<&str>) {
        let Some((tenant, turn)) = tenant.and_then(|tenant| Some((tenant, self.by_tenant.get_mut(tenant)?))) else {
            return;
        };
        turn.asked -= 1;
        if turn.asked == 0 && turn.waiting.is_empty() {
            self.by_tenant.remove(tenant);
        }
    }

    /// One that has waited and may begin now.
    pub(super) fn next(&mut self) -> Option<EntryId> {
        let id = self.by_tenant.values_mut().filter(|turn| turn.has_room()).find_map(|turn| turn.waiting.pop_front());
        self.by_tenant.retain(|_, turn| turn.asked > 0 || !turn.waiting.is_empty());
        id
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.by_tenant.values().map(|turn| turn.waiting.len()).sum()
    }

    /// Lets go of those that are polled no more.
    pub(super) fn retain(&mut self, is_polled: impl Fn(&EntryId) -> bool) {
        self.by_tenant.values_mut().for_each(|turn| turn.waiting.retain(&is_polled));
    }
}

impl Turn {
    fn has_room(&self) -> bool {
        self.asked < tenant_share(CONCURRENT_MAX)
    }
}
