//! Builds the authenticator from the configuration of callers.

mod credentials;

use std::collections::BTreeSet;

use tidegate_auth::{
    AuthenticatorError, AuthenticatorOptions, CertificateRule, CredentialAuthenticator, DevelopmentKey, KeyFile,
    ProxyOptions, Role, TokenOptions,
};
use tidegate_core::{AllowedNames, Grants};
use tidegate_tools::DISCOVER_TOOLSET;
use tidegate_transport::http::ProtectedResource;

use super::problem::ConfigProblem;
use super::types::{Config, RoleEntry};
use super::{LoadedConfig, limits};

/// Whether callers must prove who they are.
pub(crate) fn requires_authentication(config: &Config) -> bool {
    config.auth.is_some()
}

/// The authenticator, unless its configuration has errors.
pub(super) fn build_authenticator(
    loaded: &LoadedConfig,
    generation: u64,
    problems: &mut Vec<ConfigProblem>,
    warnings: &mut Vec<String>,
) -> Option<CredentialAuthenticator> {
    let config = &loaded.config;
    let before = problems.len();
    check_roles(config, problems);
    let credential_options = CredentialOptions::read(loaded, problems);
    problems.extend(protected_resource(config).err());
    if problems.len() > before {
        return None;
    }
    warnings.extend(lockout_warning(config).map(str::to_owned));
    warnings.extend(doubtful_settings(config));
    match CredentialAuthenticator::new(authenticator_options(loaded, generation, key_file(loaded), credential_options))
    {
        Ok(credential_authenticator) => Some(credential_authenticator),
        Err(error) => {
            problems.push(ConfigProblem::new("auth", error.to_string()));
            None
        }
    }
}

/// The authenticator of a configuration that is in force, with keys as they are now. Where they cannot be read, none of them
/// admits anybody, and the log says so.
///
/// # Errors
/// None that the configuration did not have when it was entered.
pub(super) fn rebuild_authenticator(
    loaded: &LoadedConfig,
    generation: u64,
) -> Result<CredentialAuthenticator, AuthenticatorError> {
    let mut problems = Vec::new();
    let mut shut = Vec::new();
    let mut credential_options = CredentialOptions::read(loaded, &mut problems);
    // Of what was right once, only the files of tokens can have changed.
    shut.extend(problems.iter().map(|problem| format!("no token: {}", problem.message)));
    let mut keys = key_file(loaded);
    loop {
        match CredentialAuthenticator::new(authenticator_options(
            loaded,
            generation,
            keys.clone(),
            credential_options.clone(),
        )) {
            Err(AuthenticatorError::KeyFile(error)) if keys.take().is_some() => shut.push(format!("no key: {error}")),
            Err(AuthenticatorError::Tokens(error)) if credential_options.tokens.take().is_some() => {
                shut.push(format!("no token: {error}"))
            }
            renewed => {
                for reason in shut {
                    tracing::error!("until this is mended, callers are let in by {reason}");
                }
                return renewed;
            }
        }
    }
}

fn key_file(loaded: &LoadedConfig) -> Option<KeyFile> {
    loaded.config.auth().keys.as_ref().map(|path| KeyFile::new(loaded.resolve(path)))
}

/// How tokens are checked by a configuration that is in force, if they are taken.
pub(crate) fn token_options(loaded: &LoadedConfig) -> Option<TokenOptions> {
    // What is wrong with it was told when it was entered.
    loaded.config.auth().tokens.as_ref().and_then(|entry| credentials::parse_tokens(entry, loaded, &mut Vec::new()))
}

/// What callers may show beside keys.
#[derive(Clone)]
struct CredentialOptions {
    tokens: Option<TokenOptions>,
    certificates: Vec<CertificateRule>,
    proxy: Option<ProxyOptions>,
}

