//! The claims of callers that settings and roles of databases are set from, and whether a caller can have them.

use tidegate_auth::KeyFile;

use super::LoadedConfig;
use super::types::{Config, RoleChoice};

/// The claims that all callers have.
const COMMON_CLAIMS: [&str; 2] = ["roles", "sub"];
/// The claim that callers without a token can have too.
const TENANT_CLAIM: &str = "tenant";

/// Warnings about settings and roles from a claim that no caller has.
pub(super) fn missing_claim_warnings(loaded: &LoadedConfig) -> Vec<String> {
    let mut warnings = Vec::new();
    for (index, entry) in loaded.config.databases.iter().enumerate() {
        for (setting, claim) in entry.used_keys().settings.into_iter().flatten() {
            if let Some(reason) = missing_reason(claim, loaded) {
                let path = format!("databases[{index}].settings.{setting}");
                warnings.push(format!("{path}: the setting is empty for all callers: {reason}"));
            }
        }
        if let Some(RoleChoice::Chosen(chosen)) = entry.used_keys().role
            && let Some(claim) = &chosen.claim
            && let Some(reason) = missing_reason(claim, loaded)
        {
            let effect = match &chosen.default {
                Some(role) => format!("all callers get the default {role:?}"),
                None => "all callers are refused".to_owned(),
            };
            warnings.push(format!("databases[{index}].role: {effect}: {reason}"));
        }
    }
    warnings
}

/// Why no caller has `claim`; `None` if a caller may have it.
fn missing_reason(claim: &str, loaded: &LoadedConfig) -> Option<String> {
    let auth = loaded.config.auth();
    // The issuer decides which claims its tokens have.
    if auth.tokens.is_some() || COMMON_CLAIMS.contains(&claim) {
        return None;
    }
    if claim != TENANT_CLAIM {
        let known = "without auth.tokens, callers have only sub, roles and tenant";
        return Some(format!("no caller has the claim {claim:?}; {known}"));
    }
    let has_tenant = auth.certificates.iter().any(|certificate| certificate.tenant.is_some())
        || auth.proxy.as_ref().is_some_and(|proxy| proxy.tenant_header.is_some())
        || keys_may_have_tenant(loaded);
    (!has_tenant).then(|| "no caller has a tenant; tidegate key add with --tenant makes a key that has one".to_owned())
}

/// Whether a key has a tenant, or may get one: there is no key yet, or the file cannot be read, which is reported elsewhere.
fn keys_may_have_tenant(loaded: &LoadedConfig) -> bool {
    let Some(path) = &loaded.config.auth().keys else { return false };
    let Ok(keys) = KeyFile::new(loaded.resolve(path)).list() else { return true };
    keys.is_empty() || keys.iter().any(|key| key.tenant.is_some())
}

/// The settings of `database` that are empty for callers without their claim, with the claims.
pub(crate) fn optional_settings(config: &Config, database: &str) -> Vec<String> {
    let entries = config.databases.iter().filter(|entry| entry.name == database);
    let settings = entries.filter_map(|entry| entry.used_keys().settings).flatten();
    let optional = settings.filter(|(_, claim)| !COMMON_CLAIMS.contains(&claim.as_str()));
    optional.map(|(setting, claim)| format!("{setting} ({claim})")).collect()
}
