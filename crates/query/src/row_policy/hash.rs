//! Keyed hashes of values, which can be compared only with each other.

use std::fmt;
use std::sync::LazyLock;

use tidegate_core::HmacSigner;

/// Bytes of the hash that are used.
const HASH_BYTES: usize = 8;

/// The secret key of hashes. Cheap to clone.
#[derive(Clone)]
pub struct HashKey(HmacSigner);

impl fmt::Debug for HashKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl HashKey {
    /// The key from `secret`: its hashes are the same on every node and after every restart.
    pub fn from_secret(secret: &[u8]) -> Self {
        Self(HmacSigner::new(secret))
    }

    /// The random key of this process, created on first use.
    pub fn process_key() -> Self {
        static OF_PROCESS: LazyLock<HashKey> = LazyLock::new(|| HashKey(HmacSigner::with_random_key()));
        OF_PROCESS.clone()
    }

    /// The hash of `text`: 16 hexadecimal digits.
    pub fn hash(&self, text: &str) -> String {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let signature = self.0.sign("mask", &[text.as_bytes()]);
        let digits = signature[..HASH_BYTES].iter().flat_map(|byte| [byte >> 4, byte & 15]);
        digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
    }
}
