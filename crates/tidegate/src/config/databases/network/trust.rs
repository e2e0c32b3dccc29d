//! The key that signs tokens which name the callers of this server to other nodes.

use std::sync::Arc;

use tidegate_auth::{CallerTokenOptions, CallerTokenSigner, TokenAlgorithm};

use crate::config::problems::Problems;
use crate::config::types::network::TrustConfig;

/// The signer of `entry`.
pub(super) fn open_signer(entry: &TrustConfig, problems: &Problems) -> Option<Arc<CallerTokenSigner>> {
    let before = problems.len();
    let algorithm = match entry.algorithm.as_deref().map(str::parse).transpose() {
        Ok(algorithm) => algorithm.unwrap_or(TokenAlgorithm::EdDsa),
        Err(message) => {
            let message: String = message;
            problems.add("algorithm", message);
            return None;
        }
    };
    let names = [
        ("issuer", Some(&entry.issuer)),
        ("tenant_claim", entry.tenant_claim.as_ref()),
        ("roles_claim", entry.roles_claim.as_ref()),
        ("key_id", entry.key_id.as_ref()),
    ];
    for (member, _) in names.into_iter().filter(|(_, name)| name.is_some_and(|name| name.trim().is_empty())) {
        problems.add(member, "is empty");
    }
    if problems.len() > before {
        return None;
    }
    let default = CallerTokenOptions::new(entry.issuer.clone(), entry.key.0.clone(), algorithm);
    let options = CallerTokenOptions {
        tenant_claim: entry.tenant_claim.clone().unwrap_or(default.tenant_claim),
        roles_claim: entry.roles_claim.clone().unwrap_or(default.roles_claim),
        key_id: entry.key_id.clone(),
        ..default
    };
    match CallerTokenSigner::new(options) {
        Ok(signer) => Some(Arc::new(signer)),
        Err(error) => {
            problems.add("", error.to_string());
            None
        }
    }
}
