//! Warnings about a valid configuration that probably does not do what its author expects.

use std::sync::{Arc, LazyLock};

use tidegate_auth::KeyFile;
use tidegate_core::{AllowedNames, NamePattern, misspelled_name, suggestion};
use tidegate_query::Database;
use tidegate_runtime::Snapshot;
use tidegate_tools::{STORED_RESULT_NAMES, entries_of_every_server};

use super::types::{Config, RoleChoice};
use super::{LoadedConfig, authentication, names};

/// The claims that all callers have.
const COMMON_CLAIMS: [&str; 2] = ["roles", "sub"];
/// The claim that callers without a token can have too.
const TENANT_CLAIM: &str = "tenant";

pub(super) fn find_warnings(
    loaded: &LoadedConfig,
    built_in: &AllowedNames,
    databases: &[Arc<dyn Database>],
) -> Vec<String> {
    let names: Vec<&str> = databases.iter().map(|database| database.name()).collect();
    let mut warnings = role_warnings(&loaded.config, built_in, &names);
    warnings.extend(missing_claim_warnings(loaded));
    if loaded.has_no_keys() {
        let file = loaded.path().display();
        warnings.push(format!("{file} is empty: it declares neither databases nor tools"));
    }
    warnings
}

/// The built-in tools that read the databases of their caller. Every server has the same, so they are built once.
static TABLE_READERS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let every_server = entries_of_every_server().build();
    let readers = every_server.entries().filter(|entry| entry.access.reads_caller_databases);
    readers.map(|entry| entry.name.to_owned()).collect()
});

/// Roles with built-in tools but without databases, and roles that name databases other than those in `databases`.
fn role_warnings(config: &Config, built_in: &AllowedNames, databases: &[&str]) -> Vec<String> {
    let mut warnings = Vec::new();
    for (index, (entry, role)) in config.roles.iter().zip(authentication::roles(config)).enumerate() {
        let mut tools = TABLE_READERS.iter().filter(|tool| built_in.includes(tool));
        if let Some(tool) = tools.find(|tool| role.grants.entries.includes(tool))
            && entry.databases.is_empty()
            && !databases.is_empty()
        {
            warnings.push(format!(
                "roles[{index}]: the role {:?} has tools such as {tool}, but no databases, so they find no tables; add \
                 databases: ['*'], or their names",
                entry.name
            ));
        }
        for (position, name) in entry.databases.iter().enumerate() {
            let pattern = NamePattern::new(name);
            if name != "*" && !databases.iter().any(|database| pattern.matches(database)) {
                let advice = match misspelled_name(name, databases.iter().copied()) {
                    Some(near) => format!("did you mean {near:?}?"),
                    None if databases.is_empty() => "there are none".to_owned(),
                    None => format!("there are {}", databases.join(", ")),
                };
                warnings.push(format!("roles[{index}].databases[{position}]: there is no database {name:?}; {advice}"));
            }
        }
    }
    warnings
}

/// Entries of toolsets that match nothing in `snapshot`. What a database declares may be there later.
pub(super) fn toolset_warnings(config: &Config, snapshot: &Snapshot) -> Vec<String> {
    // Commands that check a configuration neither store results nor write rows, and so lack the entries for both.
    let elsewhere = STORED_RESULT_NAMES.into_iter().chain(names::row_tools(config));
    let names: Vec<&str> =
        elsewhere.map(|name| -> &str { name }).chain(snapshot.entries().map(|entry| entry.name)).collect();
    let mut warnings = Vec::new();
    for (toolset, entries) in &config.toolsets {
        for (position, entry) in entries.iter().enumerate() {
            let pattern = NamePattern::new(entry);
            if entry == "*" || names.iter().any(|name| pattern.matches(name)) {
                continue;
            }
            let nearest = if pattern.is_glob() { String::new() } else { suggestion(entry, names.iter().copied()) };
            warnings.push(format!(
                "toolsets.{toolset}[{position}]: {entry:?} matches no tool, resource or prompt{nearest}"
            ));
        }
    }
    warnings
}

/// Warnings about settings and roles from a claim that no caller has.
fn missing_claim_warnings(loaded: &LoadedConfig) -> Vec<String> {
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