impl CredentialOptions {
    fn read(loaded: &LoadedConfig, problems: &mut Vec<ConfigProblem>) -> Self {
        let auth = loaded.config.auth();
        let tokens = auth.tokens.as_ref().and_then(|entry| credentials::parse_tokens(entry, loaded, problems));
        let certificates = credentials::parse_certificates(&auth.certificates, problems);
        let proxy = auth.proxy.as_ref().and_then(|entry| credentials::parse_proxy(entry, problems));
        Self { tokens, certificates, proxy }
    }
}

fn authenticator_options(
    loaded: &LoadedConfig,
    generation: u64,
    keys: Option<KeyFile>,
    credential_options: CredentialOptions,
) -> AuthenticatorOptions {
    let config = &loaded.config;
    AuthenticatorOptions {
        keys,
        tokens: credential_options.tokens,
        certificates: credential_options.certificates,
        proxy: credential_options.proxy,
        roles: roles(config),
        anonymous: config.auth().anonymous.clone(),
        local: config.auth().local.clone(),
        is_open: !requires_authentication(config),
        generation,
        ..AuthenticatorOptions::default()
    }
}

/// What keeps everybody out whom somebody may have meant to let in.
fn lockout_warning(config: &Config) -> Option<&'static str> {
    let auth = config.auth();
    let lets_in = auth.keys.is_some()
        || auth.tokens.is_some()
        || !auth.certificates.is_empty()
        || auth.proxy.is_some()
        || !auth.anonymous.is_empty();
    if config.auth.is_some() && !lets_in {
        return Some("auth names no keys, no tokens and no anonymous roles: all callers over HTTP are rejected");
    }
    let is_requested = config.tools.iter().any(|tool| !tool.access.is_empty() || !tool.scopes.is_empty());
    (is_requested && !lets_in)
        .then_some("tools demand access, but auth names no keys and no tokens: over HTTP nobody can hold any")
}

/// What is allowed, but hardly meant on a network.
fn doubtful_settings(config: &Config) -> Vec<String> {
    let auth = config.auth();
    let mut doubts = Vec::new();
    if auth.tokens.as_ref().is_some_and(|tokens| tokens.issuer == DevelopmentKey::ISSUER) {
        doubts.push(
            "auth.tokens takes tokens of a development key: whoever has the file of that key is whoever it likes; \
             name a real issuer before others can reach this node"
                .to_owned(),
        );
    }
    if auth.proxy.as_ref().is_some_and(|proxy| proxy.roles_header.is_none()) {
        doubts.push("auth.proxy names no header for roles: who comes through the proxy has none".to_owned());
    }
    let asks_for_certificates = config.server.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some());
    if !auth.certificates.is_empty() && !asks_for_certificates {
        doubts.push(
            "auth.certificates says who shows which certificate, but nobody can show one without server.tls.client_ca"
                .to_owned(),
        );
    }
    let meant = auth.oauth.as_ref().zip(auth.tokens.as_ref());
    if let Some((oauth, tokens)) = meant
        && !tokens.audience.clone().into_vec().contains(&oauth.resource)
    {
        let resource = &oauth.resource;
        doubts.push(format!(
            "clients are told to ask for tokens for {resource} (auth.oauth.resource), which is not among \
             the audiences of auth.tokens"
        ));
    }
    // By this scope, clients and their issuer agree on refresh tokens (MCP 2026-07-28, Authorization, Refresh Tokens).
    let named = credentials::scope_lists(config).into_iter();
    let named = named.filter(|(_, scopes)| scopes.iter().any(|scope| scope == "offline_access"));
    doubts.extend(named.map(|(path, _)| {
        format!(
            "{path} names offline_access, by which clients ask their issuer for refresh tokens: it is no right of this \
             node, and tokens need not carry it; take it out"
        )
    }));
    doubts
}

