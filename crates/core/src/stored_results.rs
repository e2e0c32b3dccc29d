//! Stored results, as far as monitoring and transports need them.

use crate::caller::Caller;

/// The current number and size of stored results, with counters since the process started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoredResultStats {
    /// The number of results.
    pub results: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// The number of results that are being written.
    pub running: u64,
    /// Blocks written since the process started.
    pub blocks_written: u64,
    /// Results removed because they expired, since the process started.
    pub expired: u64,
    /// Results removed to make room for newer ones, since the process started.
    pub evicted: u64,
}

/// A store of results that reports its statistics.
pub trait StoredResults: Send + Sync + 'static {
    /// The current statistics. Must not block.
    fn stats(&self) -> StoredResultStats;
}

/// Verifies signed links: credentials for one stored result and a short time, for browsers and programs without other
/// credentials.
pub trait LinkVerifier: Send + Sync + 'static {
    /// The caller that created `link`, if the link is valid for the stored result `id` and has not expired. Anyone with
    /// the link can read that result with the rights of this caller, and nothing else.
    fn verify_link(&self, id: &str, link: &str) -> Option<Caller>;
}
