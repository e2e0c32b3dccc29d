//! What the answers to a principal depend on beside the data: the row policies that bind it, and what it brings to them.

use std::fmt;
use std::sync::Arc;

use crate::principal::Principal;

/// Stamps what the row policies of all databases of a node make of a principal. What outlives a call is for whoever has
/// the same stamp still. The default is that of a node without policies.
#[derive(Clone, Default)]
pub struct RowPolicyStamper(Option<Arc<StampFn>>);

type StampFn = dyn Fn(&Principal) -> u64 + Send + Sync;

impl RowPolicyStamper {
    /// The stamp that `stamp` makes: the same, in every process, as long as the policies and what a principal brings to
    /// them are the same; zero where none binds it. Must be cheap: it is made each time that somebody asks for a task.
    pub fn new(stamp: impl Fn(&Principal) -> u64 + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(stamp)))
    }

    /// That of `principal`.
    pub fn stamp_for(&self, principal: &Principal) -> u64 {
        self.0.as_ref().map_or(0, |stamp| stamp(principal))
    }
}

impl fmt::Debug for RowPolicyStamper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RowPolicyStamp(..)")
    }
}
