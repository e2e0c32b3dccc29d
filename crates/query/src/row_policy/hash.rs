//! Keyed hashes of values, which can be compared with each other and with nothing else.

use std::fmt;
use std::sync::LazyLock;

use tidegate_core::HmacSigner;

/// Bytes of a hash that are shown.
const HASH_BYTES: usize = 8;

/// A secret that values are hashed with. Cheap to clone.
#[derive(Clone)]
pub struct HashKey(HmacSigner);

impl fmt::Debug for HashKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl HashKey {
    /// The key that `secret` is: hashes by it are the same on every node and after every start.
    pub fn from_secret(secret: &[u8]) -> Self {
        Self(HmacSigner::new(secret))
    }

    /// The key of this process, made of chance when it is first asked for.
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
