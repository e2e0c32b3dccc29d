//! Configuration of roles and authentication.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::{Config, LevelLimitsConfig};
use crate::config::quantities::{Leeway, OneOrMany, SecretText};

/// The settings of a configuration without `auth`.
static NO_AUTH: AuthConfig = AuthConfig {
    keys: None,
    tokens: None,
    oauth: None,
    certificates: Vec::new(),
    proxy: None,
    anonymous: Vec::new(),
    local: None,
};

impl Config {
    /// The settings of `auth`, or their defaults.
    pub(crate) fn auth(&self) -> &AuthConfig {
        self.auth.as_ref().unwrap_or(&NO_AUTH)
    }
}

/// Keeps an `auth:` without members as present: authentication stays on while an operator edits the lines below it.
pub(super) fn deserialize_present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<AuthConfig>, D::Error> {
    Option::deserialize(deserializer).map(|entry| Some(entry.unwrap_or_default()))
}

/// A role: what its callers may use.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RoleConfig {
    /// Name of the role, as keys contain it. Required.
    pub(crate) name: String,
    /// Access names that the role holds; * is a wildcard. Default: none.
    #[serde(default)]
    pub(crate) access: Vec<String>,
    /// Toolsets whose tools, resources and prompts the role may use; "*" means all tools, resources and prompts.
    /// Default: none.
    #[serde(default)]
    pub(crate) toolsets: Vec<String>,
    /// Databases that the role may query with the built-in tools; "*" means all. Default: none.
    #[serde(default)]
    pub(crate) databases: Vec<String>,
    /// Tables that the role may write rows to, as database.table with wildcards, such as plant.* or plant.sensors; "*" means
    /// all. The role then has the tool append_rows and the receivers; replace_rows and drop_table come with its toolsets. Default:
    /// none.
    #[serde(default)]
    pub(crate) ingest: Vec<String>,
    /// Tokens with all of these claims get the role. Default: none.
    #[serde(default)]
    pub(crate) claims: Map<String, Value>,
    /// Limits of each caller with the role; they replace limits.principal. Of several roles, the largest value applies.
    #[serde(default)]
    pub(crate) limits: LevelLimitsConfig,
}

/// How callers authenticate.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AuthConfig {
    /// File of API keys, which tidegate key add writes; relative to this file. Default: none.
    pub(crate) keys: Option<PathBuf>,
    /// Accepted tokens of an issuer. Default: none.
    pub(crate) tokens: Option<TokensConfig>,
    /// OAuth metadata for clients that log in themselves (RFC 9728). Default: none.
    pub(crate) oauth: Option<OauthConfig>,
    /// Client certificates (server.tls.client_ca) and their principals. The first entry that matches applies. Default:
    /// none.
    pub(crate) certificates: Vec<CertificateConfig>,
    /// A proxy that authenticates callers and sends their identity in headers. Default: none.
    pub(crate) proxy: Option<ProxyConfig>,
    /// Roles of callers without credentials. Default: none; such callers are refused.
    pub(crate) anonymous: Vec<String>,
    /// Roles of the user who starts the process (stdio, command line). Default: everything is allowed.
    pub(crate) local: Option<Vec<String>>,
}

