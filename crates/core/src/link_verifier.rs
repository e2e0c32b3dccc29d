//! Links that are a key to one thing for a short time: for browsers and programs that have no other.

use crate::caller::Caller;

/// Opens links that this node has signed.
pub trait LinkVerifier: Send + Sync + 'static {
    /// Who made `link`, if it opens the stored result `id` and its time is not over. Whoever has it reads that result
    /// as its maker would, and nothing else.
    fn verify_link(&self, id: &str, link: &str) -> Option<Caller>;
}
