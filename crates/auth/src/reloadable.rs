//! Replaces the authenticator while transports keep serving.

use std::sync::Arc;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use tidegate_core::{AuthenticationError, Authenticator, Credentials, Principal};
use tokio::sync::watch;

use crate::authenticator::CredentialAuthenticator;

/// Holds the current authenticator. A changed configuration replaces it as a whole.
pub struct ReloadableAuthenticator {
    current: ArcSwap<CredentialAuthenticator>,
    /// How often the authenticator was replaced.
    credential_reloads: watch::Sender<u64>,
}

impl ReloadableAuthenticator {
    /// Wraps `credential_authenticator` and starts its background tasks.
    pub fn new(credential_authenticator: CredentialAuthenticator) -> Self {
        credential_authenticator.start_background_tasks();
        Self { current: ArcSwap::from_pointee(credential_authenticator), credential_reloads: watch::Sender::new(0) }
    }

    /// Replaces the current authenticator. Principals of the old one stay until transports authenticate them again,
    /// which they do at once for open connections and calls. Until then they reach no entry of another generation.
    /// Their result links and cached token checks end. Keys that the old one fetched from the same source are kept.
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
