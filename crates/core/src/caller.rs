//! The caller: principal, origin and toolset, which access is checked for; and the owner of data that outlives its call,
//! in a form that can be stored.

use std::any::Any;
use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::grants::AllowedNames;
use crate::principal::{AuthMethod, CallOrigin, Principal, quota_address};

/// A named part of the registry. Callers at its endpoint see nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolset {
    /// The name, which is part of the endpoint's address.
    pub name: String,
    /// The tools, resources and prompts in it, by name.
    pub entries: AllowedNames,
}

/// The principal of a call, its origin and its toolset.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The principal.
    pub principal: Arc<Principal>,
    /// The transport and address of the call.
    pub origin: CallOrigin,
    /// The toolset of the endpoint; `None` for the whole registry.
    pub toolset: Option<Arc<Toolset>>,
    /// The registry snapshot that it calls; `None` for the current one. A caller keeps the snapshot with which it was
    /// authenticated until it is authenticated again. Its type is known to the registry alone, which builds on this one.
    pub pinned_snapshot: Option<Arc<dyn Any + Send + Sync>>,
    /// Whether its only credential is a signed link. Such a caller must not create further links.
    pub is_link_only: bool,
}

impl Caller {
    /// A caller at the endpoint of the whole registry.
    pub fn new(principal: Arc<Principal>, origin: CallOrigin) -> Self {
        Self { principal, origin, toolset: None, pinned_snapshot: None, is_link_only: false }
    }

    /// Whether both have the same identity. Anonymous callers are distinguished by their addresses, so all callers
    /// behind one proxy count as one.
    pub fn is_same_identity(&self, other: &Self) -> bool {
        let has_address_alone = self.principal.auth_method == AuthMethod::Anonymous;
        let address = |caller: &Self| caller.origin.peer.map(|peer| peer.to_canonical());
        self.principal.is_same_identity(&other.principal) && (!has_address_alone || address(self) == address(other))
    }

    /// Whether it can see the jobs and sessions of `owner`: its own. Operators see those of their tenant, the user of the
    /// process sees all.
    pub fn can_see_activity_of(&self, owner: &Self) -> bool {
        self.is_same_identity(owner) || (self.principal.grants.is_operator() && self.shares_tenant_with(owner))
    }

    /// Whether both have the same tenant, or none. The user of the process belongs to every tenant.
    pub fn shares_tenant_with(&self, owner: &Self) -> bool {
        self.principal.tenant == owner.principal.tenant || self.principal.auth_method == AuthMethod::Process
    }

    /// The same caller at the endpoint of `toolset`.
    #[must_use]
    pub fn with_toolset(self, toolset: Option<Arc<Toolset>>) -> Self {
        Self { toolset, ..self }
    }
}

/// The identity of a caller, as [`Caller::is_same_identity`] compares it: the owner of its results and tasks. It remains
/// valid after a restart.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CallerIdentity {
    /// How the identity was proven.
    #[serde(rename = "proof")]
    pub auth_method: Cow<'static, str>,
    /// The principal's name.
    pub subject: String,
    /// The principal's tenant.
    pub tenant: Option<String>,
    /// The address; only for anonymous callers.
    pub address: Option<IpAddr>,
}

impl CallerIdentity {
    /// The identity of `caller`.
    pub fn from_caller(caller: &Caller) -> Self {
        let principal = &caller.principal;
        let has_address_alone = principal.auth_method == AuthMethod::Anonymous;
        let peer = caller.origin.peer.map(|peer| peer.to_canonical());
        Self {
            auth_method: Cow::Borrowed(principal.auth_method.name()),
            subject: principal.subject.clone(),
            tenant: principal.tenant.clone(),
            address: peer.filter(|_| has_address_alone),
        }
    }

    /// The identity whose usage counts for `caller`: anonymous callers count as their network.
    pub fn for_quota(caller: &Caller) -> Self {
        let owner = Self::from_caller(caller);
        Self { address: owner.address.map(quota_address), ..owner }
    }

    /// The identity as text, to sign or to compare.
    pub fn to_text(&self) -> String {
        // Serializing a few strings cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }
}
