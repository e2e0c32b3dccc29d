//! The owner of data that outlives its call, in a form that can be stored.

use std::borrow::Cow;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::caller::Caller;
use crate::principal::{AuthMethod, quota_address};

/// The owner of data: the identity that [`Caller::is_same_identity`] compares. It remains valid after a restart.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Owner {
    /// How the identity was proven.
    pub proof: Cow<'static, str>,
    /// The principal's name.
    pub subject: String,
    /// The principal's tenant.
    pub tenant: Option<String>,
    /// The address; only for anonymous callers.
    pub address: Option<IpAddr>,
}

impl Owner {
    /// The owner of what `caller` creates.
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

    /// The holder whose usage counts for `caller`: anonymous callers count as their network.
    pub fn for_quota(caller: &Caller) -> Self {
        let owner = Self::from_caller(caller);
        Self { address: owner.address.map(quota_address), ..owner }
    }

    /// The owner as text, to sign or to compare.
    pub fn to_text(&self) -> String {
        // Serializing a few strings cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }
}
