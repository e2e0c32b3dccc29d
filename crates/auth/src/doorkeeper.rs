//! One gate after the other, while doors stay open.

use std::sync::Arc;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use tidegate_core::{Authenticator, Credentials, Principal, Unauthenticated};
use tokio::sync::watch;

use crate::gate::Gate;

/// Holds the gate that is in force. Doors keep the doorkeeper; a changed configuration changes its gate whole.
pub struct Doorkeeper {
    gate: ArcSwap<Gate>,
    /// How many followed the first.
    renewals: watch::Sender<u64>,
}

impl Doorkeeper {
    /// A doorkeeper of `gate`.
    pub fn new(gate: Gate) -> Self {
        gate.start();
        Self { gate: ArcSwap::from_pointee(gate), renewals: watch::Sender::new(0) }
    }

    /// Puts `gate` in force. Callers that the old gate let in keep their principals until they are asked again who they
    /// are, which doors do at once for what goes on; these reach nothing of another generation, and links that they
    /// were given end; what the old one remembered of tokens is forgotten. Keys that the old one fetched from the same
    /// place are handed on, so that nobody waits for them again.
    pub fn swap(&self, mut gate: Gate) {
        gate.follow(&self.gate.load());
        gate.start();
        self.gate.store(Arc::new(gate));
        self.renewals.send_modify(|count| *count += 1);
    }
}

#[async_trait]
impl Authenticator for Doorkeeper {
    async fn authenticate(&self, credentials: Credentials<'_>) -> Result<Arc<Principal>, Unauthenticated> {
        self.gate.load_full().authenticate(credentials).await
    }

    fn local(&self) -> Arc<Principal> {
        self.gate.load().local()
    }

    fn asserting_headers(&self) -> Option<Arc<[String]>> {
        self.gate.load().asserting_headers()
    }

    fn stands_by(&self, principal: &Principal) -> bool {
        self.gate.load().stands_by(principal)
    }

    fn renewals(&self) -> watch::Receiver<u64> {
        self.renewals.subscribe()
    }

    fn is_configured(&self) -> bool {
        self.gate.load().is_configured()
    }
}
