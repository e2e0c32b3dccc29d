//! Fingerprints of row policies: what the answers to a principal depend on, in addition to the data.

use std::fmt;
use std::sync::Arc;

use crate::principal::Principal;

/// Computes a fingerprint of the row policies of all databases as they apply to a principal. Stored results and tasks
/// are visible only to callers with the same fingerprint. The default is that of a node without policies.
#[derive(Clone, Default)]
pub struct RowPolicyFingerprinter(Option<Arc<FingerprintFn>>);

type FingerprintFn = dyn Fn(&Principal) -> u64 + Send + Sync;

impl RowPolicyFingerprinter {
    /// Uses `fingerprint`. It must return the same value, in every process, while the policies and the principal's
    /// values in them are the same, and zero if no policy applies. It must be cheap, because it runs for each request
    /// of a task.
    pub fn new(fingerprint: impl Fn(&Principal) -> u64 + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(fingerprint)))
    }

    /// The fingerprint of `principal`.
    pub fn fingerprint_for(&self, principal: &Principal) -> u64 {
        self.0.as_ref().map_or(0, |fingerprint| fingerprint(principal))
    }
}

impl fmt::Debug for RowPolicyFingerprinter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RowPolicyFingerprinter(..)")
    }
}
