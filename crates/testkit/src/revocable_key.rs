//! An authenticator that accepts one key until a test revokes it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use async_trait::async_trait;
use tidegate_core::{AuthMethod, AuthenticationError, Authenticator, Credentials, Grants, Principal};

/// Accepts the bearer token `key`, until it is revoked.
#[derive(Default)]
pub struct RevocableKey {
    /// Whether the key is revoked.
    pub is_revoked: AtomicBool,
    /// The generation of its principals.
    pub generation: AtomicU64,
    /// The version of the authenticator whose principals are still valid.
    pub version: AtomicU64,
}

#[async_trait]
impl Authenticator for RevocableKey {
    async fn authenticate(&self, credentials: Credentials<'_>) -> Result<Arc<Principal>, AuthenticationError> {
        let bearer = credentials.bearer.ok_or(AuthenticationError::Missing)?;
        if bearer != "key" || self.is_revoked.load(Ordering::SeqCst) {
            return Err(AuthenticationError::Invalid);
        }
        let principal = Principal::new("ann", AuthMethod::Key, Arc::new(Grants::everything()));
        Ok(Arc::new(Principal { generation: self.generation.load(Ordering::SeqCst), ..principal }))
    }

    fn local_principal(&self) -> Arc<Principal> {
        Principal::process_user()
    }

    fn is_still_valid(&self, principal: &Principal) -> bool {
        self.version.load(Ordering::SeqCst) == principal.authenticator_version
    }

    fn enforces_authentication(&self) -> bool {
        true
    }
}
