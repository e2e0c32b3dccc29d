//! Chooses which finished results are evicted when space is needed. If a principal or tenant has reached its limit, its
//! own oldest results go first. If the whole store is full, results of the tenant with the most data go; if that is the
//! tenant of the writer, the writer's own results go first. Callers without a tenant count as one tenant.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::{CallerIdentity, tenant_share, tenant_share_of_bytes};

use crate::manifest::ResultId;
use crate::result::StoredResult;

/// Whose quota is exhausted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuotaExceeded {
    Principal,
    Tenant,
    All,
}

impl QuotaExceeded {
    pub(crate) fn room_message(self) -> &'static str {
        match self {
            Self::Principal => "your stored results have reached their storage limit",
            Self::Tenant => "your tenant's stored results have reached their storage limit",
            Self::All => "the server's stored results have reached their storage limit",
        }
    }

    pub(crate) fn writers_message(self) -> (&'static str, &'static str) {
        let hint = "Wait until one of them ends.";
        match self {
            Self::Principal => {
                let hint = "Wait until one of them ends; list_jobs lists them.";
                ("you have reached your limit of concurrent stored results", hint)
            }
            Self::Tenant => ("your tenant has reached its limit of concurrent stored results", hint),
            Self::All => ("the server has reached its limit of concurrent stored results", hint),
        }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct QuotaUsage {
    bytes: u64,
    results: usize,
}

impl QuotaUsage {
    fn plus(self, bytes: u64, results: usize) -> Self {
        Self { bytes: self.bytes.saturating_add(bytes), results: self.results + results }
    }

    fn minus(self, result: &StoredResult) -> Self {
        Self { bytes: self.bytes.saturating_sub(result.occupied_bytes()), results: self.results.saturating_sub(1) }
    }

    fn fits(self, bytes_max: u64, results_max: usize) -> bool {
        self.bytes <= bytes_max && self.results <= results_max
    }
}

struct OwnerUsage<'a> {
    writer: &'a CallerIdentity,
    writer_usage: QuotaUsage,
    /// Owners without a tenant count as one tenant.
    by_tenant: HashMap<Option<&'a str>, QuotaUsage>,
    total: QuotaUsage,
}

impl<'a> OwnerUsage<'a> {
    fn new(results: impl Iterator<Item = &'a StoredResult>, writer: &'a CallerIdentity, bytes: u64) -> Self {
        let (writer_usage, by_tenant, total) = Default::default();
        let mut owner_usage = Self { writer, writer_usage, by_tenant, total };
        owner_usage.update(writer, |used| used.plus(bytes, 0));
        for result in results {
            owner_usage.update(&result.header.owner, |used| used.plus(result.occupied_bytes(), 1));
        }
        owner_usage
    }

    fn update(&mut self, owner: &'a CallerIdentity, change: impl Fn(QuotaUsage) -> QuotaUsage) {
        if owner == self.writer {
            self.writer_usage = change(self.writer_usage);
        }
        let of_tenant = self.by_tenant.entry(owner.tenant.as_deref()).or_default();
        *of_tenant = change(*of_tenant);
        self.total = change(self.total);
    }

    fn tenant_usage(&self, owner: &CallerIdentity) -> QuotaUsage {
        self.by_tenant.get(&owner.tenant.as_deref()).copied().unwrap_or_default()
    }

    fn exceeded_quota(&self, limits: &StoreLimits) -> Option<QuotaExceeded> {
        if !self.writer_usage.fits(limits.bytes_per_principal, limits.results_per_principal) {
            return Some(QuotaExceeded::Principal);
        }
        let of_tenant = self.tenant_usage(self.writer);
        let (bytes_max, results_max) = (tenant_share_of_bytes(limits.total_bytes), tenant_share(limits.results));
        if self.writer.tenant.is_some() && !of_tenant.fits(bytes_max, results_max) {
            return Some(QuotaExceeded::Tenant);
        }
        (!self.total.fits(limits.total_bytes, limits.results)).then_some(QuotaExceeded::All)
    }

