//! Hashes that are stored on disk: the same in every process and version.

use sha2::{Digest, Sha256};

/// Hashes parts in order. Another order or another division gives another hash, and the hash reveals nothing about the
/// parts.
#[derive(Debug, Clone, Default)]
pub struct StableHasher {
    hash: Sha256,
}

impl StableHasher {
    /// Adds the next part.
    pub fn add(&mut self, part: impl AsRef<[u8]>) {
        let part = part.as_ref();
        self.hash.update((part.len() as u64).to_be_bytes());
        self.hash.update(part);
    }

    /// The hash of all parts: the first 64 bits of their SHA-256.
    pub fn finish(self) -> u64 {
        let digest: [u8; 32] = self.hash.finalize().into();
        digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    /// Combines named fingerprints. Zero fingerprints are left out, and the result is zero if nothing else remains.
    pub fn combine_named<'a>(fingerprints: impl IntoIterator<Item = (&'a str, u64)>) -> u64 {
        let mut nonzero = fingerprints.into_iter().filter(|(_, fingerprint)| *fingerprint != 0).peekable();
        if nonzero.peek().is_none() {
            return 0;
        }
        let mut all = Self::default();
        for (name, fingerprint) in nonzero {
            all.add(name);
            all.add(fingerprint.to_be_bytes());
        }
        all.finish()
    }
}