/// Accepted tokens of an issuer: signed ones (JWT), or opaque ones with introspection. Exactly one of jwks, jwks_url,
/// discovery, public_key, secret and introspection defines how tokens are checked.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TokensConfig {
    /// Issuer that tokens must have (iss).
    pub(crate) issuer: String,
    /// Audience that tokens must have (aud): a text, or a list of which one must match.
    pub(crate) audience: OneOrMany,
    /// Accepted signature algorithms, such as RS256, ES256 or Ed25519 (which many issuers call EdDSA). Not used with
    /// introspection. Default: none; required without introspection.
    #[serde(default)]
    pub(crate) algorithms: Vec<String>,
    /// File of public keys (JWKS), relative to this file. Default: none.
    pub(crate) jwks: Option<PathBuf>,
    /// URL of the public keys (JWKS) of the issuer. They are fetched again at intervals. Default: none.
    pub(crate) jwks_url: Option<String>,
    /// Whether to take the address of the keys from the metadata of the issuer. Default: false.
    #[serde(default)]
    pub(crate) discovery: bool,
    /// File of one public key (PEM), relative to this file. Default: none.
    pub(crate) public_key: Option<PathBuf>,
    /// Shared secret for HS256, HS384 and HS512. Write it as ${VARIABLE} or ${file:PATH}. Default: none.
    pub(crate) secret: Option<SecretText>,
    /// Introspection endpoint (RFC 7662) that validates each token. Tokens may then be opaque. Default: none.
    pub(crate) introspection: Option<IntrospectionConfig>,
    /// Permitted difference between clocks, from 0s to 10m. Default: 30s.
    pub(crate) leeway: Option<Leeway>,
    /// Claim that contains the tenant of the caller. Default: none.
    pub(crate) tenant_claim: Option<String>,
    /// Scopes that include other scopes: {admin: [write], write: [read]}. A token with a scope has all scopes that it
    /// includes, also indirectly. Default: none.
    #[serde(default)]
    pub(crate) implied_scopes: BTreeMap<String, Vec<String>>,
}

/// The introspection endpoint (RFC 7662) and the credentials of this server there.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct IntrospectionConfig {
    /// URL of the introspection endpoint.
    pub(crate) url: String,
    /// Client id of this server at the issuer.
    pub(crate) client_id: String,
    /// Client secret of this server at the issuer. Write it as ${VARIABLE} or ${file:PATH}.
    pub(crate) client_secret: SecretText,
    /// Whether the response must state the audience of the token (aud). If false, a token without a stated audience is
    /// accepted, whatever it was issued for. Default: true.
    pub(crate) needs_audience: Option<bool>,
}

/// OAuth metadata of this server for clients (RFC 9728).
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OauthConfig {
    /// URL of this server as clients use it, such as https://data.example.com/mcp. Tokens are issued for it, so it should
    /// be in the audience of auth.tokens.
    pub(crate) resource: String,
    /// URLs of the authorization servers. Default: the issuer of auth.tokens.
    #[serde(default)]
    pub(crate) authorization_servers: Vec<String>,
    /// Scopes that a client should request at first. Tools may require more. Default: none.
    #[serde(default)]
    pub(crate) scopes: Vec<String>,
}

/// A client certificate and its principal. Exactly one of subject and alternative_name identifies the certificate.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CertificateConfig {
    /// Name of the principal. Required.
    pub(crate) name: String,
    /// Whole subject of the certificate, most specific part first: CN=etl,O=Example. Default: none.
    pub(crate) subject: Option<String>,
    /// One alternative name of the certificate, with its kind: dns:host, email:address, ip:address or
    /// uri:spiffe://example/robot. Default: none.
    pub(crate) alternative_name: Option<String>,
    /// Roles of the principal. Default: none.
    #[serde(default)]
    pub(crate) roles: Vec<String>,
    /// Tenant of the principal. Default: none.
    pub(crate) tenant: Option<String>,
}

/// A proxy that authenticates callers and sends their identity in headers. It must remove these headers from the
/// requests of callers.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProxyConfig {
    /// IP addresses or networks of the proxy. Headers from other addresses are ignored.
    pub(crate) networks: Vec<String>,
    /// Header that contains the name of the caller. Required.
    pub(crate) user_header: String,
    /// Header that contains the tenant of the caller. Default: none.
    pub(crate) tenant_header: Option<String>,
    /// Header that contains the roles of the caller, separated by commas. Default: none; callers have default_roles.
    pub(crate) roles_header: Option<String>,
    /// Roles of callers for whom the proxy sends no roles_header, and of all its callers without a roles_header.
    /// Default: none.
    #[serde(default)]
    pub(crate) default_roles: Vec<String>,
}
