//! Credentials beside keys: tokens and their scopes, client certificates, and a proxy that authenticates callers.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use tidegate_auth::{
    CertificateName, CertificateRule, IntrospectionOptions, ProxyOptions, TokenKey, TokenOptions, parse_trusted_network,
};
use tidegate_core::{ImpliedScopes, SCOPE_CLAIMS, nearest_names};
use tidegate_tools::DISCOVER_TOOLSET;
use tidegate_transport::http::ProtectedResource;

use crate::config::LoadedConfig;
use crate::config::problems::Problems;
use crate::config::types::{CertificateConfig, Config, ProxyConfig, TokensConfig};

const IMPLIED_SCOPES_KEY: &str = "auth.tokens.implied_scopes";

pub(super) fn parse_tokens(entry: &TokensConfig, loaded: &LoadedConfig, problems: &Problems) -> Option<TokenOptions> {
    let key = parse_token_key(entry, loaded, problems)?;
    let algorithms = problems.parse_items("auth.tokens.algorithms", &entry.algorithms, |name| name.parse());
    let audiences = accepted_audiences(entry, &loaded.config);
    let mut options = TokenOptions::new(key, entry.issuer.clone(), audiences, algorithms);
    if let Some(leeway) = entry.leeway {
        // A part of a second counts as a whole one.
        options.leeway_seconds = u32::try_from(leeway.0.as_millis().div_ceil(1_000)).unwrap_or(u32::MAX);
    }
    options.tenant_claim.clone_from(&entry.tenant_claim);
    options.implied_scopes = parse_implied_scopes(entry, &loaded.config, problems);
    Some(options)
}

/// The configured audiences. With the URL of the whole server, those of its toolsets are accepted, too: a client that
/// connects to a toolset requests its token for that URL.
fn accepted_audiences(entry: &TokensConfig, config: &Config) -> Vec<String> {
    let mut audiences = entry.audience.clone().into_vec();
    let auth = config.auth();
    if let Some(oauth) = auth.oauth.as_ref().filter(|oauth| audiences.contains(&oauth.resource)) {
        let toolsets = config.toolsets.keys().cloned().chain([DISCOVER_TOOLSET.to_owned()]);
        audiences.extend(ProtectedResource::endpoint_urls(&oauth.resource, toolsets));
    }
    audiences
}

/// The key that tokens are checked with; exactly one must be configured.
fn parse_token_key(entry: &TokensConfig, loaded: &LoadedConfig, problems: &Problems) -> Option<TokenKey> {
    let read = |member: &str, path: &Path| {
        let path = loaded.resolve(path);
        let text = std::fs::read_to_string(&path);
        text.map_err(|error| {
            let message = format!("{} cannot be read: {error}", path.display());
            problems.add(format_args!("auth.tokens.{member}"), message);
        })
        .ok()
    };
    let configured_keys = [
        entry.jwks.is_some(),
        entry.jwks_url.is_some(),
        entry.discovery,
        entry.public_key.is_some(),
        entry.secret.is_some(),
        entry.introspection.is_some(),
    ];
    if configured_keys.iter().filter(|is_set| **is_set).count() == 1 {
        if let Some(path) = &entry.jwks {
            return read("jwks", path).map(TokenKey::Jwks);
        }
        if let Some(path) = &entry.public_key {
            return read("public_key", path).map(TokenKey::PublicKeyPem);
        }
        if let Some(url) = &entry.jwks_url {
            return Some(TokenKey::JwksUrl(url.clone()));
        }
        if let Some(secret) = &entry.secret {
            return Some(TokenKey::Secret(secret.0.clone()));
        }
        if let Some(introspection_entry) = &entry.introspection {
            return Some(TokenKey::Introspection(IntrospectionOptions {
                url: introspection_entry.url.clone(),
                client_id: introspection_entry.client_id.clone(),
                client_secret: introspection_entry.client_secret.0.clone(),
                needs_audience: introspection_entry.needs_audience.unwrap_or(true),
            }));
        }
        return Some(TokenKey::Discovery);
    }
    let message = "needs exactly one of jwks, jwks_url, discovery, public_key, secret and introspection, to verify \
                   tokens";
    problems.add("auth.tokens", message);
    None
}

