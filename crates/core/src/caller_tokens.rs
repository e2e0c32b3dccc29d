//! Tokens with which a node of a network identifies its callers to other nodes.

use crate::error::Error;
use crate::principal::Principal;

/// The claim of such a token that counts the nodes which the call has passed.
pub const HOPS_CLAIM: &str = "tidegate_hops";

/// A source of short-lived bearer tokens that name a caller to another node.
pub trait CallerTokens: Send + Sync + 'static {
    /// A token that identifies `principal` to `node`, and to no other node. It is valid for at least some seconds; an
    /// earlier token of the same caller is returned as long as it is.
    ///
    /// # Errors
    /// When the claims of the caller do not fit into a token, or signing fails.
    fn token_for(&self, principal: &Principal, node: &str) -> Result<String, Error>;
}
