//! The types of a configuration. The JSON Schema for editors and the check for unknown keys are generated from them.

mod databases;
mod identity;
mod limits;
mod logs;
mod metrics;
mod mqtt;
pub(crate) mod network;
mod receivers;
mod resources_and_prompts;
mod safeguards;
mod server;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::quantities::{OneOrMany, SecretText, Size, Time};

pub(crate) use databases::{
    DatabaseConfig, EvolveConfig, HandlerSchemaConfig, HandlersConfig, InferConfig, MaskConfig, NamedMask,
    PolicyConfig, QuotesConfig, RaggedConfig, RoleChoice, SystemConfig, TableConfig, TenancyConfig,
};
pub(crate) use identity::{AuthConfig, CertificateConfig, ProxyConfig, RoleConfig, TokensConfig};
pub(crate) use limits::{CallLimitsConfig, LevelLimitsConfig, LimitsConfig, ResultsConfig, ToolLimitsConfig};
pub(crate) use logs::LogSourceConfig;
pub(crate) use metrics::{MetricSourceConfig, RecordedMetricsConfig};
pub(crate) use mqtt::{MqttConfig, MqttFormat};
pub(crate) use network::ClientTlsConfig;
pub(crate) use receivers::ReceiversConfig;
pub(crate) use resources_and_prompts::{MessageConfig, MessageRole, PromptConfig, ResourceConfig};
pub(crate) use safeguards::{AuditConfig, SecretAction, SecretRuleConfig, SecretsConfig, WhenFullConfig};
pub(crate) use server::{
    ClientCertificatesConfig, ListenConfig, ServerAddress, ServerConfig, TlsConfig, TlsVersionConfig,
};

/// The configuration of a Tidegate server.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// Further files, relative to this one: conf.d/*.yaml, or a list of these. They are read in the order of their names.
    /// Their lists are joined, their maps merged, and any other key may be set in one file only. Paths in them are
    /// relative to this file. Default: none.
    pub(crate) include: Option<OneOrMany>,
    /// Address, TLS, transports and name of the server.
    pub(crate) server: ServerConfig,
    /// Databases that can be queried. Default: none.
    pub(crate) databases: Vec<DatabaseConfig>,
    /// Secret for the hash mask of row policies. Write it as ${VARIABLE}. Default: a random one, which changes at each
    /// restart.
    pub(crate) policies_key: Option<SecretText>,
    /// Built-in tools, resources and prompts that are offered, as patterns of their names; [] disables all. Default:
    /// all.
    pub(crate) built_in: Option<Vec<String>>,
    /// Declared tools. Default: none.
    pub(crate) tools: Vec<ToolConfig>,
    /// Named parts of the registry, as patterns of the names of tools, resources and prompts. Each toolset is served at
    /// /mcp/NAME and can be granted to roles. Default: none.
    pub(crate) toolsets: BTreeMap<String, Vec<String>>,
    /// Log sources: tables whose rows are log entries. Callers with the right to one of them have four more tools.
    /// Default: none.
    pub(crate) logs: Vec<LogSourceConfig>,
    /// Metric sources: tables with samples, servers with the API of Prometheus, and the metrics of this server. Callers
    /// with the right to one of them have three more tools. Default: none.
    pub(crate) metrics: Vec<MetricSourceConfig>,
    /// Receivers of telemetry that is sent: OTLP, the remote write of Prometheus, the bulk API of Elasticsearch. Default:
    /// none.
    pub(crate) receivers: ReceiversConfig,
    /// Brokers of MQTT, whose messages become rows of tables. Default: none.
    pub(crate) mqtt: Vec<MqttConfig>,
    /// Declared resources. Default: none.
    pub(crate) resources: Vec<ResourceConfig>,
    /// Declared prompts. Default: none.
    pub(crate) prompts: Vec<PromptConfig>,
    /// Roles, and what their callers may use. Default: none.
    pub(crate) roles: Vec<RoleConfig>,
    /// Authentication. If this key is present, even without members, callers without a role cannot use anything.
    /// Default: none; all callers may use everything except entries that require an access name, and the server listens on this machine only.
    #[serde(deserialize_with = "identity::deserialize_present")]
    pub(crate) auth: Option<AuthConfig>,
    /// Limits of calls and of callers.
    pub(crate) limits: LimitsConfig,
    /// Stored results: answers that do not fit inline, kept for later pages and downloads.
    pub(crate) results: ResultsConfig,
    /// Hosts that http tools may call.
    pub(crate) http: HttpConfig,
    /// The audit log. Default: none.
    pub(crate) audit: Option<AuditConfig>,
    /// Detection of secrets in answers. Default: none; secrets are not searched.
    pub(crate) secrets: Option<SecretsConfig>,
    /// Puts rows that a model reads between two lines with a random mark, so that data cannot pretend to be outside.
    /// Default: false.
    pub(crate) fence: bool,
    /// Whether lists of tools include their rarely used parameters (mode, delivery, no_cache). Calls may have them in any
    /// case. Default: false.
    pub(crate) advanced: bool,
}

