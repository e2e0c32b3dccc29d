//! OAuth scopes that imply others.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use tidegate_core::{ImpliedScopes, SCOPE_CLAIMS, nearest_names};

use crate::config::problem::ConfigProblem;
use crate::config::types::{Config, TokensEntry};

const IMPLIED_SCOPES_KEY: &str = "auth.tokens.implied_scopes";

/// Which scopes imply which, if nothing is wrong with what is said of them.
pub(super) fn parse_implied_scopes(
    entry: &TokensEntry,
    config: &Config,
    problems: &mut Vec<ConfigProblem>,
) -> Arc<ImpliedScopes> {
    let implied = ImpliedScopes::new(&entry.implied_scopes);
    let implied = implied.map_err(|error| problems.push(ConfigProblem::new(IMPLIED_SCOPES_KEY, error.to_string())));
    if implied.is_ok() {
        problems.extend(find_unused_scopes(entry, config));
    }
    Arc::new(implied.unwrap_or_default())
}

/// Scopes that are implied, though nothing asks for them. Which broader ones there are only the issuer knows.
fn find_unused_scopes(entry: &TokensEntry, config: &Config) -> Vec<ConfigProblem> {
    let requested = required_scopes(config);
    let mut problems = Vec::new();
    for (broad, narrow) in &entry.implied_scopes {
        for (index, scope) in narrow.iter().enumerate() {
            if requested.contains(scope.as_str()) || entry.implied_scopes.contains_key(scope) {
                continue;
            }
            let meant = nearest_names(scope, requested.iter().copied());
            let meant = meant.first().map(|name| format!("; did you mean {name:?}?")).unwrap_or_default();
            let message = format!("nothing asks for the scope {scope:?}: no entry, no role and not auth.oauth{meant}");
            problems.push(ConfigProblem::new(format!("{IMPLIED_SCOPES_KEY}.{broad}[{index}]"), message));
        }
    }
    problems
}

/// The scopes that anything here asks for.
fn required_scopes(config: &Config) -> BTreeSet<&str> {
    let entries = config.tools.iter().map(|entry| &entry.scopes);
    let entries = entries.chain(config.resources.iter().map(|entry| &entry.scopes));
    let entries = entries.chain(config.prompts.iter().map(|entry| &entry.scopes));
    let message = config.auth().oauth.iter().map(|oauth| &oauth.scopes);
    let claims =
        config.roles.iter().flat_map(|role| SCOPE_CLAIMS.iter().filter_map(move |name| role.claims.get(*name)));
    let of_roles = claims.flat_map(|claim| match claim {
        Value::Array(any_of) => any_of.iter().collect::<Vec<_>>(),
        one => vec![one],
    });
    entries.chain(message).flatten().map(String::as_str).chain(of_roles.filter_map(Value::as_str)).collect()
}
