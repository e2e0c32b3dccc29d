//! Whose a stored result is, as it can be written down.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use tidegate_core::{Caller, Proof};

/// Whose a stored result is: what [`Caller::is_same_as`] compares, which outlives the process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Owner {
    pub(super) proof: String,
    pub(super) subject: String,
    pub(super) tenant: Option<String>,
    /// Only of somebody who showed nothing.
    pub(super) address: Option<IpAddr>,
}

impl Owner {
    pub(super) fn of(caller: &Caller) -> Self {
        let principal = &caller.principal;
        let (proof, has_address_alone) = match principal.proof {
            Proof::Anonymous => ("anonymous", true),
            Proof::Process => ("process", false),
            Proof::Key => ("key", false),
            Proof::Token => ("token", false),
        };
        let peer = caller.origin.peer.map(|peer| peer.to_canonical());
        Self {
            proof: proof.to_owned(),
            subject: principal.subject.clone(),
            tenant: principal.tenant.clone(),
            address: peer.filter(|_| has_address_alone),
        }
    }
}