/// A declared tool: an SQL statement, a row that is added to a table, or a request to an HTTP API.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolConfig {
    /// Name of the tool: 1 to 128 letters, digits, dots, _ and -. Required.
    pub(crate) name: String,
    /// Title for people. Default: none.
    pub(crate) title: Option<String>,
    /// Description for the model: when to use the tool, and which tools to use before it. Required.
    pub(crate) description: String,
    /// Hints for clients. Default: derived from the tool.
    #[serde(default)]
    pub(crate) annotations: AnnotationsConfig,
    /// Database of the statement. Default: the only database.
    pub(crate) database: Option<String>,
    /// One statement with parameters as :name. It may only read, unless transaction.writes is true. Default: none.
    pub(crate) sql: Option<String>,
    /// Table that takes rows, as database.table, instead of a statement: a call adds one row. Each parameter is a
    /// column. Default: none.
    pub(crate) insert_into: Option<String>,
    /// PostgreSQL: the transaction of the statement.
    #[serde(default)]
    pub(crate) transaction: TransactionConfig,
    /// Request to an HTTP API, instead of a statement. Default: none.
    pub(crate) http: Option<HttpRequestConfig>,
    /// Parameters by name. Default: none.
    #[serde(default)]
    pub(crate) input: BTreeMap<String, InputConfig>,
    /// Question that the person behind a call must approve before the tool runs: Refund {{amount}} to order {{order}}?
    /// {{changed_rows}} is the number of rows that a writing statement would change; it runs only if that number is
    /// still the same. Default: none.
    pub(crate) confirm: Option<String>,
    /// Format of the answer: mcp, json, csv, markdown, ndjson, table or toon. Callers then have no argument for it.
    /// Default: the caller chooses.
    pub(crate) format: Option<String>,
    /// Column whose unique values are returned instead of the rows. Callers then have no argument for it. Default: the
    /// caller chooses.
    pub(crate) extract: Option<String>,
    /// When rows are sent: streaming, batch or auto. For tools with sql that read. Default: auto.
    pub(crate) mode: Option<String>,
    /// How rows are delivered: inline, or blocks for a stored result. For tools with sql that read. Callers then have no
    /// argument for it. Default: the caller chooses.
    pub(crate) delivery: Option<String>,
    /// Access names that a caller must hold, all of them. Default: none.
    #[serde(default)]
    pub(crate) access: Vec<String>,
    /// OAuth scopes that the token of a caller must have, all of them. The entry is listed even without them. A scope
    /// also counts if a broader one includes it (auth.tokens.implied_scopes). Default: none.
    #[serde(default)]
    pub(crate) scopes: Vec<String>,
    /// Transports and networks from which calls are accepted. Default: all.
    #[serde(default)]
    pub(crate) from: AllowedOriginsConfig,
    /// Limits of the calls of the tool.
    #[serde(default)]
    pub(crate) limits: ToolLimitsConfig,
    /// How long clients may cache an answer. Default: not stated.
    pub(crate) cache: Option<CacheConfig>,
}

/// A request to an HTTP API. {{name}} in its texts stands for a parameter.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HttpRequestConfig {
    /// HTTP method: GET, POST, PUT, PATCH or DELETE. Default: GET.
    #[serde(default)]
    pub(crate) method: String,
    /// URL. Parameters may appear in its path and query only. Its host must be in http.allow_hosts. Required.
    pub(crate) url: String,
    /// Query parameters that are added to the URL. A pair is left out if its parameter has no value. Default: none.
    #[serde(default)]
    pub(crate) query: Map<String, Value>,
    /// Request headers. Write secrets as ${VARIABLE} or ${file:PATH}. Default: none.
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    /// JSON body. A text that is exactly {{name}} becomes the value of the parameter. Default: none.
    pub(crate) body: Option<Value>,
    /// Position of the rows in the response, as a JSON pointer: /items. Default: none.
    pub(crate) rows: Option<String>,
    /// Maximum duration of the request. Default: the time limit of the call.
    pub(crate) timeout: Option<Time>,
    /// Maximum size of the response, in bytes, at most 64MiB. Default: 4MiB.
    pub(crate) max_bytes: Option<Size>,
}

