//! What is kept of secrets and tokens: their SHA-256.

use aws_lc_rs::digest::{SHA256, SHA256_OUTPUT_LEN, digest};

/// A SHA-256.
pub(crate) type Digest = [u8; SHA256_OUTPUT_LEN];

/// The SHA-256 of `text`. Both keys and tokens carry enough randomness that no slow hash is needed.
pub(crate) fn sha256(text: &str) -> Digest {
    let mut bytes = Digest::default();
    bytes.copy_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
    bytes
}
