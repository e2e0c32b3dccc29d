//! Configuration of servers of Flight SQL as databases, and of networks of nodes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Visitor;
use serde::{Deserialize, Deserializer};

use crate::config::quantities::{OneOrMany, SecretText, Time};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum DialectConfig {
    DataFusion,
    Postgres,
    Sqlite,
}

/// TLS of connections to other servers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ClientTlsConfig {
    /// File of trusted authorities (PEM). Default: those of the system.
    pub(crate) authorities: Option<PathBuf>,
    /// File of the certificate chain (PEM) of this server, leaf first. Default: none.
    pub(crate) certificate: Option<PathBuf>,
    /// File of its private key (PEM). Default: none.
    pub(crate) key: Option<PathBuf>,
}

impl ClientTlsConfig {
    pub(crate) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.authorities, &self.certificate, &self.key].into_iter().flatten()
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NetworkConfig {
    /// At least one.
    pub(crate) nodes: Vec<NodeConfig>,
    /// What happens without a node's answer. forbid: the call fails and names the node. allow: the answer lacks its
    /// rows and says so. Default: forbid.
    #[serde(default)]
    pub(crate) partial: PartialConfig,
    /// Maximum time to a node's first rows. Default: 20s.
    pub(crate) timeout: Option<Time>,
    /// Columns whose range locate shows for each node. Default: none.
    pub(crate) ranges: Option<OneOrMany>,
    /// Key for tokens that name the caller to nodes. They are valid for a minute. Nodes verify them by auth.tokens.
    /// Default: none.
    pub(crate) trust: Option<TrustConfig>,
    /// Token that identifies this server, not its callers, to nodes. Default: none.
    pub(crate) token: Option<SecretText>,
    /// TLS to nodes.
    #[serde(default)]
    pub(crate) tls: ClientTlsConfig,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum PartialConfig {
    #[default]
    Forbid,
    Allow,
}

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NodeConfig {
    /// Name, as in the column _node.
    pub(crate) name: String,
    /// Its server.flight: grpc+tls://host:7071, or grpc://127.0.0.1:7071 on this machine.
    pub(crate) url: String,
    /// Servers with the same rows, tried in order. Default: none.
    #[serde(default)]
    pub(crate) replicas: Vec<String>,
    /// Database there. Default: the only one that the caller may query there.
    pub(crate) database: Option<String>,
    /// SQL of the database. Default: datafusion.
    pub(crate) dialect: Option<DialectConfig>,
    /// Instead of the network's token. Default: none.
    pub(crate) token: Option<SecretText>,
    /// Audience of tokens (aud). Default: the name of the node.
    pub(crate) audience: Option<String>,
    /// Rows of the node: {site: [oslo, bergen], time: {from: 2026-01-01, before: 2027-01-01}}. Nodes without matching
    /// rows receive no query. Default: all rows.
    pub(crate) holds: Option<BTreeMap<String, HeldConfig>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum HeldConfig {
    /// The only value.
    One(ScalarText),
    /// The values.
    Many(Vec<ScalarText>),
    /// A range of values.
    Range(HeldRangeConfig),
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct HeldRangeConfig {
    /// Smallest value. Default: none.
    pub(crate) from: Option<ScalarText>,
    /// Exclusive upper bound. Default: none.
    pub(crate) before: Option<ScalarText>,
}

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TrustConfig {
    /// auth.tokens.issuer of the nodes.
    pub(crate) issuer: String,
    /// Private key (PEM), or shared secret for HS256, HS384 and HS512.
    pub(crate) key: SecretText,
    /// One of auth.tokens.algorithms of the nodes. Default: EdDSA.
    pub(crate) algorithm: Option<String>,
    /// auth.tokens.tenant_claim of the nodes. Default: tenant.
    pub(crate) tenant_claim: Option<String>,
    /// Claim with the caller's roles, for roles[].claims of the nodes: {roles: reader}. Default: roles.
    pub(crate) roles_claim: Option<String>,
    /// Key id (kid), if the nodes have several keys. Default: none.
    pub(crate) key_id: Option<String>,
}

/// A text, a number, or true or false, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScalarText(pub(crate) String);

impl<'de> Deserialize<'de> for ScalarText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarTextVisitor)
    }
}

struct ScalarTextVisitor;

impl Visitor<'_> for ScalarTextVisitor {
    type Value = ScalarText;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a text, a number, or true or false")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<ScalarText, E> {
        Ok(ScalarText(text.to_owned()))
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<ScalarText, E> {
        Ok(ScalarText(number.to_string()))
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<ScalarText, E> {
        Ok(ScalarText(number.to_string()))
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<ScalarText, E> {
        Ok(ScalarText(number.to_string()))
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<ScalarText, E> {
        Ok(ScalarText(value.to_string()))
    }
}

impl JsonSchema for ScalarText {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Scalar".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["string", "number", "boolean"]})
    }
}