impl std::fmt::Debug for HttpRequestConfig {
    /// Omits headers and body, which may contain secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpRequestConfig").field("method", &self.method).finish_non_exhaustive()
    }
}

/// Hints for clients about the effects of a tool. Default of each: derived from the tool.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AnnotationsConfig {
    /// The tool changes nothing.
    pub(crate) read_only: Option<bool>,
    /// The tool may delete or overwrite data.
    pub(crate) destructive: Option<bool>,
    /// A repeated call with the same arguments changes nothing more.
    pub(crate) idempotent: Option<bool>,
    /// The tool reaches systems outside this server.
    pub(crate) open_world: Option<bool>,
}

/// A parameter of a tool, or a variable of a resource.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct InputConfig {
    /// Type: string, integer, number, boolean, date, timestamp, list or identifier. Default: string.
    #[serde(rename = "type")]
    pub(crate) kind: InputType,
    /// Type of the values of a list. Default: none; required for a list.
    pub(crate) items: Option<InputType>,
    /// Columns or tables that an identifier may name. Default: none.
    pub(crate) allow: Vec<String>,
    /// Description for the model. Default: none.
    pub(crate) description: Option<String>,
    /// Value if the caller supplies none. Default: none.
    pub(crate) default: Option<Value>,
    /// Question to the person behind a call if the caller supplies no value: Which year? Only for tools. Default: none.
    pub(crate) ask: Option<String>,
    /// Whether a value is required. If false, a parameter without a value and without a default is null. Default: true.
    pub(crate) required: Option<bool>,
    /// Permitted values. Default: all of the type.
    #[serde(rename = "enum")]
    pub(crate) choices: Option<Vec<Value>>,
    /// Smallest permitted number. Default: none.
    pub(crate) minimum: Option<serde_json::Number>,
    /// Largest permitted number. Default: none.
    pub(crate) maximum: Option<serde_json::Number>,
    /// Minimum number of characters. Default: none.
    pub(crate) min_length: Option<u64>,
    /// Maximum number of characters. Default: none.
    pub(crate) max_length: Option<u64>,
    /// Regular expression that the text must match. Default: none.
    pub(crate) pattern: Option<String>,
}

/// Type of a parameter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum InputType {
    #[default]
    String,
    Integer,
    Number,
    Boolean,
    Date,
    Timestamp,
    List,
    Identifier,
}

/// Transports and networks from which calls are accepted.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AllowedOriginsConfig {
    /// Transports: stdio, http, sse, ws, rest, flight, cli. Default: all.
    pub(crate) transports: Option<Vec<String>>,
    /// Networks, such as 10.0.0.0/8 or 2001:db8::/32. Default: all.
    pub(crate) networks: Option<Vec<String>>,
}

/// The transaction in which PostgreSQL runs a statement.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TransactionConfig {
    /// Isolation level: read committed, repeatable read or serializable. Default: read committed.
    pub(crate) isolation: IsolationConfig,
    /// Whether the statement may write. The annotations of the tool then say so. A failed statement is rolled back.
    /// Default: false.
    pub(crate) writes: bool,
    /// Whether the transaction waits until it cannot fail with a serialization error. Only for serializable
    /// transactions that read. Default: false.
    pub(crate) deferrable: bool,
    /// How often the transaction is repeated after a conflict with other transactions. Default: 3.
    pub(crate) retries: Option<u32>,
}

/// Isolation level of a transaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(inline)]
pub(crate) enum IsolationConfig {
    #[default]
    #[serde(rename = "read committed")]
    ReadCommitted,
    #[serde(rename = "repeatable read")]
    RepeatableRead,
    #[serde(rename = "serializable")]
    Serializable,
}

/// How long clients may cache an answer.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CacheConfig {
    /// Duration for which clients may cache an answer. Required.
    pub(crate) ttl: Time,
    /// Whether shared caches may store the answer. Use it only if the answer is the same for all callers. Default:
    /// false.
    #[serde(default)]
    pub(crate) public: bool,
}

/// Hosts that http tools may call.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct HttpConfig {
    /// Hosts that http tools may call, such as api.example.com, *.example.com or 127.0.0.1:8080. Default: none.
    pub(crate) allow_hosts: Vec<String>,
}
