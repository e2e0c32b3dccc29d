//! Configuration of servers of Flight SQL as databases, and of networks of nodes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Visitor;
use serde::{Deserialize, Deserializer};

use crate::config::quantities::{OneOrMany, SecretText, Time};

/// The SQL of a server of Flight SQL.
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
    /// File with the certificates of trusted authorities (PEM), relative to this file. Default: those of the system.
    pub(crate) authorities: Option<PathBuf>,
    /// File of the certificate chain (PEM) that this server presents, leaf first; relative to this file. Default: none.
    pub(crate) certificate: Option<PathBuf>,
    /// File of the private key of the certificate (PEM), relative to this file. Default: none.
    pub(crate) key: Option<PathBuf>,
}

impl ClientTlsConfig {
    pub(crate) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.authorities, &self.certificate, &self.key].into_iter().flatten()
    }
}

/// Nodes whose tables of the same name are one table. They are servers of Tidegate with server.flight. Without trust
/// and token, nodes receive no credentials.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NetworkConfig {
    /// The nodes: at least one. Required.
    pub(crate) nodes: Vec<NodeConfig>,
    /// What happens when a node does not answer. forbid: the call fails and names the node. allow: the answer lacks the
    /// rows of the node and says so. Default: forbid.
    #[serde(default)]
    pub(crate) partial: PartialConfig,
    /// How long a node may take for its first rows. Default: 20s.
    pub(crate) timeout: Option<Time>,
    /// Columns whose smallest and largest values locate shows for each node. Default: none.
    pub(crate) ranges: Option<OneOrMany>,
    /// The key that signs tokens, which name the caller to a node. Default: none.
    pub(crate) trust: Option<TrustConfig>,
    /// Token that identifies this server, not its callers, to all nodes. Write it as ${VARIABLE}. Default: none.
    pub(crate) token: Option<SecretText>,
    /// TLS of the connections to all nodes.
    #[serde(default)]
    pub(crate) tls: ClientTlsConfig,
}

/// What happens when a node does not answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum PartialConfig {
    #[default]
    Forbid,
    Allow,
}

/// A node of a network.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NodeConfig {
    /// Name of the node, which the column _node has. Required.
    pub(crate) name: String,
    /// Address of its server.flight: grpc+tls://host:7071, or grpc://127.0.0.1:7071 on this machine. Required.
    pub(crate) url: String,
    /// Addresses of servers with the same rows, which are tried in this order. Default: none.
    #[serde(default)]
    pub(crate) replicas: Vec<String>,
    /// Name of the database there. Default: the only one that the caller may query there.
    pub(crate) database: Option<String>,
    /// SQL of the database there. Default: datafusion.
    pub(crate) dialect: Option<DialectConfig>,
    /// Token for this node, instead of that of the network. Default: none.
    pub(crate) token: Option<SecretText>,
    /// Audience of the tokens for this node (aud), if trust signs them. Default: the name of the node.
    pub(crate) audience: Option<String>,
    /// Rows of the node that are part of the network's tables, by columns: {site: [oslo, bergen], time: {from:
    /// 2026-01-01, before: 2027-01-01}}. Nodes without matching rows are not sent a query. Default: all rows.
    pub(crate) holds: Option<BTreeMap<String, HeldConfig>>,
}

/// Values of a column: one, a list, or a range.
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

/// A range of values.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct HeldRangeConfig {
    /// Smallest value. Default: none.
    pub(crate) from: Option<ScalarText>,
    /// Value that all values are below. Default: none.
    pub(crate) before: Option<ScalarText>,
}

/// A key with which this server signs tokens that are valid for a minute. A token has the subject, tenant, roles and claims of
/// the caller, and the node as its audience. Nodes verify it by auth.tokens.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TrustConfig {
    /// Issuer of the tokens (iss): auth.tokens.issuer of the nodes. Required.
    pub(crate) issuer: String,
    /// Private key (PEM), or the shared secret for HS256, HS384 and HS512. Write it as ${file:PATH} or ${VARIABLE}.
    /// Required.
    pub(crate) key: SecretText,
    /// Signature algorithm, one of auth.tokens.algorithms of the nodes. Default: EdDSA.
    pub(crate) algorithm: Option<String>,
    /// Claim that contains the tenant of the caller: auth.tokens.tenant_claim of the nodes. Default: tenant.
    pub(crate) tenant_claim: Option<String>,
    /// Claim that contains the names of the caller's roles here: {roles: reader} in the claims of a role of the nodes.
    /// Default: roles.
    pub(crate) roles_claim: Option<String>,
    /// Id of the key (kid), if the nodes verify tokens by several keys of auth.tokens.jwks. Default: none.
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
