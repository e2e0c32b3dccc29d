//! The hash that identifies a block.

use std::fmt::Write as _;

use aws_lc_rs::digest::{SHA256, digest};

/// The SHA-256 of `bytes` as in a manifest: lower-case hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    let digest = digest(&SHA256, bytes);
    digest.as_ref().iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Whether `text` has the form of a SHA-256.
pub(crate) fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sha256_of_empty_input() {
        let hash = sha256(b"");
        assert_eq!(hash, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert!(is_sha256(&hash));
        for wrong in ["", "e3b0", &hash.to_uppercase(), &"x".repeat(64)] {
            assert!(!is_sha256(wrong), "{wrong}");
        }
    }
}
