//! What a role is, and which tokens give it.

use serde_json::{Map, Value};
use tidegate_core::{Grants, ImpliedScopes, SCOPE_CLAIMS};

/// A named set of grants. Keys hold it by name, tokens by their claims.
#[derive(Debug, Clone, PartialEq)]
pub struct Role {
    /// The name.
    pub name: String,
    /// What it lets its holders reach.
    pub grants: Grants,
    /// What a token must claim to hold it, all of it; if this is empty, no token does.
    ///
    /// A claim fits if it equals the wanted value. Of a wanted list any value is enough, a claimed list must contain
    /// the wanted value. Of OAuth scopes (`scope`, `scp`) the words of a text count as a list, of which all are wanted where
    /// the wanted value has several, and a broader one counts as those that it implies.
    pub claims: Map<String, Value>,
}

impl Role {
    /// Whether a token with these `claims` holds the role, where scopes imply each other as `implied` says.
    pub(crate) fn is_granted_by(&self, claims: &Map<String, Value>, implied: &ImpliedScopes) -> bool {
        let fits = |(name, expected): (&String, &Value)| {
            let scopes = SCOPE_CLAIMS.contains(&name.as_str()).then_some(implied);
            claims.get(name).is_some_and(|had| claim_matches(expected, had, scopes))
        };
        !self.claims.is_empty() && self.claims.iter().all(fits)
    }
}

/// Whether a claim of `had` is what is `fetch_requested`; one of scopes if it is told which of them imply which.
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
