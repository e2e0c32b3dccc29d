//! Stamps of row policies: what the answers to a principal depend on, in addition to the data.

use std::fmt;
use std::sync::Arc;

use crate::principal::Principal;

/// Computes a stamp of the row policies of all databases as they apply to a principal. Stored results and tasks are
/// visible only to callers with the same stamp. The default is that of a node without policies.
#[derive(Clone, Default)]
pub struct RowPolicyStamper(Option<Arc<StampFn>>);

type StampFn = dyn Fn(&Principal) -> u64 + Send + Sync;

impl RowPolicyStamper {
    /// Uses `stamp`. It must return the same value, in every process, while the policies and the principal's values in
    /// them are the same, and zero if no policy applies. It must be cheap, because it runs for each request of a task.
    pub fn new(stamp: impl Fn(&Principal) -> u64 + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(stamp)))
    }

    /// The stamp of `principal`.
    pub fn stamp_for(&self, principal: &Principal) -> u64 {
        self.0.as_ref().map_or(0, |stamp| stamp(principal))
    }
}

impl fmt::Debug for RowPolicyStamper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RowPolicyStamp(..)")
    }
}
