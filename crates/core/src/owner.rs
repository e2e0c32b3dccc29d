//! Whose something is that outlives its call, as it can be written down.

use std::borrow::Cow;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::caller::Caller;
use crate::principal::{AuthMethod, quota_address};

/// Whose something is: what [`Caller::is_same_identity`] compares, which outlives the process.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Owner {
    /// How it was proven.
    pub proof: Cow<'static, str>,
    /// The principal's name.
    pub subject: String,
    /// The tenant that it belongs to.
    pub tenant: Option<String>,
    /// Only of somebody who showed nothing.
    pub address: Option<IpAddr>,
}

impl Owner {
    /// Whose it is when `caller` makes it.
    pub fn from_caller(caller: &Caller) -> Self {
        let principal = &caller.principal;
        let has_address_alone = principal.auth_method == AuthMethod::Anonymous;
        let peer = caller.origin.peer.map(|peer| peer.to_canonical());
        Self {
            proof: Cow::Borrowed(principal.auth_method.name()),
            subject: principal.subject.clone(),
            tenant: principal.tenant.clone(),
            address: peer.filter(|_| has_address_alone),
        }
    }

    /// Whom `caller` counts as where what it takes is counted: who showed nothing counts as its network.
    pub fn for_quota(caller: &Caller) -> Self {
        let owner = Self::from_caller(caller);
        Self { address: owner.address.map(quota_address), ..owner }
    }

    /// The same as one text, to sign or to compare.
    pub fn to_text(&self) -> String {
        // A few strings always become JSON.
        serde_json::to_string(self).unwrap_or_default()
    }
}
