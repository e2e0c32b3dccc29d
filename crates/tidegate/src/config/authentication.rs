//! Builds the authenticator from the configuration of callers.

mod credentials;

use std::collections::BTreeSet;

use tidegate_auth::{
    AuthenticatorError, AuthenticatorOptions, CertificateRule, CredentialAuthenticator, DevelopmentIdentity,
    DevelopmentKey, KeyFile, ProxyOptions, Role, TokenOptions,
};
use tidegate_core::{AllowedNames, Grants};
use tidegate_tools::DISCOVER_TOOLSET;
use tidegate_transport::http::ProtectedResource;

use super::problem::ConfigProblem;
use super::problems::Problems;
use super::types::{Config, DevelopmentConfig, RoleConfig};
use super::{LoadedConfig, limits};

pub(super) fn requires_authentication(config: &Config) -> bool {
    config.auth.is_some()
}

/// Whether callers prove who they are, so that the server may listen beyond this machine.
pub(crate) fn verifies_callers(config: &Config) -> bool {
    config.auth.as_ref().is_some_and(|auth| auth.development.is_none())
}

pub(super) fn build_authenticator(
    loaded: &LoadedConfig,
    generation: u64,
    problems: &Problems,
) -> Option<CredentialAuthenticator> {
    let config = &loaded.config;
    let before = problems.len();
    check_roles(config, problems);
    check_development(config, problems);
    let credential_options = CredentialOptions::read(loaded, problems);
    problems.extend(protected_resource(config).err());
    if problems.len() > before {
        return None;
    }
    problems.warn(lockout_warning(config).map(str::to_owned));
    problems.warn(doubtful_settings(config));
    match CredentialAuthenticator::new(authenticator_options(loaded, generation, key_file(loaded), credential_options))
    {
        Ok(credential_authenticator) => Some(credential_authenticator),
        Err(error) => {
            problems.add("auth", error.to_string());
            None
        }
    }
}

/// Builds the authenticator with the current keys. Unreadable keys or tokens are not valid, and an error is logged.
pub(super) fn rebuild_authenticator(
    loaded: &LoadedConfig,
    generation: u64,
) -> Result<CredentialAuthenticator, AuthenticatorError> {
    let problems = Problems::default();
    let mut disabled = Vec::new();
    let mut credential_options = CredentialOptions::read(loaded, &problems);
    // The configuration was valid when it was applied; only the files of tokens can have become invalid.
    disabled.extend(problems.into_vec().iter().map(|problem| format!("tokens are rejected: {}", problem.message)));
    let mut keys = key_file(loaded);
    loop {
        match CredentialAuthenticator::new(authenticator_options(
            loaded,
            generation,
            keys.clone(),
            credential_options.clone(),
        )) {
            Err(AuthenticatorError::KeyFile(error)) if keys.take().is_some() => {
                disabled.push(format!("keys are rejected: {error}"));
            }
            Err(AuthenticatorError::Tokens(error)) if credential_options.tokens.take().is_some() => {
                disabled.push(format!("tokens are rejected: {error}"));
            }
            rebuilt => {
                for reason in disabled {
                    tracing::error!("until this is corrected, {reason}");
                }
                return rebuilt;
            }
        }
    }
}

fn key_file(loaded: &LoadedConfig) -> Option<KeyFile> {
    loaded.config.auth().keys.as_ref().map(|path| KeyFile::new(loaded.resolve(path)))
}

pub(crate) fn token_options(loaded: &LoadedConfig) -> Option<TokenOptions> {
    let problems = Problems::default();
    loaded.config.auth().tokens.as_ref().and_then(|entry| credentials::parse_tokens(entry, loaded, &problems))
}

#[derive(Clone)]
struct CredentialOptions {
    tokens: Option<TokenOptions>,
    certificates: Vec<CertificateRule>,
    proxy: Option<ProxyOptions>,
}

