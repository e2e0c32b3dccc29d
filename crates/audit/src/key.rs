//! The key of a hash chain. Without it nobody can forge a line.

use std::fmt;
use std::sync::Arc;

/// The key of a hash chain.
#[derive(Clone)]
pub struct AuditKey(Arc<[u8]>);

impl AuditKey {
    /// Bytes of a key at least; shorter keys can be guessed.
    pub const BYTES_MIN: usize = 16;

    /// The key with these bytes, trimmed of white space; `None` if it is too short.
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
