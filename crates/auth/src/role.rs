//! Roles, and the token claims that give them.

use serde_json::{Map, Value};
use tidegate_core::{Grants, ImpliedScopes, SCOPE_CLAIMS};

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
