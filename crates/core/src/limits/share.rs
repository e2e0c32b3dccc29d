//! Counts what each caller uses of a shared quantity, and the share of one tenant.

use std::collections::HashMap;
use std::hash::Hash;

use super::level::LimitLevel;
use crate::caller::CallerIdentity;

/// The share of `of_all` (permits, tasks, bytes of memory) for all principals of one tenant together: half of it, and
/// at least one. Other callers always find room then, however many principals the tenant has.
///
/// It does not apply to callers without a tenant.
pub fn tenant_share(of_all: usize) -> usize {
    (of_all / 2).max(1)
}

/// The same share for bytes on a disk.
pub fn tenant_share_of_bytes(of_all: u64) -> u64 {
    (of_all / 2).max(1)
}

/// Counts what each principal, each tenant and all callers use of a shared quantity.
#[derive(Debug, Default)]
pub struct ShareCounter {
    all: usize,
    per_owner: HashMap<CallerIdentity, usize>,
    per_tenant: HashMap<String, usize>,
}

impl ShareCounter {
    /// Gives `owner` one more. All callers together can have `all_max`, one tenant its share of these
    /// ([`tenant_share`]), and one principal `per_owner_max`, if set.
    ///
    /// # Errors
    /// The level whose limit is reached. Nothing is counted then.
    pub fn acquire(
        &mut self,
        owner: &CallerIdentity,
        all_max: usize,
        per_owner_max: Option<usize>,
    ) -> Result<(), LimitLevel> {
        let of_owner = self.per_owner.get(owner).copied().unwrap_or_default();
        if per_owner_max.is_some_and(|per_owner_max| of_owner >= per_owner_max) {
            return Err(LimitLevel::Principal);
        }
        let of_tenant = owner.tenant.as_ref().and_then(|tenant| self.per_tenant.get(tenant)).copied();
        if of_tenant.unwrap_or_default() >= tenant_share(all_max) {
            return Err(LimitLevel::Tenant);
        }
        if self.all >= all_max {
            return Err(LimitLevel::Node);
        }
        self.all += 1;
        *self.per_owner.entry(owner.clone()).or_default() += 1;
        if let Some(tenant) = &owner.tenant {
            *self.per_tenant.entry(tenant.clone()).or_default() += 1;
        }
        Ok(())
    }

    /// Releases one that `owner` acquired.
    pub fn release(&mut self, owner: &CallerIdentity) {
        self.all -= 1;
        decrement(&mut self.per_owner, owner);
        if let Some(tenant) = &owner.tenant {
            decrement(&mut self.per_tenant, tenant);
        }
    }
}

fn decrement<K: Eq + Hash>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}
