//! What is kept of secrets and tokens: their SHA-256.

use aws_lc_rs::digest::{SHA256, SHA256_OUTPUT_LEN, digest};

/// A SHA-256.
pub(crate) type Digest = [u8; SHA256_OUTPUT_LEN];

/// The SHA-256 of `text`. Both keys and tokens carry enough randomness that no slow hash is needed.
pub(crate) fn sha256(text: &str) -> Digest {
    sha256_of(text.as_bytes())
}

/// The SHA-256 of `bytes`.
pub(crate) fn sha256_of(bytes: &[u8]) -> Digest {
    let mut hash = Digest::default();
    hash.copy_from_slice(digest(&SHA256, bytes).as_ref());
    hash
}
