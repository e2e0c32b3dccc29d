//! SHA-256 digests, which are stored instead of secrets and tokens.

use aws_lc_rs::digest::{SHA256, SHA256_OUTPUT_LEN, digest};

/// A SHA-256 digest.
pub(crate) type Digest = [u8; SHA256_OUTPUT_LEN];

/// The digest of `text`. Keys and tokens are random enough that no slow hash is needed.
pub(crate) fn sha256(text: &str) -> Digest {
    sha256_of(text.as_bytes())
}

/// The digest of `bytes`.
pub(crate) fn sha256_of(bytes: &[u8]) -> Digest {
    let mut hash = Digest::default();
    hash.copy_from_slice(digest(&SHA256, bytes).as_ref());
    hash
}
