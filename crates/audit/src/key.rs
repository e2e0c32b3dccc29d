//! The key of a chain, which whoever forges a line would need.

use std::fmt;
use std::sync::Arc;

/// The key of a chain.
#[derive(Clone)]
pub struct AuditKey(Arc<[u8]>);

impl AuditKey {
    /// Shorter keys could be guessed.
    pub const BYTES_MIN: usize = 16;

    /// The key of these bytes, without white space around them; none if they are too few.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.trim_ascii();
        (bytes.len() >= Self::BYTES_MIN).then(|| Self(bytes.into()))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for AuditKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
