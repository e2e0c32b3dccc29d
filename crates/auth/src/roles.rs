//! Roles, the token claims that give them, and the defined roles with one shared `Arc` of grants for each set of roles.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::sync::Arc;

use lru::LruCache;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tidegate_core::{AuthMethod, Grants, ImpliedScopes, Principal, SCOPE_CLAIMS, nearest_names};

/// Sets of roles whose grants are cached; the least recently used one is evicted.
const SHARED_SETS_MAX: NonZeroUsize = match NonZeroUsize::new(1024) {
    Some(count) => count,
    None => NonZeroUsize::MIN,
};

/// The defined roles.
///
/// Caches that depend only on grants (such as the list of tools) use the address of the `Arc` as key. Principals with
/// the same roles therefore share one `Arc`.
pub(crate) struct Roles {
    by_name: BTreeMap<String, Role>,
    shared: Mutex<LruCache<BTreeSet<String>, Arc<Grants>>>,
    generation: u64,
    authenticator_version: u64,
}

/// Why roles, or callers with roles, are invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RoleError {
    /// A role has no name.
    #[error("a role has no name")]
    NamelessRole,
    /// Two roles have the same name.
    #[error("two roles are named {name:?}")]
    DuplicateRole {
        /// The name.
        name: String,
    },
    /// Callers are configured with an undefined role.
    #[error("{who} callers have the undefined role {name:?}{}", did_you_mean(.nearest))]
    UnknownRole {
        /// Which callers: `anonymous`, `local`, or the name of a certificate rule.
        who: String,
        /// The name of the role.
        name: String,
        /// Similar names of defined roles, the best match first.
        nearest: Vec<String>,
    },
}

fn did_you_mean(nearest: &[String]) -> String {
    nearest.first().map(|name| format!("; did you mean {name:?}?")).unwrap_or_default()
}

impl Roles {
    /// # Errors
    /// When a role has no name, or two roles have the same name.
    pub(crate) fn new(roles: Vec<Role>, generation: u64, authenticator: u64) -> Result<Self, RoleError> {
        let mut by_name = BTreeMap::new();
        for role in roles {
            if role.name.is_empty() {
                return Err(RoleError::NamelessRole);
            }
            let name = role.name.clone();
            if by_name.insert(name.clone(), role).is_some() {
                return Err(RoleError::DuplicateRole { name });
            }
        }
        Ok(Self { by_name, generation, authenticator_version: authenticator, ..Self::empty() })
    }

    /// No roles.
    pub(crate) fn empty() -> Self {
        let shared = Mutex::new(LruCache::new(SHARED_SETS_MAX));
        Self { by_name: BTreeMap::new(), shared, generation: 0, authenticator_version: 0 }
    }

    /// The names of all roles.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    /// Whether a role of that name is defined.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// The roles of a token with these claims. `implied` lists which scopes imply others.
    pub(crate) fn granted_by(&self, claims: &Map<String, Value>, implied: &ImpliedScopes) -> BTreeSet<String> {
        let held = self.by_name.values().filter(|role| role.is_granted_by(claims, implied));
        held.map(|role| role.name.clone()).collect()
    }

    /// A principal with the roles of these names.
    pub(crate) fn build_principal(
        &self,
        subject: impl Into<String>,
        proof: AuthMethod,
        names: BTreeSet<String>,
    ) -> Principal {
        let grants = self.grants(&names);
        Principal { roles: names, ..self.with_generation(Principal::new(subject, proof, grants)) }
    }

    /// A principal with the roles of these names, all of which must be defined.
    ///
    /// # Errors
    /// When a role is undefined.
    pub(crate) fn try_build_principal(
        &self,
        subject: &str,
        proof: AuthMethod,
        names: Vec<String>,
    ) -> Result<Principal, RoleError> {
        if let Some(name) = names.iter().find(|name| !self.has(name)) {
            let nearest = nearest_names(name, self.names());
            return Err(RoleError::UnknownRole { who: subject.to_owned(), name: name.clone(), nearest });
        }
        Ok(self.build_principal(subject, proof, names.into_iter().collect()))
    }

    /// The principal, marked with this configuration's generation and this authenticator's version.
    pub(crate) fn with_generation(&self, principal: Principal) -> Principal {
        Principal { generation: self.generation, authenticator_version: self.authenticator_version, ..principal }
    }

    /// Whether this authenticator issued `principal`.
    pub(crate) fn has_issued(&self, principal: &Principal) -> bool {
        self.authenticator_version == principal.authenticator_version
    }

    /// The union of the grants of these roles. Undefined names add nothing.
    fn grants(&self, names: &BTreeSet<String>) -> Arc<Grants> {
        let mut shared = self.shared.lock();
        if let Some(grants) = shared.get(names) {
            return grants.clone();
        }
        let roles = names.iter().filter_map(|name| self.by_name.get(name));
        let grants = Arc::new(roles.fold(Grants::default(), |sum, role| sum.or(&role.grants)));
        shared.put(names.clone(), grants.clone());
        grants
    }
}

/// A named set of grants. API keys name roles; tokens get them by their claims.
#[derive(Debug, Clone, PartialEq)]
pub struct Role {
    /// The name.
    pub name: String,
    /// What its holders may access.
    pub grants: Grants,
    /// The claims that a token must have to get the role, all of them. If empty, no token gets it.
    ///
    /// A claim matches if it equals the expected value. An expected list matches if any of its values does; a claimed
    /// list must contain the expected value. OAuth scopes (`scope`, `scp`) are split into words; all words of the
    /// expected value are required, and a broader scope counts as the scopes that it implies.
    pub claims: Map<String, Value>,
}

impl Role {
    /// Whether a token with these `claims` gets the role. `implied` lists which scopes imply others.
    pub(crate) fn is_granted_by(&self, claims: &Map<String, Value>, implied: &ImpliedScopes) -> bool {
        let fits = |(name, expected): (&String, &Value)| {
            let scopes = SCOPE_CLAIMS.contains(&name.as_str()).then_some(implied);
            claims.get(name).is_some_and(|had| claim_matches(expected, had, scopes))
        };
        !self.claims.is_empty() && self.claims.iter().all(fits)
    }
}

/// Whether the claim `had` matches `expected`. `scopes` is set for claims of OAuth scopes.
fn claim_matches(expected: &Value, had: &Value, scopes: Option<&ImpliedScopes>) -> bool {
    match expected {
        Value::Array(any_of) => any_of.iter().any(|expected| contains(had, expected, scopes)),
        expected => contains(had, expected, scopes),
    }
}

fn contains(had: &Value, expected: &Value, scopes: Option<&ImpliedScopes>) -> bool {
    match (had, expected, scopes) {
        (had, Value::String(expected), Some(scopes)) => {
            expected.split(' ').all(|expected| scopes.claim_includes(had, expected))
        }
        (Value::Array(values), expected, _) => values.contains(expected),
        (had, expected, _) => had == expected,
    }
}
