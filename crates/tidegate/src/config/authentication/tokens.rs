//! How tokens are checked.

use std::path::Path;

use tidegate_auth::{IntrospectionOptions, TokenAlgorithm, TokenKey, TokenOptions, UnknownAlgorithm};

use crate::config::LoadedConfig;
use crate::config::problem::ConfigProblem;
use crate::config::types::TokensEntry;

/// How tokens are checked, if nothing is wrong with what is said of it.
pub(super) fn parse_tokens(
    entry: &TokensEntry,
    loaded: &LoadedConfig,
    problems: &mut Vec<ConfigProblem>,
) -> Option<TokenOptions> {
    let key = parse_token_key(entry, loaded, problems)?;
    let mut algorithms: Vec<TokenAlgorithm> = Vec::new();
    for (index, name) in entry.algorithms.iter().enumerate() {
        match name.parse() {
            Ok(algorithm) => algorithms.push(algorithm),
            Err(error) => {
                let error: UnknownAlgorithm = error;
                problems.push(ConfigProblem::new(format!("auth.tokens.algorithms[{index}]"), error.to_string()));
            }
        }
    }
    let mut options = TokenOptions::new(key, entry.issuer.clone(), entry.audience.clone().into_vec(), algorithms);
    if let Some(leeway) = entry.leeway {
        // A part of a second counts as a whole one.
        options.leeway_seconds = u32::try_from(leeway.0.as_millis().div_ceil(1_000)).unwrap_or(u32::MAX);
    }
    options.tenant_claim.clone_from(&entry.tenant_claim);
    options.implied_scopes = super::scopes::parse_implied_scopes(entry, &loaded.config, problems);
    Some(options)
}

/// The one thing that tokens are checked with.
fn parse_token_key(entry: &TokensEntry, loaded: &LoadedConfig, problems: &mut Vec<ConfigProblem>) -> Option<TokenKey> {
    let mut read = |member: &str, path: &Path| {
        let whole = loaded.resolve(path);
        let text = std::fs::read_to_string(&whole);
        text.map_err(|error| {
            let message = format!("{} cannot be read: {error}", whole.display());
            problems.push(ConfigProblem::new(format!("auth.tokens.{member}"), message));
        })
        .ok()
    };
    let output = [
        entry.jwks.is_some(),
        entry.jwks_url.is_some(),
        entry.discovery,
        entry.public_key.is_some(),
        entry.secret.is_some(),
        entry.introspection.is_some(),
    ];
    if output.iter().filter(|is_reported| **is_reported).count() == 1 {
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
            let (url, client_id) = (introspection_entry.url.clone(), introspection_entry.client_id.clone());
            let client_secret = introspection_entry.client_secret.0.clone();
            let needs_audience = introspection_entry.needs_audience.unwrap_or(true);
            return Some(TokenKey::Introspection(IntrospectionOptions {
                url,
                client_id,
                client_secret,
                needs_audience,
            }));
        }
        return Some(TokenKey::Discovery);
    }
    let message = "wants exactly one of jwks, jwks_url, discovery, public_key, secret and introspection: what tokens \
                   are checked with";
    problems.push(ConfigProblem::new("auth.tokens", message));
    None
}
