//! OAuth scopes: their syntax, and which broader scopes imply narrower ones.
//!
//! [RFC 6749, 3.3](https://www.rfc-editor.org/rfc/rfc6749#section-3.3),
//! [MCP 2026-07-28, Step-Up Authorization Flow](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization#step-up-authorization-flow)

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// The claims that contain scopes in tokens: the standard one, and the one of some issuers.
pub const SCOPE_CLAIMS: [&str; 2] = ["scope", "scp"];
/// The maximum number of scopes, broader and narrower ones together.
const SCOPES_MAX: usize = 256;

/// Which scopes imply others: a token with a broader scope needs no narrower one. By default no scope implies another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImpliedScopes {
    /// For each broader scope, all narrower scopes that it implies directly or indirectly.
    narrower: BTreeMap<String, BTreeSet<String>>,
}

/// Why a mapping of scopes is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImpliedScopesError {
    /// Not a scope.
    #[error("{0:?} is no scope: one is a word without spaces, quotes and backslashes")]
    InvalidScope(String),
    /// A scope that implies itself.
    #[error("the scope {scope:?} implies itself: {}", path.join(", which implies "))]
    Cycle {
        /// The scope.
        scope: String,
        /// The path from the scope to itself.
        path: Vec<String>,
    },
    /// Too many scopes.
    #[error("{count} scopes are named; at most {SCOPES_MAX} are allowed")]
    TooMany {
        /// The number of scopes.
        count: usize,
    },
}

/// Whether `text` is a valid scope.
pub fn is_scope(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\')
}

impl ImpliedScopes {
    /// Takes the scopes that each broader scope implies. Implication is transitive.
    ///
    /// # Errors
    /// If a name is not a scope, a scope would imply itself, or there are more than 256 scopes.
    pub fn new(implied: &BTreeMap<String, Vec<String>>) -> Result<Self, ImpliedScopesError> {
        let names: BTreeSet<&String> =
            implied.iter().flat_map(|(broad, narrow)| [broad].into_iter().chain(narrow)).collect();
        if let Some(name) = names.iter().find(|name| !is_scope(name)) {
            return Err(ImpliedScopesError::InvalidScope((*name).clone()));
        }
        if names.len() > SCOPES_MAX {
            return Err(ImpliedScopesError::TooMany { count: names.len() });
        }
        let narrower = implied.keys().map(|broad| Ok((broad.clone(), collect_narrower(broad, implied)?)));
        Ok(Self { narrower: narrower.collect::<Result<_, _>>()? })
    }

    /// Whether the scope `had` is or implies `expected`.
    pub fn implies(&self, had: &str, expected: &str) -> bool {
        had == expected || self.narrower.get(had).is_some_and(|narrower| narrower.contains(expected))
    }

    /// Whether the claim of a token, words separated by spaces or a list, contains `expected` or a scope that implies
    /// it.
    pub fn claim_includes(&self, claim: &Value, expected: &str) -> bool {
        match claim {
            Value::String(scopes) => scopes.split(' ').any(|scope| self.implies(scope, expected)),
            Value::Array(scopes) => scopes.iter().filter_map(Value::as_str).any(|scope| self.implies(scope, expected)),
            _ => false,
        }
    }

    /// The smallest subset of `scopes` that implies all of them, in their order.
    pub fn minimal(&self, scopes: &[String]) -> Vec<String> {
        let mut minimal: Vec<String> = Vec::new();
        for scope in scopes {
            let is_implied = scopes.iter().any(|other| other != scope && self.implies(other, scope));
            if !is_implied && !minimal.contains(scope) {
                minimal.push(scope.clone());
            }
        }
        minimal
    }
}

/// All scopes that `broad` implies. Each is visited once.
fn collect_narrower(
    broad: &String,
    implied: &BTreeMap<String, Vec<String>>,
) -> Result<BTreeSet<String>, ImpliedScopesError> {
    // The predecessor of each scope, for the path back.
    let mut from: BTreeMap<&String, &String> = BTreeMap::new();
    let mut open = vec![broad];
    while let Some(scope) = open.pop() {
        for narrow in implied.get(scope).into_iter().flatten() {
            if narrow == broad {
                return Err(ImpliedScopesError::Cycle { scope: broad.clone(), path: cycle_path(broad, scope, &from) });
            }
            if !from.contains_key(narrow) {
                from.insert(narrow, scope);
                open.push(narrow);
            }
        }
    }
    Ok(from.into_keys().cloned().collect())
}

/// The path from `broad` to `last` and back to `broad`.
fn cycle_path(broad: &String, last: &String, from: &BTreeMap<&String, &String>) -> Vec<String> {
    let back = std::iter::successors(Some(last), |scope| from.get(scope).copied());
    let mut path: Vec<String> = [broad].into_iter().chain(back).cloned().collect();
    path.reverse();
    path
}
