//! Roles, the token claims that give them, and the defined roles with one shared `Arc` of grants for each set of roles.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::sync::Arc;

use lru::LruCache;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tidegate_core::{AuthMethod, Grants, ImpliedScopes, Principal, SCOPE_CLAIMS, nearest_names};

/// Sets of roles whose grants are cached; the least recently used one is evicted.
const SHARED_SETS_MAX: NonZeroUsize = NonZeroUsize::new(1024).unwrap();

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

impl Roles {
    pub(crate) fn new(roles: Vec<Role>, generation: u64, authenticator: u64) -> Result<Self, String> {
        let mut by_name = BTreeMap::new();
        for role in roles {
            if role.name.is_empty() {
                return Err("a role has no name".to_owned());
            }
            let name = role.name.clone();
            if by_name.insert(name.clone(), role).is_some() {
                return Err(format!("two roles are named {name:?}"));
            }
        }
        Ok(Self { by_name, generation, authenticator_version: authenticator, ..Self::empty() })
    }

    pub(crate) fn empty() -> Self {
        let shared = Mutex::new(LruCache::new(SHARED_SETS_MAX));
        Self { by_name: BTreeMap::new(), shared, generation: 0, authenticator_version: 0 }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// The roles of a token with these claims. `implied` lists which scopes imply others.
    pub(crate) fn granted_by(&self, claims: &Map<String, Value>, implied: &ImpliedScopes) -> BTreeSet<String> {
        let granted = self.by_name.values().filter(|role| role.is_granted_by(claims, implied));
        granted.map(|role| role.name.clone()).collect()
    }

    pub(crate) fn build_principal(
        &self,
        subject: impl Into<String>,
        auth_method: AuthMethod,
        names: BTreeSet<String>,
    ) -> Principal {
        let grants = self.grants(&names);
        Principal { roles: names, ..self.with_generation(Principal::new(subject, auth_method, grants)) }
    }

    /// A principal with the roles of these names, all of which must be defined.
    pub(crate) fn try_build_principal(
        &self,
        subject: &str,
        auth_method: AuthMethod,
        names: Vec<String>,
    ) -> Result<Principal, String> {
        Ok(self.build_principal(subject, auth_method, self.require(subject, names)?))
    }

    /// The set of these names, all of which must be defined. `callers` says in the error whose roles they are.
    pub(crate) fn require(&self, callers: &str, names: Vec<String>) -> Result<BTreeSet<String>, String> {
        if let Some(name) = names.iter().find(|name| !self.has(name)) {
            let nearest = nearest_names(name, self.by_name.keys().map(String::as_str)).into_iter().next();
            let hint = nearest.map(|name| format!("; did you mean {name:?}?")).unwrap_or_default();
            return Err(format!("{callers} callers have the undefined role {name:?}{hint}"));
        }
        Ok(names.into_iter().collect())
    }

    /// The principal, marked with this configuration's generation and this authenticator's version.
    pub(crate) fn with_generation(&self, principal: Principal) -> Principal {
        Principal { generation: self.generation, authenticator_version: self.authenticator_version, ..principal }
    }

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
            claims.get(name).is_some_and(|claim| claim_matches(expected, claim, scopes))
        };
        !self.claims.is_empty() && self.claims.iter().all(fits)
    }
}

/// Whether `claim` matches `expected`. `scopes` is set for claims of OAuth scopes.
fn claim_matches(expected: &Value, claim: &Value, scopes: Option<&ImpliedScopes>) -> bool {
    match expected {
        Value::Array(any_of) => any_of.iter().any(|expected| contains(claim, expected, scopes)),
        expected => contains(claim, expected, scopes),
    }
}

fn contains(claim: &Value, expected: &Value, scopes: Option<&ImpliedScopes>) -> bool {
    match (claim, expected, scopes) {
        (claim, Value::String(expected), Some(scopes)) => {
            expected.split(' ').all(|expected| scopes.claim_includes(claim, expected))
        }
        (Value::Array(values), expected, _) => values.contains(expected),
        (claim, expected, _) => claim == expected,
    }
}