fn parse_implied_scopes(entry: &TokensConfig, config: &Config, problems: &Problems) -> Arc<ImpliedScopes> {
    let implied = ImpliedScopes::new(&entry.implied_scopes);
    let implied = implied.map_err(|error| problems.add(IMPLIED_SCOPES_KEY, error.to_string()));
    if implied.is_ok() {
        check_used_scopes(entry, config, problems);
    }
    Arc::new(implied.unwrap_or_default())
}

/// Reports implied scopes that nothing requires. Broader scopes are not checked, because the issuer defines them.
fn check_used_scopes(entry: &TokensConfig, config: &Config, problems: &Problems) {
    let requested = required_scopes(config);
    for (broad, narrow) in &entry.implied_scopes {
        for (index, scope) in narrow.iter().enumerate() {
            if requested.contains(scope.as_str()) || entry.implied_scopes.contains_key(scope) {
                continue;
            }
            let meant = nearest_names(scope, requested.iter().copied());
            let meant = meant.first().map(|name| format!("; did you mean {name:?}?")).unwrap_or_default();
            let message = format!("nothing requires the scope {scope:?}: no entry, no role and not auth.oauth{meant}");
            problems.add(format_args!("{IMPLIED_SCOPES_KEY}.{broad}[{index}]"), message);
        }
    }
}

fn required_scopes(config: &Config) -> BTreeSet<&str> {
    let lists = scope_lists(config).into_iter().flat_map(|(_, scopes)| scopes);
    let claims =
        config.roles.iter().flat_map(|role| SCOPE_CLAIMS.iter().filter_map(move |name| role.claims.get(*name)));
    let of_roles = claims.flat_map(|claim| match claim {
        Value::Array(any_of) => any_of.iter().collect::<Vec<_>>(),
        one => vec![one],
    });
    lists.map(String::as_str).chain(of_roles.filter_map(Value::as_str)).collect()
}

pub(super) fn scope_lists(config: &Config) -> Vec<(String, &[String])> {
    let at = |list: &str, index: usize| format!("{list}[{index}].scopes");
    let oauth = config.auth().oauth.iter().map(|oauth| ("auth.oauth.scopes".to_owned(), &oauth.scopes[..]));
    let tools = config.tools.iter().enumerate().map(|(index, entry)| (at("tools", index), &entry.scopes[..]));
    let resources = config.resources.iter().enumerate();
    let resources = resources.map(|(index, entry)| (at("resources", index), &entry.scopes[..]));
    let prompts = config.prompts.iter().enumerate().map(|(index, entry)| (at("prompts", index), &entry.scopes[..]));
    oauth.chain(tools).chain(resources).chain(prompts).collect()
}

pub(super) fn parse_certificates(entries: &[CertificateConfig], problems: &Problems) -> Vec<CertificateRule> {
    let mut rules = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let problems = problems.at(format_args!("auth.certificates[{index}]"));
        let holds = match (&entry.subject, &entry.alternative_name) {
            (Some(subject), None) => CertificateName::Subject(subject.clone()),
            (None, Some(name)) => CertificateName::AlternativeName(name.clone()),
            _ => {
                let message = "needs exactly one of subject and alternative_name of the certificate";
                problems.add("", message);
                continue;
            }
        };
        if let CertificateName::AlternativeName(name) = &holds
            && !["dns:", "email:", "ip:", "uri:"].iter().any(|prefix| name.starts_with(prefix))
        {
            let message = format!("{name:?} needs a prefix: dns:, email:, ip: or uri:");
            problems.add("alternative_name", message);
        }
        let (name, roles, tenant) = (entry.name.clone(), entry.roles.clone(), entry.tenant.clone());
        rules.push(CertificateRule { name, certificate_name: holds, roles, tenant });
    }
    rules
}

pub(super) fn parse_proxy(entry: &ProxyConfig, problems: &Problems) -> Option<ProxyOptions> {
    let before = problems.len();
    let networks = problems.parse_items("auth.proxy.networks", &entry.networks, parse_trusted_network);
    let (user, tenant, roles) = (entry.user_header.clone(), entry.tenant_header.clone(), entry.roles_header.clone());
    let default_roles = entry.default_roles.clone();
    (problems.len() == before).then_some(ProxyOptions { networks, user, tenant, roles, default_roles })
}
