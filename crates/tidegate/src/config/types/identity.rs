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
    development: None,
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

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RoleConfig {
    /// Name, as in API keys.
    pub(crate) name: String,
    /// Access names; * is a wildcard. Default: none.
    #[serde(default)]
    pub(crate) access: Vec<String>,
    /// Toolsets; "*" means all tools, resources and prompts. Default: none.
    #[serde(default)]
    pub(crate) toolsets: Vec<String>,
    /// Databases for built-in tools; "*" means all. Default: none.
    #[serde(default)]
    pub(crate) databases: Vec<String>,
    /// Writable tables: plant.sensors, plant.* or "*". The role then has append_rows and the receivers. replace_rows
    /// and drop_table come with toolsets. Default: none.
    #[serde(default)]
    pub(crate) ingest: Vec<String>,
    /// Tokens with all these claims get the role. Default: none.
    #[serde(default)]
    pub(crate) claims: Map<String, Value>,
    /// Limits of each caller, instead of limits.principal. Of several roles, the largest applies.
    #[serde(default)]
    pub(crate) limits: LevelLimitsConfig,
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AuthConfig {
    /// File of API keys from tidegate key add. Default: none.
    pub(crate) keys: Option<PathBuf>,
    /// Accepted tokens: signed (JWT) or opaque. Exactly one of jwks, jwks_url, discovery, public_key, secret and
    /// introspection verifies them. Default: none.
    pub(crate) tokens: Option<TokensConfig>,
    /// OAuth metadata for clients (RFC 9728). Default: none.
    pub(crate) oauth: Option<OauthConfig>,
    /// Principals of client certificates (server.tls.client_ca). Each entry has exactly one of subject and
    /// alternative_name. The first match applies. Default: none.
    pub(crate) certificates: Vec<CertificateConfig>,
    /// A proxy that authenticates callers and sends their identity in headers. It must remove these headers from their
    /// requests. Default: none.
    pub(crate) proxy: Option<ProxyConfig>,
    /// Who calls from this machine without credentials, to try entries for authenticated callers. The server then
    /// listens on this machine only. Default: none.
    pub(crate) development: Option<DevelopmentConfig>,
    /// Roles of callers without credentials. Default: none; such callers are refused.
    pub(crate) anonymous: Vec<String>,
    /// Roles of the user of stdio and the command line. Default: everything is allowed.
    pub(crate) local: Option<Vec<String>>,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TokensConfig {
    /// Required issuer (iss).
    pub(crate) issuer: String,
    /// Required audience (aud): one of these.
    pub(crate) audience: OneOrMany,
    /// Accepted signature algorithms: RS256, ES256, Ed25519 (also called EdDSA) and others. Not used with
    /// introspection. Default: none; required without introspection.
    #[serde(default)]
    pub(crate) algorithms: Vec<String>,
    /// File of public keys (JWKS). Default: none.
    pub(crate) jwks: Option<PathBuf>,
    /// URL of public keys (JWKS), fetched at intervals. Default: none.
    pub(crate) jwks_url: Option<String>,
    /// Whether metadata of the issuer states the address of the keys. Default: false.
    #[serde(default)]
    pub(crate) discovery: bool,
    /// File of one public key (PEM). Default: none.
    pub(crate) public_key: Option<PathBuf>,
    /// Shared secret for HS256, HS384 and HS512. Default: none.
    pub(crate) secret: Option<SecretText>,
    /// Endpoint (RFC 7662) that validates tokens. Default: none.
    pub(crate) introspection: Option<IntrospectionConfig>,
    /// Permitted clock difference, 0s to 10m. Default: 30s.
    pub(crate) leeway: Option<Leeway>,
    /// Claim with the tenant. Default: none.
    pub(crate) tenant_claim: Option<String>,
    /// Scopes that include others, also indirectly: {admin: [write]}. Default: none.
    #[serde(default)]
    pub(crate) implied_scopes: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct IntrospectionConfig {
    /// URL of the endpoint.
    pub(crate) url: String,
    /// Client id at the issuer.
    pub(crate) client_id: String,
    /// Client secret at the issuer.
    pub(crate) client_secret: SecretText,
    /// Whether the response must state the audience (aud). Otherwise tokens without one are accepted, whatever they
    /// were issued for. Default: true.
    pub(crate) needs_audience: Option<bool>,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OauthConfig {
    /// URL of this server for clients: https://data.example.com/mcp. It should be in auth.tokens.audience.
    pub(crate) resource: String,
    /// URLs of the authorization servers. Default: the issuer of auth.tokens.
    #[serde(default)]
    pub(crate) authorization_servers: Vec<String>,
    /// Scopes to request at first. Tools may require more. Default: none.
    #[serde(default)]
    pub(crate) scopes: Vec<String>,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CertificateConfig {
    /// Name of the principal.
    pub(crate) name: String,
    /// Whole subject, most specific part first: CN=etl,O=Example. Default: none.
    pub(crate) subject: Option<String>,
    /// dns:host, email:address, ip:address or uri:spiffe://example/robot. Default: none.
    pub(crate) alternative_name: Option<String>,
    /// Its roles. Default: none.
    #[serde(default)]
    pub(crate) roles: Vec<String>,
    /// Its tenant. Default: none.
    pub(crate) tenant: Option<String>,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProxyConfig {
    /// Its addresses or networks. Headers from others are ignored.
    pub(crate) networks: Vec<String>,
    /// Header with the caller's name.
    pub(crate) user_header: String,
    /// Header with the caller's tenant. Default: none.
    pub(crate) tenant_header: Option<String>,
    /// Header with roles, separated by commas. Default: none; callers have default_roles.
    pub(crate) roles_header: Option<String>,
    /// Roles of callers without roles_header. Default: none.
    #[serde(default)]
    pub(crate) default_roles: Vec<String>,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DevelopmentConfig {
    /// Name of the caller.
    pub(crate) user: String,
    /// Its tenant. Default: none.
    pub(crate) tenant: Option<String>,
    /// Its roles. Default: none; it may then use everything without an access name.
    #[serde(default)]
    pub(crate) roles: Vec<String>,
}
