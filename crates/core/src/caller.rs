//! Who calls, from where, and through which toolset: what access is asked of.

use std::sync::Arc;

use crate::grants::AllowedNames;
use crate::principal::{AuthMethod, CallOrigin, Principal};
use crate::snapshot::Snapshot;

/// A named part of the registry. A caller who comes through its door sees nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolset {
    /// The name, as it stands in the door's address.
    pub name: String,
    /// The tools, resources and prompts in it, by name.
    pub entries: AllowedNames,
}

/// Who calls, from where, and through which toolset.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Who.
    pub principal: Arc<Principal>,
    /// From where.
    pub origin: CallOrigin,
    /// The toolset whose door was taken; none for the whole registry.
    pub toolset: Option<Arc<Toolset>>,
    /// The state of the registry that it calls into; none for the one of the moment. What a caller was let in to is
    /// what it sees until it is asked who it is again.
    pub snapshot: Option<Arc<Snapshot>>,
    /// Whether nothing but a link speaks for it, which must not make others.
    pub is_link_only: bool,
}

impl Caller {
    /// A caller at the door of the whole registry.
    pub fn new(principal: Arc<Principal>, origin: CallOrigin) -> Self {
        Self { principal, origin, toolset: None, snapshot: None, is_link_only: false }
    }

    /// A caller that calls into `snapshot`; none if that belongs to another configuration than the principal, as it may
    /// for a moment while a new one is entered.
    pub fn with_snapshot(principal: Arc<Principal>, origin: CallOrigin, state: Arc<Snapshot>) -> Option<Self> {
        state.matches_generation(&principal).then(|| Self { snapshot: Some(state), ..Self::new(principal, origin) })
    }

    /// Whether both are the same somebody. Those who showed nothing are told apart by their addresses, as far as these
    /// do: behind one proxy they are all the same.
    pub fn is_same_identity(&self, other: &Self) -> bool {
        let has_address_alone = self.principal.auth_method == AuthMethod::Anonymous;
        let address = |caller: &Self| caller.origin.peer.map(|peer| peer.to_canonical());
        self.principal.is_same_identity(&other.principal) && (!has_address_alone || address(self) == address(other))
    }

    /// The same caller at the door of `toolset`.
    #[must_use]
    pub fn with_toolset(self, toolset: Option<Arc<Toolset>>) -> Self {
        Self { toolset, ..self }
    }
}