/// What clients of OAuth are told, if they are told anything.
///
/// # Errors
/// When it leads nowhere.
pub(super) fn protected_resource(config: &Config) -> Result<Option<ProtectedResource>, ConfigProblem> {
    let auth = config.auth();
    let Some(oauth) = &auth.oauth else { return Ok(None) };
    let Some(tokens) = &auth.tokens else {
        let message = "leads clients to tokens, but auth.tokens is missing, which says how they are checked";
        return Err(ConfigProblem::new("auth.oauth", message));
    };
    let servers = match &oauth.authorization_servers {
        none if none.is_empty() => vec![tokens.issuer.clone()],
        servers => servers.clone(),
    };
    let rendered = ProtectedResource::new(oauth.resource.clone(), servers, oauth.scopes.clone());
    rendered.map(Some).map_err(|problem| ConfigProblem::new("auth.oauth", problem))
}

/// The roles and what they grant.
pub(super) fn roles(config: &Config) -> Vec<Role> {
    config.roles.iter().map(|entry| role(entry, config)).collect()
}

/// What a role lets its holders reach.
fn role(entry: &RoleEntry, config: &Config) -> Role {
    let everything = entry.toolsets.iter().any(|name| name == "*");
    let patterns = entry.toolsets.iter().filter_map(|name| config.toolsets.get(name)).flatten().cloned();
    let discover = entry.toolsets.iter().any(|name| name == DISCOVER_TOOLSET).then_some(["find_tool", "call_tool"]);
    let patterns = patterns.chain(discover.into_iter().flatten().map(str::to_owned));
    Role {
        name: entry.name.clone(),
        grants: Grants {
            access: AllowedNames::matching(entry.access.clone()),
            entries: if everything { AllowedNames::Everything } else { AllowedNames::matching(patterns) },
            toolsets: AllowedNames::matching(entry.toolsets.clone()),
            databases: AllowedNames::matching(entry.databases.clone()),
            limits: limits::to_allowance(&entry.limits),
        },
        claims: entry.claims.clone(),
    }
}

/// Names that point nowhere.
fn check_roles(config: &Config, problems: &mut Vec<ConfigProblem>) {
    let roles: BTreeSet<&str> = config.roles.iter().map(|role| role.name.as_str()).collect();
    let unknown_role = |path: String, name: &str| {
        let known = roles.iter().copied().collect::<Vec<_>>().join(", ");
        let known =
            if known.is_empty() { "none is declared under roles".to_owned() } else { format!("known are {known}") };
        ConfigProblem::new(path, format!("there is no role {name:?}; {known}"))
    };
    let auth = config.auth();
    let named = [("anonymous".to_owned(), &auth.anonymous)].into_iter();
    let named = named.chain(auth.local.iter().map(|names| ("local".to_owned(), names)));
    let certificates = auth.certificates.iter().enumerate();
    let named = named.chain(certificates.map(|(index, entry)| (format!("certificates[{index}].roles"), &entry.roles)));
    for (member, names) in named {
        let unknown = names.iter().enumerate().filter(|(_, name)| !roles.contains(name.as_str()));
        problems.extend(unknown.map(|(index, name)| unknown_role(format!("auth.{member}[{index}]"), name)));
    }
    let mut names = BTreeSet::new();
    for (index, role) in config.roles.iter().enumerate() {
        if !names.insert(&role.name) {
            problems.push(ConfigProblem::new(
                format!("roles[{index}].name"),
                format!("{} is the name of another", role.name),
            ));
        }
        if role.name.is_empty() {
            problems.push(ConfigProblem::new(format!("roles[{index}].name"), "is empty"));
        }
        for (position, name) in role.toolsets.iter().enumerate() {
            if name != "*" && name != DISCOVER_TOOLSET && !config.toolsets.contains_key(name) {
                let known: Vec<&str> =
                    config.toolsets.keys().map(String::as_str).filter(|name| *name != DISCOVER_TOOLSET).collect();
                let message = format!(
                    "there is no toolset {name:?}; known are {}, {DISCOVER_TOOLSET}, and \"*\" for everything",
                    known.join(", ")
                );
                problems.push(ConfigProblem::new(format!("roles[{index}].toolsets[{position}]"), message));
            }
        }
    }
}
