//! Stamps that are written down: the same in every process, and as long as this program is developed.

use sha2::{Digest, Sha256};

/// Makes a stamp of parts, in their order: another order or another division makes another stamp, and nothing of them
/// can be learned from it.
#[derive(Debug, Clone, Default)]
pub struct StableHasher {
    hash: Sha256,
}

impl StableHasher {
    /// The next part.
    pub fn add(&mut self, part: impl AsRef<[u8]>) {
        let part = part.as_ref();
        self.hash.update((part.len() as u64).to_be_bytes());
        self.hash.update(part);
    }

    /// The stamp of all parts: the first 64 bits of their SHA-256.
    pub fn finish(self) -> u64 {
        let digest: [u8; 32] = self.hash.finalize().into();
        digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    /// One stamp of several, each with the name of what it is of; those that are zero are left out, and of nothing else
    /// it is zero.
    pub fn combine_named<'a>(stamps: impl IntoIterator<Item = (&'a str, u64)>) -> u64 {
        let mut bound = stamps.into_iter().filter(|(_, stamp)| *stamp != 0).peekable();
        if bound.peek().is_none() {
            return 0;
        }
        let mut all = Self::default();
        for (name, stamp) in bound {
            all.add(name);
            all.add(stamp.to_be_bytes());
        }
        all.finish()
    }
}
