//! The limits of the result store.

use std::time::Duration;

use tidegate_core::{tenant_share, tenant_share_of_bytes};

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

impl StoreLimits {
    /// Maximum bytes of the results of one tenant.
    pub(crate) fn bytes_per_tenant(&self) -> u64 {
        tenant_share_of_bytes(self.total_bytes)
    }

    /// Maximum number of results of one tenant.
    pub(crate) fn results_per_tenant(&self) -> usize {
        tenant_share(self.results)
    }

    /// Maximum number of results of one tenant that are being written at the same time.
    pub(crate) fn writers_per_tenant(&self) -> usize {
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
