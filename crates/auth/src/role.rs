//! What a role is, and which tokens give it.

use serde_json::{Map, Value};
use tidegate_core::Grants;

/// The claim in which OAuth carries its scopes: words with blanks between them.
const SCOPE: &str = "scope";

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
    /// the wanted value, and `scope` given as text counts as the list of its words.
    pub claims: Map<String, Value>,
}

impl Role {
    /// Whether a token with these `claims` holds the role.
    pub(crate) fn is_given_by(&self, claims: &Map<String, Value>) -> bool {
        let fits = |(name, wanted): (&String, &Value)| claims.get(name).is_some_and(|had| fits(name, wanted, had));
        !self.claims.is_empty() && self.claims.iter().all(fits)
    }
}

fn fits(name: &str, wanted: &Value, had: &Value) -> bool {
    match wanted {
        Value::Array(any_of) => any_of.iter().any(|wanted| contains(name, had, wanted)),
        wanted => contains(name, had, wanted),
    }
}

fn contains(name: &str, had: &Value, wanted: &Value) -> bool {
    match had {
        Value::Array(values) => values.contains(wanted),
        Value::String(words) if name == SCOPE => words.split(' ').any(|word| wanted == word),
        had => had == wanted,
    }
}
