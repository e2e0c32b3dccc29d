//! Who has how much of what all callers share, and how much the principals of one tenant may have of it together.

use std::collections::HashMap;
use std::hash::Hash;

use super::level::LimitLevel;
use crate::owner::Owner;

/// How much of `all_callers` (places, tasks, bytes of memory) the principals of one tenant may have together: half, so that,
/// however many they are, others find room; never nothing.
///
/// Whoever has no tenant is not held to it.
pub fn tenant_share(of_all: usize) -> usize {
    (of_all / 2).max(1)
}

/// The same of bytes on a disk.
pub fn tenant_share_of_bytes(of_all: u64) -> u64 {
    (of_all / 2).max(1)
}

/// Counts what each principal, each tenant and all together have of something that they share.
#[derive(Debug, Default)]
pub struct ShareCounter {
    all: usize,
    per_holder: HashMap<Owner, usize>,
    per_tenant: HashMap<String, usize>,
}

impl ShareCounter {
    /// Gives `key_caller` one more of `all_max`, of which one tenant has its share ([`tenant_share`]), and one principal
    /// `of_one_max` if it is held to that.
    ///
    /// # Errors
    /// Who has as many as it may: the principal, its tenant, or all together; then nothing is counted.
    pub fn acquire(&mut self, holder: &Owner, all_max: usize, of_one_max: Option<usize>) -> Result<(), LimitLevel> {
        let of_holder = self.per_holder.get(holder).copied().unwrap_or_default();
        if of_one_max.is_some_and(|of_one_max| of_holder >= of_one_max) {
            return Err(LimitLevel::Principal);
        }
        let of_tenant = holder.tenant.as_ref().and_then(|tenant| self.per_tenant.get(tenant)).copied();
        if of_tenant.unwrap_or_default() >= tenant_share(all_max) {
            return Err(LimitLevel::Tenant);
        }
        if self.all >= all_max {
            return Err(LimitLevel::Node);
        }
        self.all += 1;
        increment(&mut self.per_holder, holder);
        if let Some(tenant) = &holder.tenant {
            increment(&mut self.per_tenant, tenant);
        }
        Ok(())
    }

    /// Takes back one that `key_caller` was given.
    pub fn release(&mut self, holder: &Owner) {
        self.all -= 1;
        decrement(&mut self.per_holder, holder);
        if let Some(tenant) = &holder.tenant {
            decrement(&mut self.per_tenant, tenant);
        }
    }
}

fn increment<K: Eq + Hash + Clone>(counts: &mut HashMap<K, usize>, key: &K) {
    match counts.get_mut(key) {
        Some(count) => *count += 1,
        None => _ = counts.insert(key.clone(), 1),
    }
}

/// Keeps no count of whom there is nothing.
fn decrement<K: Eq + Hash>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}