impl CredentialOptions {
    fn read(loaded: &LoadedConfig, problems: &Problems) -> Self {
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
        development: config.auth().development.as_ref().map(to_development_identity),
        roles: roles(config),
        anonymous: config.auth().anonymous.clone(),
        local: config.auth().local.clone(),
        is_open: !requires_authentication(config),
        generation,
        ..AuthenticatorOptions::default()
    }
}

fn check_development(config: &Config, problems: &Problems) {
    let auth = config.auth();
    let Some(development) = &auth.development else { return };
    if development.user.is_empty() {
        problems.add("auth.development.user", "is empty");
    }
    if auth.proxy.is_some() {
        // The requests that a proxy on this machine sends on come from this machine.
        problems.add("auth.development", "cannot be combined with auth.proxy; remove one of them");
    }
}

fn to_development_identity(entry: &DevelopmentConfig) -> DevelopmentIdentity {
    let DevelopmentConfig { user, tenant, roles } = entry.clone();
    DevelopmentIdentity { user, tenant, roles }
}

fn lockout_warning(config: &Config) -> Option<&'static str> {
    let auth = config.auth();
    let has_credentials = auth.keys.is_some()
        || auth.tokens.is_some()
        || !auth.certificates.is_empty()
        || auth.proxy.is_some()
        || auth.development.is_some()
        || !auth.anonymous.is_empty();
    if config.auth.is_some() && !has_credentials {
        return Some("auth names no keys, no tokens and no anonymous roles: all callers over HTTP are rejected");
    }
    let requires_access = config.tools.iter().any(|tool| !tool.access.is_empty() || !tool.scopes.is_empty());
    (requires_access && !has_credentials)
        .then_some("tools require access names, but auth has no keys and no tokens: callers over HTTP cannot have any")
}

fn doubtful_settings(config: &Config) -> Vec<String> {
    let auth = config.auth();
    let mut warnings = Vec::new();
    if auth.tokens.as_ref().is_some_and(|tokens| tokens.issuer == DevelopmentKey::ISSUER) {
        warnings.push(
            "auth.tokens accepts tokens of a development key: anyone with the file of that key can impersonate any \
             principal; name a real issuer before others can reach this server"
                .to_owned(),
        );
    }
    if let Some(development) = &auth.development {
        warnings.push(format!(
            "auth.development: every program on this machine that sends no credentials calls as {}; remove it before \
             others can reach this server, also through a proxy or a tunnel",
            development.user
        ));
    }
    if auth.proxy.as_ref().is_some_and(|proxy| proxy.roles_header.is_none() && proxy.default_roles.is_empty()) {
        warnings.push(
            "auth.proxy has neither roles_header nor default_roles: callers through the proxy have no roles".to_owned(),
        );
    }
    let requests_certificates = config.server.tls_entries().iter().any(|(_, tls)| tls.client_ca.is_some());
    if !auth.certificates.is_empty() && !requests_certificates {
        warnings.push("auth.certificates has no effect without server.tls.client_ca".to_owned());
    }
    if let Some((oauth, tokens)) = auth.oauth.as_ref().zip(auth.tokens.as_ref())
        && !tokens.audience.clone().into_vec().contains(&oauth.resource)
    {
        let resource = &oauth.resource;
        warnings.push(format!(
            "clients request tokens for {resource} (auth.oauth.resource), which is not among the audiences of \
             auth.tokens"
        ));
    }
    // By this scope, clients and their issuer agree on refresh tokens (MCP 2026-07-28, Authorization, Refresh Tokens).
    let lists = credentials::scope_lists(config).into_iter();
    let lists = lists.filter(|(_, scopes)| scopes.iter().any(|scope| scope == "offline_access"));
    warnings.extend(lists.map(|(path, _)| {
        format!(
            "{path} contains offline_access, with which clients request refresh tokens from their issuer: it is no \
             right of this server, and tokens need not have it; remove it"
        )
    }));
    warnings
}

