//! Which results go when there is no room for more: the oldest that are finished, of whoever has as much as it may, be
//! it a principal or a tenant. When all is full, those of the tenant that has most, so that one that has little keeps
//! it and may come to as much; where that is the tenant of whoever needs the room, its own go first. Where nobody has a
//! tenant, the oldest of all.

use std::collections::HashMap;
use std::sync::Arc;

use tidegate_core::Owner;

use super::id::ResultId;
use super::limits::StoreLimits;
use super::result::StoredResult;

/// Who has as much as it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shortage {
    /// The principal.
    Principal,
    /// The principals of its tenant together.
    Tenant,
    /// All together.
    All,
}

impl Shortage {
    /// What stands in the way of more bytes.
    pub(super) fn of_room(self) -> &'static str {
        match self {
            Self::Principal => "your stored results take as much room as they may",
            Self::Tenant => "your tenant's stored results take as much room as they may",
            Self::All => "all stored results of the server take as much room as they may",
        }
    }

    /// What stands in the way of one more that is being written, and what helps.
    pub(super) fn of_writers(self) -> (&'static str, &'static str) {
        match self {
            Self::Principal => (
                "as many of your stored results are being written as may be",
                "Wait for one of them; list_jobs shows them.",
            ),
            Self::Tenant => {
                ("as many of your tenant's stored results are being written as may be", "Wait until one of them ends.")
            }
            Self::All => ("as many stored results are being written as may be", "Wait until one of them ends."),
        }
    }
}

/// What some results take.
#[derive(Debug, Clone, Copy, Default)]
struct Use {
    bytes: u64,
    results: usize,
}

impl Use {
    fn and(self, bytes: u64, results: usize) -> Self {
        Self { bytes: self.bytes.saturating_add(bytes), results: self.results + results }
    }

    fn without(self, result: &StoredResult) -> Self {
        Self { bytes: self.bytes.saturating_sub(result.size()), results: self.results.saturating_sub(1) }
    }

    fn fits(self, bytes_max: u64, results_max: usize) -> bool {
        self.bytes <= bytes_max && self.results <= results_max
    }
}

/// What whoever writes has, its tenant, each other tenant, and all.
struct Uses<'a> {
    writer: &'a Owner,
    of_one: Use,
    /// Those without a tenant count as one.
    by_tenant: HashMap<Option<&'a str>, Use>,
    of_all: Use,
}

impl<'a> Uses<'a> {
    /// Those of `results`, and `bytes` more of the `writer`.
    fn of(results: impl Iterator<Item = &'a StoredResult>, writer: &'a Owner, bytes: u64) -> Self {
        let mut uses = Self { writer, of_one: Use::default(), by_tenant: HashMap::new(), of_all: Use::default() };
        uses.change(writer, |used| used.and(bytes, 0));
        for result in results {
            uses.change(&result.head.owner, |used| used.and(result.size(), 1));
        }
        uses
    }

    fn change(&mut self, owner: &'a Owner, change: impl Fn(Use) -> Use) {
        if owner == self.writer {
            self.of_one = change(self.of_one);
        }
        let of_tenant = self.by_tenant.entry(owner.tenant.as_deref()).or_default();
        *of_tenant = change(*of_tenant);
        self.of_all = change(self.of_all);
    }

    fn of_tenant(&self, owner: &Owner) -> Use {
        self.by_tenant.get(&owner.tenant.as_deref()).copied().unwrap_or_default()
    }

    fn shortage(&self, limits: &StoreLimits) -> Option<Shortage> {
        if !self.of_one.fits(limits.bytes_of_one, limits.results_of_one) {
            return Some(Shortage::Principal);
        }
        let of_tenant = self.of_tenant(self.writer);
        if self.writer.tenant.is_some() && !of_tenant.fits(limits.bytes_of_tenant(), limits.results_of_tenant()) {
            return Some(Shortage::Tenant);
        }
        (!self.of_all.fits(limits.total_bytes, limits.results)).then_some(Shortage::All)
    }

    /// Which of `finished`, the oldest first, goes next to mend `shortage`.
    fn next(&self, finished: &[&Arc<StoredResult>], shortage: Shortage, limits: &StoreLimits) -> Option<usize> {
        let (owner, has_tenant) = (self.writer, self.writer.tenant.is_some());
        let own = || finished.iter().position(|result| result.head.owner == *owner);
        let of_tenant = || finished.iter().position(|result| has_tenant && result.head.owner.tenant == owner.tenant);
        match shortage {
            Shortage::Principal => own(),
            Shortage::Tenant => own().or_else(of_tenant),
            Shortage::All => {
                let is_of_bytes = self.of_all.bytes > limits.total_bytes;
                let has = |owner: &Owner| {
                    let used = self.of_tenant(owner);
                    if is_of_bytes { used.bytes } else { used.results as u64 }
                };
                // The last of those that are equal is taken: the oldest.
                let most = (0..finished.len()).rev().max_by_key(|index| has(&finished[*index].head.owner))?;
                let has_most = has_tenant && has(owner) >= has(&finished[most].head.owner);
                has_most.then(|| own().or_else(of_tenant)).flatten().or(Some(most))
            }
        }
    }
}

/// Those that have to go so that `writing`, which is one of `results`, can have `bytes` more.
///
/// # Errors
/// When not even that would help.
pub(super) fn leaving(
    results: &HashMap<ResultId, Arc<StoredResult>>,
    limits: &StoreLimits,
    writing: &StoredResult,
    bytes: u64,
) -> Result<Vec<Arc<StoredResult>>, Shortage> {
    let mut uses = Uses::of(results.values().map(Arc::as_ref), &writing.head.owner, bytes);
    let Some(mut shortage) = uses.shortage(limits) else { return Ok(Vec::new()) };
    let mut finished: Vec<&Arc<StoredResult>> = results.values().filter(|result| has_ended(result)).collect();
    finished.sort_unstable_by_key(|result| (result.head.created_at_ms, result.head.id));
    let mut leaving: Vec<Arc<StoredResult>> = Vec::new();
    loop {
        let result = finished.remove(uses.next(&finished, shortage, limits).ok_or(shortage)?);
        uses.change(&result.head.owner, |used| used.without(result));
        leaving.push(result.clone());
        match uses.shortage(limits) {
            Some(still) => shortage = still,
            None => return Ok(leaving),
        }
    }
}

/// Whether one more of `owner` may be written beside `results`.
///
/// # Errors
/// Who writes as many as it may.
pub(super) fn may_begin(
    results: &HashMap<ResultId, Arc<StoredResult>>,
    limits: &StoreLimits,
    owner: &Owner,
) -> Result<(), Shortage> {
    let running = || results.values().filter(|result| !has_ended(result)).map(|result| &result.head.owner);
    let is_anonymous = owner.proof == "anonymous";
    if !is_anonymous && running().filter(|other| *other == owner).count() >= limits.running_of_one {
        return Err(Shortage::Principal);
    }
    let is_of_tenant = |other: &&Owner| owner.tenant.is_some() && other.tenant == owner.tenant;
    if running().filter(is_of_tenant).count() >= limits.running_of_tenant() {
        return Err(Shortage::Tenant);
    }
    if running().count() >= limits.running { Err(Shortage::All) } else { Ok(()) }
}

pub(super) fn has_ended(result: &StoredResult) -> bool {
    result.stage.borrow().end.is_some()
}
