//! How much a node keeps of its answers, for those who watch over it.

/// What there is of stored results at one moment, and what became of others since the process began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoredResultStats {
    /// Results that there are.
    pub results: u64,
    /// The room that they take, in bytes.
    pub bytes: u64,
    /// Of the results, those that are being written.
    pub running: u64,
    /// Blocks written since the process began.
    pub blocks_written: u64,
    /// Results taken away since then because their time was over.
    pub expired: u64,
    /// Results taken away since then to make room for newer ones.
    pub evicted: u64,
}

/// Keeps results, and knows how many.
pub trait StoredResults: Send + Sync + 'static {
    /// What there is now. Must not block.
    fn stats(&self) -> StoredResultStats;
}
