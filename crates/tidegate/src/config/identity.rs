//! From roles, keys and tokens of the file to the gate that callers pass.

use std::collections::BTreeSet;
use std::path::Path;

use tidegate_auth::{Gate, GateError, GateOptions, KeyFile, Role, TokenAlgorithm, TokenKey, TokenOptions};
use tidegate_core::{Allowed, Grants};
use tidegate_tools::DISCOVER;

use super::problem::Problem;
use super::types::{Config, RoleEntry, TokensEntry};
use super::{Loaded, limits};

/// Whether callers must prove who they are.
pub(super) fn is_configured(config: &Config) -> bool {
    config.auth.is_some()
}

/// The gate, if nothing is wrong with what it is made of.
pub(super) fn gate(
    loaded: &Loaded,
    generation: u64,
    problems: &mut Vec<Problem>,
    warnings: &mut Vec<String>,
) -> Option<Gate> {
    let config = &loaded.config;
    let before = problems.len();
    check_roles(config, problems);
    let tokens = config.auth().tokens.as_ref().and_then(|entry| tokens(entry, loaded, problems));
    if problems.len() > before {
        return None;
    }
    warnings.extend(locked_out(config).map(str::to_owned));
    match Gate::new(options(loaded, generation, keys(loaded), tokens)) {
        Ok(gate) => Some(gate),
        Err(error) => {
            problems.push(Problem::new("auth", error.to_string()));
            None
        }
    }
}

/// The gate of a configuration that is in force, with keys as they are now. Where they cannot be read, none of them
/// lets anybody in, and the log says so.
///
/// # Errors
/// None that the configuration did not have when it was entered.
pub(super) fn renewed_gate(loaded: &Loaded, generation: u64) -> Result<Gate, GateError> {
    let mut problems = Vec::new();
    let entry = loaded.config.auth().tokens.as_ref();
    let mut shut = Vec::new();
    let mut tokens = entry.and_then(|entry| tokens(entry, loaded, &mut problems));
    shut.extend(problems.iter().map(|problem| format!("no token: {}", problem.message)));
    let mut keys = keys(loaded);
    loop {
        match Gate::new(options(loaded, generation, keys.clone(), tokens.clone())) {
            Err(GateError::KeyFile(error)) if keys.take().is_some() => shut.push(format!("no key: {error}")),
            Err(GateError::Tokens(error)) if tokens.take().is_some() => shut.push(format!("no token: {error}")),
            renewed => {
                for reason in shut {
                    tracing::error!("until this is mended, callers are let in by {reason}");
                }
                return renewed;
            }
        }
    }
}

fn keys(loaded: &Loaded) -> Option<KeyFile> {
    loaded.config.auth().keys.as_ref().map(|path| KeyFile::new(loaded.resolve(path)))
}

fn options(loaded: &Loaded, generation: u64, keys: Option<KeyFile>, tokens: Option<TokenOptions>) -> GateOptions {
    let config = &loaded.config;
    GateOptions {
        keys,
        tokens,
        roles: roles(config),
        anonymous: config.auth().anonymous.clone(),
        local: config.auth().local.clone(),
        is_open: !is_configured(config),
        generation,
        ..GateOptions::default()
    }
}

/// What keeps everybody out whom somebody may have meant to let in.
fn locked_out(config: &Config) -> Option<&'static str> {
    let auth = config.auth();
    let lets_in = auth.keys.is_some() || auth.tokens.is_some() || !auth.anonymous.is_empty();
    if config.auth.is_some() && !lets_in {
        return Some("auth names no keys, no tokens and no anonymous roles: over HTTP nobody is let in");
    }
    let is_asked_for = config.tools.iter().any(|tool| !tool.access.is_empty());
    (is_asked_for && !lets_in)
        .then_some("tools demand access, but auth names no keys and no tokens: over HTTP nobody can hold any")
}

/// The roles and what they grant.
pub(super) fn roles(config: &Config) -> Vec<Role> {
    config.roles.iter().map(|entry| role(entry, config)).collect()
}