    /// The index of the result in `finished`, oldest first, to evict next for `shortage`.
    fn choose_eviction(
        &self,
        finished: &[&Arc<StoredResult>],
        shortage: QuotaExceeded,
        limits: &StoreLimits,
    ) -> Option<usize> {
        let (owner, has_tenant) = (self.writer, self.writer.tenant.is_some());
        let own = || finished.iter().position(|result| result.header.owner == *owner);
        let of_tenant = || finished.iter().position(|result| has_tenant && result.header.owner.tenant == owner.tenant);
        match shortage {
            QuotaExceeded::Principal => own(),
            QuotaExceeded::Tenant => own().or_else(of_tenant),
            QuotaExceeded::All => {
                let is_of_bytes = self.total.bytes > limits.total_bytes;
                let has = |owner: &CallerIdentity| {
                    let used = self.tenant_usage(owner);
                    if is_of_bytes { used.bytes } else { used.results as u64 }
                };
                // `max_by_key` returns the last of equal elements: the oldest.
                let most = (0..finished.len()).rev().max_by_key(|index| has(&finished[*index].header.owner))?;
                let has_most = has_tenant && has(owner) >= has(&finished[most].header.owner);
                has_most.then(|| own().or_else(of_tenant)).flatten().or(Some(most))
            }
        }
    }
}

/// Chooses the results to evict so that `writing`, which is one of `results`, can use `bytes` more.
pub(crate) fn choose_evictions(
    results: &HashMap<ResultId, Arc<StoredResult>>,
    limits: &StoreLimits,
    writing: &StoredResult,
    bytes: u64,
) -> Result<Vec<Arc<StoredResult>>, QuotaExceeded> {
    let mut owner_usage = OwnerUsage::new(results.values().map(Arc::as_ref), &writing.header.owner, bytes);
    let Some(mut shortage) = owner_usage.exceeded_quota(limits) else { return Ok(Vec::new()) };
    let mut finished: Vec<&Arc<StoredResult>> = results.values().filter(|result| has_ended(result)).collect();
    finished.sort_unstable_by_key(|result| (result.header.created_at_ms, result.header.id));
    let mut leaving: Vec<Arc<StoredResult>> = Vec::new();
    loop {
        let result = finished.remove(owner_usage.choose_eviction(&finished, shortage, limits).ok_or(shortage)?);
        owner_usage.update(&result.header.owner, |used| used.minus(result));
        leaving.push(result.clone());
        match owner_usage.exceeded_quota(limits) {
            Some(still) => shortage = still,
            None => return Ok(leaving),
        }
    }
}

pub(crate) fn check_writer_limits(
    results: &HashMap<ResultId, Arc<StoredResult>>,
    limits: &StoreLimits,
    owner: &CallerIdentity,
) -> Result<(), QuotaExceeded> {
    let running = || results.values().filter(|result| !has_ended(result)).map(|result| &result.header.owner);
    let is_anonymous = owner.auth_method == "anonymous";
    if !is_anonymous && running().filter(|other| *other == owner).count() >= limits.writers_per_principal {
        return Err(QuotaExceeded::Principal);
    }
    let is_of_tenant = |other: &&CallerIdentity| owner.tenant.is_some() && other.tenant == owner.tenant;
    if running().filter(is_of_tenant).count() >= tenant_share(limits.writers) {
        return Err(QuotaExceeded::Tenant);
    }
    if running().count() >= limits.writers { Err(QuotaExceeded::All) } else { Ok(()) }
}

pub(crate) fn has_ended(result: &StoredResult) -> bool {
    result.progress.borrow().end.is_some()
}

/// The limits of the result store. The principals of one tenant together have half of each total.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreLimits {
    /// Maximum bytes of blocks of an answer that is stored because it did not fit inline.
    pub continued_bytes: u64,
    /// Maximum bytes of rows in a block, before compression; the first blocks are smaller.
    pub block_bytes: usize,
    /// How long a result is kept after its start.
    pub time_to_live: Duration,
    /// Maximum bytes of all results together.
    pub total_bytes: u64,
    /// Maximum bytes of the results of one principal.
    pub bytes_per_principal: u64,
    /// Bytes of disk space that stay free.
    pub free_bytes: u64,
    /// Maximum number of results of all principals.
    pub results: usize,
    /// Maximum number of results of one principal, so that many small results do not evict those of other principals.
    pub results_per_principal: usize,
    /// Maximum number of results that are being written at the same time.
    pub writers: usize,
    /// Maximum number of these of one principal, where callers can be distinguished.
    pub writers_per_principal: usize,
    /// How long a query may continue in the background.
    pub timeout: Duration,
}

impl Default for StoreLimits {
    fn default() -> Self {
        const MIB: u64 = 1024 * 1024;
        Self {
            continued_bytes: 64 * MIB,
            block_bytes: 4 * 1024 * 1024,
            time_to_live: Duration::from_secs(60 * 60),
            total_bytes: 10 * 1024 * MIB,
            bytes_per_principal: 2 * 1024 * MIB,
            free_bytes: 1024 * MIB,
            results: 1_000,
            results_per_principal: 250,
            writers: 16,
            writers_per_principal: 4,
            timeout: Duration::from_secs(10 * 60),
        }
    }
}
