//! The bounds of stored results, named in one place.

use std::time::Duration;

use tidegate_core::{tenant_share, tenant_share_of_bytes};

/// The bounds of stored results. The principals of one tenant have half together of what all have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreLimits {
    /// Bytes of blocks of an answer that goes on by itself because it did not fit inline.
    pub continued_bytes: u64,
    /// Bytes of rows in a block at most, before they are compressed; the first blocks are smaller.
    pub block_bytes: usize,
    /// How long a result is kept after it began.
    pub time_to_live: Duration,
    /// Bytes of all results together.
    pub total_bytes: u64,
    /// Bytes of the results of one principal.
    pub bytes_per_principal: u64,
    /// Bytes that stay free on the disk.
    pub free_bytes: u64,
    /// Results kept, of all principals.
    pub results: usize,
    /// Of these, those of one principal, so that many small ones do not drive out those of others.
    pub results_per_principal: usize,
    /// Results that are being written at the same time.
    pub writers: usize,
    /// Of these, those of one principal, where callers can be told apart.
    pub writers_per_principal: usize,
    /// How long the work goes on in the background.
    pub timeout: Duration,
}

impl StoreLimits {
    /// Bytes of the results of one tenant's principals together.
    pub(super) fn bytes_per_tenant(&self) -> u64 {
        tenant_share_of_bytes(self.total_bytes)
    }

    /// Results kept, of one tenant's principals together.
    pub(super) fn results_per_tenant(&self) -> usize {
        tenant_share(self.results)
    }

    /// Results of one tenant's principals that are being written at the same time.
    pub(super) fn writers_per_tenant(&self) -> usize {
        tenant_share(self.writers)
    }
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
