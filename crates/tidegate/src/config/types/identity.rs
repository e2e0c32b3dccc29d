//! Roles, and how callers prove who they are.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::{AllowanceEntry, Config};
use crate::config::quantities::{OneOrMany, SecretText, Time};

/// What is said where nothing is.
static NOTHING: AuthEntry = AuthEntry { keys: None, tokens: None, anonymous: Vec::new(), local: None };

impl Config {
    /// How callers prove who they are; nothing is said if nothing stands there.
    pub(crate) fn auth(&self) -> &AuthEntry {
        self.auth.as_ref().unwrap_or(&NOTHING)
    }
}

/// An `auth:` with nothing behind it stands there all the same: whoever takes the lines below it away for a moment
/// must not open the node.
pub(super) fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<AuthEntry>, D::Error> {
    Option::deserialize(deserializer).map(|entry| Some(entry.unwrap_or_default()))
}

/// What callers of a role may reach.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RoleEntry {
    /// The name that keys carry.
    pub(crate) name: String,
    /// Access names that the role holds; patterns with * are understood.
    #[serde(default)]
    pub(crate) access: Vec<String>,
    /// Toolsets whose tools, resources and prompts the role reaches; "*" for everything.
    #[serde(default)]
    pub(crate) toolsets: Vec<String>,
    /// Databases that the role may ask with the built-in tools; "*" for all.
    #[serde(default)]
    pub(crate) databases: Vec<String>,
    /// Tokens with all of these claims have the role.
    #[serde(default)]
    pub(crate) claims: Map<String, Value>,
    /// What each of its holders may have, in the stead of what stands under limits.principal. Of several roles the largest
    /// counts.
    #[serde(default)]
    pub(crate) limits: AllowanceEntry,
}

/// How callers prove who they are.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AuthEntry {
    /// The file of API keys, which tidegate key add writes; relative to this file.
    pub(crate) keys: Option<PathBuf>,
    /// Signed tokens.
    pub(crate) tokens: Option<TokensEntry>,
    /// Roles of callers who show nothing; without any they are refused.
    pub(crate) anonymous: Vec<String>,
    /// Roles of the user who starts the process (stdio, command line); everything unless said.
    pub(crate) local: Option<Vec<String>>,
}

/// Signed tokens (JWT) that are accepted.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TokensEntry {
    /// Who must have issued them (iss).
    pub(crate) issuer: String,
    /// Whom they must be for (aud); one of these.
    pub(crate) audience: OneOrMany,
    /// Algorithms that are accepted, such as RS256, ES256 or EdDSA.
    pub(crate) algorithms: Vec<String>,
    /// A file of keys (JWKS), relative to this file.
    pub(crate) jwks: Option<PathBuf>,
    /// A public key file (PEM), relative to this file.
    pub(crate) public_key: Option<PathBuf>,
    /// A shared secret, for HS256 and its kin. Write it as ${VARIABLE} or ${file:PATH}.
    pub(crate) secret: Option<SecretText>,
    /// How far clocks may differ; 30s unless said.
    pub(crate) leeway: Option<Time>,
    /// The claim that names the caller's tenant.
    pub(crate) tenant_claim: Option<String>,
}
