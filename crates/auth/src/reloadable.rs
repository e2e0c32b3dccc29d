//! One gate after the other, while doors stay open.

use std::sync::Arc;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use tidegate_core::{AuthenticationError, Authenticator, Credentials, Principal};
use tokio::sync::watch;

use crate::authenticator::CredentialAuthenticator;

/// Holds the gate that is in force. Doors keep the doorkeeper; a changed configuration changes its gate whole.
pub struct ReloadableAuthenticator {
    current: ArcSwap<CredentialAuthenticator>,
    /// How many followed the first.
    credential_reloads: watch::Sender<u64>,
}

impl ReloadableAuthenticator {
    /// A doorkeeper of `gate`.
    pub fn new(credential_authenticator: CredentialAuthenticator) -> Self {
        credential_authenticator.start_background_tasks();
        Self { current: ArcSwap::from_pointee(credential_authenticator), credential_reloads: watch::Sender::new(0) }
    }

    /// Puts `gate` in force. Callers that the old gate let in keep their principals until they are asked again who they
    /// are, which doors do at once for what goes on; these reach nothing of another generation, and links that they
    /// were given end; what the old one remembered of tokens is forgotten. Keys that the old one fetched from the same
    /// place are handed on, so that nobody waits for them again.
    pub fn swap(&self, mut credential_authenticator: CredentialAuthenticator) {
        credential_authenticator.reuse_fetched_keys(&self.current.load());
        credential_authenticator.start_background_tasks();
        self.current.store(Arc::new(credential_authenticator));
        self.credential_reloads.send_modify(|count| *count += 1);
    }
}

#[async_trait]
impl Authenticator for ReloadableAuthenticator {
    async fn authenticate(&self, credentials: Credentials<'_>) -> Result<Arc<Principal>, AuthenticationError> {
        self.current.load_full().authenticate(credentials).await
    }

    fn local_principal(&self) -> Arc<Principal> {
        self.current.load().local_principal()
    }

    fn identity_headers(&self) -> Option<Arc<[String]>> {
        self.current.load().identity_headers()
    }

    fn is_still_valid(&self, principal: &Principal) -> bool {
        self.current.load().is_still_valid(principal)
    }

    fn credential_reloads(&self) -> watch::Receiver<u64> {
        self.credential_reloads.subscribe()
    }

    fn enforces_authentication(&self) -> bool {
        self.current.load().enforces_authentication()
    }
}
