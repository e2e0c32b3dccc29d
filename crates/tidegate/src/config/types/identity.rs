//! Roles, and how callers prove who they are.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::{AllowanceEntry, Config};
use crate::config::quantities::{Leeway, OneOrMany, SecretText};

/// What is said where nothing is.
static NO_AUTH: AuthEntry = AuthEntry {
    keys: None,
    tokens: None,
    oauth: None,
    certificates: Vec::new(),
    proxy: None,
    anonymous: Vec::new(),
    local: None,
};

impl Config {
    /// How callers prove who they are; nothing is said if nothing stands there.
    pub(crate) fn auth(&self) -> &AuthEntry {
        self.auth.as_ref().unwrap_or(&NO_AUTH)
    }
}

/// An `auth:` with nothing behind it stands there all the same: whoever takes the lines below it away for a moment
/// must not open the node.
pub(super) fn deserialize_present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<AuthEntry>, D::Error> {
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
    /// Tokens of an issuer.
    pub(crate) tokens: Option<TokensEntry>,
    /// What clients of OAuth are told, so that they find the way to a token by themselves.
    pub(crate) oauth: Option<OauthEntry>,
    /// Certificates of TLS clients (server.tls.client_ca), and who they are; of two that fit, the first counts.
    pub(crate) certificates: Vec<CertificateEntry>,
    /// A proxy that says in headers who calls.
    pub(crate) proxy: Option<ProxyEntry>,
    /// Roles of callers who show nothing; without any they are refused.
    pub(crate) anonymous: Vec<String>,
    /// Roles of the user who starts the process (stdio, command line); everything unless said.
    pub(crate) local: Option<Vec<String>>,
}

/// Tokens of an issuer that are accepted: signed ones (JWT), or any that the issuer is asked about. One of jwks,
/// jwks_url, discovery, public_key, secret and introspection says how they are checked.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TokensEntry {
    /// Who must have issued them (iss).
    pub(crate) issuer: String,
    /// Whom they must be for (aud); one of these.
    pub(crate) audience: OneOrMany,
    /// Algorithms that are accepted, such as RS256, ES256 or Ed25519 (which many issuers
    /// call EdDSA); not needed with introspection.
    #[serde(default)]
    pub(crate) algorithms: Vec<String>,
    /// A file of keys (JWKS), relative to this file.
    pub(crate) jwks: Option<PathBuf>,
    /// The address of the issuer's keys (JWKS), which are fetched again and again.
    pub(crate) jwks_url: Option<String>,
    /// Whether the issuer's own metadata say where its keys are.
    #[serde(default)]
    pub(crate) discovery: bool,
    /// A public key file (PEM), relative to this file.
    pub(crate) public_key: Option<PathBuf>,
    /// A shared secret, for HS256 and its kin. Write it as ${VARIABLE} or ${file:PATH}.
    pub(crate) secret: Option<SecretText>,
    /// Where the issuer is asked about each token, which may then be any text.
    pub(crate) introspection: Option<IntrospectionEntry>,
    /// How far clocks may differ, from 0s to 10m; 30s unless said.
    pub(crate) leeway: Option<Leeway>,
    /// The claim that names the caller's tenant.
    pub(crate) tenant_claim: Option<String>,
    /// Scopes that imply others: {admin: [write], write: [read]}. A token that carries one counts as one that carries all
    /// that it implies, also by way of others.
    #[serde(default)]
    pub(crate) implied_scopes: BTreeMap<String, Vec<String>>,
}

/// Where the issuer is asked about tokens (RFC 7662), and as whom.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct IntrospectionEntry {
    /// The introspection endpoint.
    pub(crate) url: String,
    /// Under which name the issuer knows this node.
    pub(crate) client_id: String,
    /// What proves it. Write it as ${VARIABLE} or ${file:PATH}.
    pub(crate) client_secret: SecretText,
    /// Whether the answer must say for whom the token is (aud); true unless said. Where it is false, a token of which the
    /// issuer does not say so is taken, whatever it was made for.
    pub(crate) needs_audience: Option<bool>,
}

/// What clients of OAuth are told (RFC 9728).
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OauthEntry {
    /// The address of this node as clients write it, such as https://data.example.com/mcp. It is what tokens are for,
    /// so it should be the audience of auth.tokens.
    pub(crate) resource: String,
    /// Where tokens are issued; the issuer of auth.tokens unless said.
    #[serde(default)]
    pub(crate) authorization_servers: Vec<String>,
    /// Scopes that a client should ask for at first. Tools may demand more.
    #[serde(default)]
    pub(crate) scopes: Vec<String>,
}

/// A certificate of a TLS client, and who shows it. One of subject and alternative_name says which.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CertificateEntry {
    /// Who shows it.
    pub(crate) name: String,
    /// Its whole subject, the most specific part first: CN=etl,O=Example.
    pub(crate) subject: Option<String>,
    /// One of its alternative names, with its sort: dns:host, email:address, ip:address or uri:spiffe://example/robot.
    pub(crate) alternative_name: Option<String>,
    /// The roles of whoever shows it.
    #[serde(default)]
    pub(crate) roles: Vec<String>,
    /// The tenant that it belongs to.
    pub(crate) tenant: Option<String>,
}

/// A proxy that has found out who calls and says so in headers. It must take these headers away from what callers send.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProxyEntry {
    /// The addresses or networks that it calls from. From anywhere else the headers count for nothing.
    pub(crate) networks: Vec<String>,
    /// The header that names the caller.
    pub(crate) user_header: String,
    /// The header that names the caller's tenant.
    pub(crate) tenant_header: Option<String>,
    /// The header that names the caller's roles, with commas between them; without it callers have none.
    pub(crate) roles_header: Option<String>,
}