/// What a role lets its holders reach.
fn role(entry: &RoleEntry, config: &Config) -> Role {
    let everything = entry.toolsets.iter().any(|name| name == "*");
    let patterns = entry.toolsets.iter().filter_map(|name| config.toolsets.get(name)).flatten().cloned();
    let discover = entry.toolsets.iter().any(|name| name == DISCOVER).then_some(["find_tool", "call_tool"]);
    let patterns = patterns.chain(discover.into_iter().flatten().map(str::to_owned));
    Role {
        name: entry.name.clone(),
        grants: Grants {
            access: Allowed::matching(entry.access.clone()),
            entries: if everything { Allowed::Everything } else { Allowed::matching(patterns) },
            toolsets: Allowed::matching(entry.toolsets.clone()),
            databases: Allowed::matching(entry.databases.clone()),
            limits: limits::allowance(&entry.limits),
        },
        claims: entry.claims.clone(),
    }
}

/// Names that point nowhere.
fn check_roles(config: &Config, problems: &mut Vec<Problem>) {
    let roles: BTreeSet<&str> = config.roles.iter().map(|role| role.name.as_str()).collect();
    let unknown_role = |path: String, name: &str| {
        let known = roles.iter().copied().collect::<Vec<_>>().join(", ");
        let known =
            if known.is_empty() { "none is declared under roles".to_owned() } else { format!("known are {known}") };
        Problem::new(path, format!("there is no role {name:?}; {known}"))
    };
    let mentioned = config.auth().anonymous.iter().enumerate().map(|(index, name)| ("anonymous", index, name));
    let local = config.auth().local.iter().flatten().enumerate().map(|(index, name)| ("local", index, name));
    let unknown = mentioned.chain(local).filter(|(_, _, name)| !roles.contains(name.as_str()));
    problems.extend(unknown.map(|(member, index, name)| unknown_role(format!("auth.{member}[{index}]"), name)));
    let mut names = BTreeSet::new();
    for (index, role) in config.roles.iter().enumerate() {
        if !names.insert(&role.name) {
            problems
                .push(Problem::new(format!("roles[{index}].name"), format!("{} is the name of another", role.name)));
        }
        if role.name.is_empty() {
            problems.push(Problem::new(format!("roles[{index}].name"), "is empty"));
        }
        for (position, name) in role.toolsets.iter().enumerate() {
            if name != "*" && name != DISCOVER && !config.toolsets.contains_key(name) {
                let known: Vec<&str> =
                    config.toolsets.keys().map(String::as_str).filter(|name| *name != DISCOVER).collect();
                let message = format!(
                    "there is no toolset {name:?}; known are {}, {DISCOVER}, and \"*\" for everything",
                    known.join(", ")
                );
                problems.push(Problem::new(format!("roles[{index}].toolsets[{position}]"), message));
            }
        }
    }
}

fn tokens(entry: &TokensEntry, loaded: &Loaded, problems: &mut Vec<Problem>) -> Option<TokenOptions> {
    let read = |member: &str, path: &Path, problems: &mut Vec<Problem>| {
        let whole = loaded.resolve(path);
        let text = std::fs::read_to_string(&whole);
        text.map_err(|error| {
            let message = format!("{} cannot be read: {error}", whole.display());
            problems.push(Problem::new(format!("auth.tokens.{member}"), message));
        })
        .ok()
    };
    let key = match (&entry.jwks, &entry.public_key, &entry.secret) {
        (Some(path), None, None) => TokenKey::Jwks(read("jwks", path, problems)?),
        (None, Some(path), None) => TokenKey::PublicKeyPem(read("public_key", path, problems)?),
        (None, None, Some(secret)) => TokenKey::Secret(secret.0.clone()),
        _ => {
            let message = "wants exactly one of jwks, public_key and secret: what signatures are checked with";
            problems.push(Problem::new("auth.tokens", message));
            return None;
        }
    };
    let mut algorithms: Vec<TokenAlgorithm> = Vec::new();
    for (index, name) in entry.algorithms.iter().enumerate() {
        match name.parse() {
            Ok(algorithm) => algorithms.push(algorithm),
            Err(error) => {
                let error: tidegate_auth::UnknownAlgorithm = error;
                problems.push(Problem::new(format!("auth.tokens.algorithms[{index}]"), error.to_string()));
            }
        }
    }
    let mut options = TokenOptions::new(key, entry.issuer.clone(), entry.audience.clone().into_vec(), algorithms);
    if let Some(leeway) = entry.leeway {
        options.leeway_seconds = u32::try_from(leeway.0.as_secs()).unwrap_or(u32::MAX);
    }
    options.tenant_claim.clone_from(&entry.tenant_claim);
    Some(options)
}
