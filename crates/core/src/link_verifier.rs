//! Signed links: credentials for one stored result and a short time, for browsers and programs without other
//! credentials.

use crate::caller::Caller;

/// Verifies links that this node signed.
pub trait LinkVerifier: Send + Sync + 'static {
    /// The caller that created `link`, if the link is valid for the stored result `id` and has not expired. Anyone with
    /// the link can read that result with the rights of this caller, and nothing else.
    fn verify_link(&self, id: &str, link: &str) -> Option<Caller>;
}