pub(super) fn protected_resource(config: &Config) -> Result<Option<ProtectedResource>, ConfigProblem> {
    let auth = config.auth();
    let Some(oauth) = &auth.oauth else { return Ok(None) };
    let Some(tokens) = &auth.tokens else {
        let message = "needs auth.tokens, which states how tokens are checked";
        return Err(ConfigProblem::new("auth.oauth", message));
    };
    let servers = match &oauth.authorization_servers {
        servers if servers.is_empty() => vec![tokens.issuer.clone()],
        servers => servers.clone(),
    };
    let metadata = ProtectedResource::new(oauth.resource.clone(), servers, oauth.scopes.clone());
    metadata.map(Some).map_err(|problem| ConfigProblem::new("auth.oauth", problem))
}

pub(super) fn roles(config: &Config) -> Vec<Role> {
    config.roles.iter().map(|entry| role(entry, config)).collect()
}

fn role(entry: &RoleConfig, config: &Config) -> Role {
    let everything = entry.toolsets.iter().any(|name| name == "*");
    let patterns = entry.toolsets.iter().filter_map(|name| config.toolsets.get(name)).flatten().cloned();
    Role {
        name: entry.name.clone(),
        grants: Grants {
            access: AllowedNames::matching(entry.access.clone()),
            entries: if everything { AllowedNames::Everything } else { AllowedNames::matching(patterns) },
            toolsets: AllowedNames::matching(entry.toolsets.clone()),
            databases: AllowedNames::matching(entry.databases.clone()),
            ingest: AllowedNames::matching(entry.ingest.clone()),
            limits: limits::to_level_limits(&entry.limits),
        },
        claims: entry.claims.clone(),
    }
}

pub(crate) fn unknown_role_message(name: &str, known_names: &[&str]) -> String {
    match known_names {
        [] => format!("there is no role {name:?}; none is declared under roles"),
        known_names => format!("there is no role {name:?}; the roles are {}", known_names.join(", ")),
    }
}

fn check_roles(config: &Config, problems: &Problems) {
    let roles: BTreeSet<&str> = config.roles.iter().map(|role| role.name.as_str()).collect();
    let known_names: Vec<&str> = roles.iter().copied().collect();
    let auth = config.auth();
    let named = [("anonymous".to_owned(), &auth.anonymous)].into_iter();
    let named = named.chain(auth.local.iter().map(|names| ("local".to_owned(), names)));
    let named = named.chain(auth.proxy.iter().map(|proxy| ("proxy.default_roles".to_owned(), &proxy.default_roles)));
    let development = auth.development.iter().map(|identity| ("development.roles".to_owned(), &identity.roles));
    let named = named.chain(development);
    let certificates = auth.certificates.iter().enumerate();
    let named = named.chain(certificates.map(|(index, entry)| (format!("certificates[{index}].roles"), &entry.roles)));
    for (member, names) in named {
        for (index, name) in names.iter().enumerate().filter(|(_, name)| !roles.contains(name.as_str())) {
            problems.add(format_args!("auth.{member}[{index}]"), unknown_role_message(name, &known_names));
        }
    }
    let mut names = BTreeSet::new();
    for (index, role) in config.roles.iter().enumerate() {
        let problems = problems.at(format_args!("roles[{index}]"));
        if !names.insert(&role.name) {
            problems.add("name", format!("{} is the name of another", role.name));
        }
        if role.name.is_empty() {
            problems.add("name", "is empty");
        }
        for (position, name) in role.ingest.iter().enumerate().filter(|(_, name)| *name != "*" && !name.contains('.')) {
            let message =
                format!("{name:?} is no database.table; write {name}.* for all tables of the database {name}");
            problems.add(format_args!("ingest[{position}]"), message);
        }
        for (position, name) in role.toolsets.iter().enumerate() {
            if name != "*" && name != DISCOVER_TOOLSET && !config.toolsets.contains_key(name) {
                let declared = config.toolsets.keys().map(String::as_str).filter(|name| *name != DISCOVER_TOOLSET);
                let known_names: Vec<&str> = declared.chain([DISCOVER_TOOLSET]).collect();
                let known_names = known_names.join(", ");
                let message =
                    format!("there is no toolset {name:?}; the toolsets are {known_names}, and \"*\" for everything");
                problems.add(format_args!("toolsets[{position}]"), message);
            }
        }
    }
}
