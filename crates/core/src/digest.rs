//! Signatures of values that the node gives to clients and verifies when they return: cursors, links, request states.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use uuid::Uuid;

/// The length of a signature in bytes.
pub const SIGNATURE_BYTES: usize = 16;

/// Signs and verifies with one key: [RFC 2104](https://www.rfc-editor.org/rfc/rfc2104), with SHA-256, truncated to 128
/// bits.
#[derive(Clone)]
pub struct HmacSigner(Hmac<Sha256>);

impl HmacSigner {
    /// A signer with the key `key`, of any length.
    pub fn new(key: &[u8]) -> Self {
        // HMAC accepts keys of any length; the error of the trait is for other algorithms.
        let mac = <Hmac<Sha256> as KeyInit>::new_from_slice(key);
        Self(mac.unwrap_or_else(|_| <Hmac<Sha256> as KeyInit>::new(&Default::default())))
    }

    /// A signer with a random key, which lives as long as the process.
    pub fn with_random_key() -> Self {
        Self::new(&[*Uuid::new_v4().as_bytes(), *Uuid::new_v4().as_bytes()].concat())
    }

    /// The signature of `parts`, in their order, for `purpose`. A signature for one purpose is not valid for another.
    pub fn sign(&self, purpose: &str, parts: &[&[u8]]) -> [u8; SIGNATURE_BYTES] {
        let mut mac = self.0.clone();
        for part in [purpose.as_bytes()].into_iter().chain(parts.iter().copied()) {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        let mut signature = [0; SIGNATURE_BYTES];
        signature.copy_from_slice(&mac.finalize().into_bytes()[..SIGNATURE_BYTES]);
        signature
    }

    /// Whether `signature` is the signature of `parts`. The run time does not reveal where they differ.
    pub fn verify(&self, purpose: &str, parts: &[&[u8]], signature: &[u8]) -> bool {
        let expected = self.sign(purpose, parts);
        let differences = signature.iter().zip(expected).fold(0, |differences, (a, b)| differences | (a ^ b));
        signature.len() == expected.len() && differences == 0
    }
}

crate::impl_debug!(HmacSigner, "HmacSigner");
