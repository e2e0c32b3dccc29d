//! The types of a configuration. The JSON Schema for editors and the check for unknown keys are generated from them.

mod databases;
mod folders;
mod identity;
mod knowledge;
mod limits;
pub(crate) mod network;
mod resources_and_prompts;
mod safeguards;
mod server;
mod telemetry;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::databases::DatabaseConfig;
use super::problem::ConfigProblem;
use super::quantities::{OneOrMany, SecretText, Size, Time};

pub(crate) use databases::{
    CompatibilityConfig, EvolveConfig, FileTableConfig, HandlerSchemaConfig, HandlersConfig, InferConfig,
    IngestTableConfig, MaskConfig, NamedMask, PolicyConfig, QuotesConfig, RaggedConfig, RoleChoice, StampsConfig,
    SystemConfig, TenancyConfig,
};
pub(crate) use folders::SharedFolderConfig;
pub(crate) use identity::{AuthConfig, CertificateConfig, DevelopmentConfig, ProxyConfig, RoleConfig, TokensConfig};
pub(crate) use knowledge::{
    AboutConfig, ColumnConfig, DescribedColumnConfig, ExampleConfig, KnowledgeConfig, MeasureConfig, NotesConfig,
};
pub(crate) use limits::{CallLimitsConfig, LevelLimitsConfig, LimitsConfig, ResultsConfig, ToolLimitsConfig};
pub(crate) use network::ClientTlsConfig;
pub(crate) use resources_and_prompts::{MessageConfig, MessageRole, PromptConfig, ResourceConfig};
pub(crate) use safeguards::{AuditConfig, SecretAction, SecretRuleConfig, SecretsConfig, WhenFullConfig};
pub(crate) use server::{
    ClientCertificatesConfig, ListenConfig, ServerAddress, ServerConfig, TlsConfig, TlsVersionConfig,
};
pub(crate) use telemetry::{
    LogSourceConfig, MetricSourceConfig, MqttConfig, MqttFormat, ReceiversConfig, RecordedMetricsConfig,
};

/// The configuration of a Tidegate server.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// Further files, in the order of their names: conf.d/*.yaml. Lists are joined and maps merged. Other keys may be
    /// in one file only. Default: none.
    pub(crate) include: Option<OneOrMany>,
    /// Address, TLS, transports and name.
    pub(crate) server: ServerConfig,
    /// Databases that can be queried. Exactly one key of each sets its kind. Default: none.
    pub(crate) databases: Vec<DatabaseConfig>,
    /// Databases of no kind, and keys of other kinds. They are reported with what is wrong with the values of databases.
    #[serde(skip)]
    pub(crate) kind_problems: Vec<ConfigProblem>,
    /// Secret for hash masks. Default: a random one, which changes at each restart.
    pub(crate) policies_key: Option<SecretText>,
    /// Patterns of offered built-in tools, resources and prompts. [] disables all. Default: all.
    pub(crate) built_in: Option<Vec<String>>,
    /// Declared tools. Default: none.
    pub(crate) tools: Vec<ToolConfig>,
    /// Named sets of tools, resources and prompts, as patterns. Each is served at /mcp/NAME and can be granted to
    /// roles. Default: none.
    pub(crate) toolsets: BTreeMap<String, Vec<String>>,
    /// Log sources: tables whose rows are log entries. They add four tools for callers with the right to one. Default:
    /// none.
    pub(crate) logs: Vec<LogSourceConfig>,
    /// Metric sources: tables, Prometheus APIs and this server. They add three tools for callers with the right to one.
    /// Exactly one of table, prometheus and node sets the kind. Default: none.
    pub(crate) metrics: Vec<MetricSourceConfig>,
    /// Databases for OTLP, the remote write of Prometheus and the bulk API of Elasticsearch. Each has an ingest folder.
    /// Default: none.
    pub(crate) receivers: ReceiversConfig,
    /// MQTT brokers, whose messages become rows. Default: none.
    pub(crate) mqtt: Vec<MqttConfig>,
    /// Folders whose files callers list and read, as they are. They add two tools. Default: none.
    pub(crate) folders: Vec<SharedFolderConfig>,
    /// Declared resources. Default: none.
    pub(crate) resources: Vec<ResourceConfig>,
    /// Declared prompts. Default: none.
    pub(crate) prompts: Vec<PromptConfig>,
    /// Roles and their rights. Default: none.
    pub(crate) roles: Vec<RoleConfig>,
    /// Authentication. With this key, even if empty, callers need a role. Default: none; all callers may use everything
    /// except entries that require an access name, and the server listens on this machine only.
    #[serde(deserialize_with = "identity::deserialize_present")]
    pub(crate) auth: Option<AuthConfig>,
    /// Limits of calls and callers.
    pub(crate) limits: LimitsConfig,
    /// Stored results, which do not fit inline.
    pub(crate) results: ResultsConfig,
    /// Permitted hosts of http tools.
    pub(crate) http: HttpConfig,
    /// The audit log: one line a call, in a hash chain. Changes take effect at a restart. Default: none.
    pub(crate) audit: Option<AuditConfig>,
    /// Detection of secrets in answers. Default: none; secrets are not searched.
    pub(crate) secrets: Option<SecretsConfig>,
    /// Puts rows for a model between random marks, so that data cannot pretend to be outside. Default: false.
    pub(crate) fence: bool,
    /// Whether lists of tools show mode, delivery and no_cache. Calls may always have them. Default: false.
    pub(crate) advanced: bool,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolConfig {
    /// 1 to 128 letters, digits, dots, _ and -.
    pub(crate) name: String,
    /// Title for people. Default: none.
    pub(crate) title: Option<String>,
    /// For the model: when to use the tool, and which ones before it.
    pub(crate) description: String,
    /// Hints for clients. Default: derived from the tool.
    #[serde(default)]
    pub(crate) annotations: AnnotationsConfig,
    /// Database of the statement. Default: the only database.
    pub(crate) database: Option<String>,
    /// One statement with parameters as :name. It may only read without transaction.writes. Default: none.
    pub(crate) sql: Option<String>,
    /// Instead of a statement: database.table that receives a row. Parameters are its columns. Default: none.
    pub(crate) insert_into: Option<String>,
    /// Instead of a statement: built-in tool that it calls. Callers need the rights to both. Default: none.
    pub(crate) tool: Option<String>,
    /// Fixed arguments of the built-in tool, which callers cannot choose. Default: none.
    #[serde(default)]
    pub(crate) arguments: Map<String, Value>,
    /// Arguments of the built-in tool for calls without them. Default: none.
    #[serde(default)]
    pub(crate) defaults: Map<String, Value>,
    /// PostgreSQL: transaction of the statement.
    #[serde(default)]
    pub(crate) transaction: TransactionConfig,
    /// HTTP request, instead of a statement. {{name}} in its texts stands for a parameter. Default: none.
    pub(crate) http: Option<HttpRequestConfig>,
    /// Parameters by name. Default: none.
    #[serde(default)]
    pub(crate) input: BTreeMap<String, InputConfig>,
    /// Question that a person must approve before the call: Refund {{amount}} to order {{order}}? {{changed_rows}} is
    /// the number of rows that a writing statement would change. It must still be the same at the call. Default: none.
    pub(crate) confirm: Option<String>,
    /// Fixed format: mcp, json, csv, markdown, ndjson, table or toon. Default: the caller chooses.
    pub(crate) format: Option<String>,
    /// Fixed column whose unique values are the answer. Default: the caller chooses.
    pub(crate) extract: Option<String>,
    /// streaming, batch or auto. For sql that reads. Default: auto.
    pub(crate) mode: Option<String>,
    /// Fixed delivery: inline, blocks for a stored result, or table for one that is a table. For sql that reads. Default: the caller chooses.
    pub(crate) delivery: Option<String>,
    /// Access names that callers need, all of them. Default: none.
    #[serde(default)]
    pub(crate) access: Vec<String>,
    /// OAuth scopes that calls need, all of them. The entry is listed even without them. Default: none.
    #[serde(default)]
    pub(crate) scopes: Vec<String>,
    /// Permitted transports and networks. Default: all.
    #[serde(default)]
    pub(crate) from: AllowedOriginsConfig,
    /// Limits of its calls.
    #[serde(default)]
    pub(crate) limits: ToolLimitsConfig,
    /// How long clients may cache an answer. Default: not stated.
    pub(crate) cache: Option<CacheConfig>,
}

#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HttpRequestConfig {
    /// GET, POST, PUT, PATCH or DELETE. Default: GET.
    #[serde(default)]
    pub(crate) method: String,
    /// Parameters may be in its path and query only. http.allow_hosts must contain its host.
    pub(crate) url: String,
    /// Query parameters. One without a value is left out. Default: none.
    #[serde(default)]
    pub(crate) query: Map<String, Value>,
    /// Write secrets as ${VARIABLE} or ${file:PATH}. Default: none.
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    /// JSON body. A text of only {{name}} becomes the parameter's value. Default: none.
    pub(crate) body: Option<Value>,
    /// JSON pointer to the rows: /items. Default: none.
    pub(crate) rows: Option<String>,
    /// Maximum duration. Default: the time limit of the call.
    pub(crate) timeout: Option<Time>,
    /// Maximum size of the response, up to 64MiB. Default: 4MiB.
    pub(crate) max_bytes: Option<Size>,
}

impl std::fmt::Debug for HttpRequestConfig {
    /// Omits headers and body, which may contain secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpRequestConfig").field("method", &self.method).finish_non_exhaustive()
    }
}

/// Hints about the effects of a tool. Default of each: derived from the tool.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AnnotationsConfig {
    /// It changes nothing.
    pub(crate) read_only: Option<bool>,
    /// It may delete or overwrite data.
    pub(crate) destructive: Option<bool>,
    /// A repeated call changes nothing more.
    pub(crate) idempotent: Option<bool>,
    /// It reaches systems outside this server.
    pub(crate) open_world: Option<bool>,
}

/// A parameter, or a variable of a resource.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct InputConfig {
    /// Type of the value. Default: string.
    #[serde(rename = "type")]
    pub(crate) kind: InputType,
    /// Type of a list's values. Default: none; required for a list.
    pub(crate) items: Option<InputType>,
    /// Columns or tables for an identifier. Default: none.
    pub(crate) allow: Vec<String>,
    /// Description for the model. Default: none.
    pub(crate) description: Option<String>,
    /// Value if callers supply none. Default: none.
    pub(crate) default: Option<Value>,
    /// Tools: question to a person if callers supply no value. Default: none.
    pub(crate) ask: Option<String>,
    /// Whether a value is required. Otherwise a missing value without a default is null. Default: true.
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
    /// Regular expression for the text. Default: none.
    pub(crate) pattern: Option<String>,
}

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

/// Permitted transports and networks.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AllowedOriginsConfig {
    /// stdio, http, sse, ws, rest, flight and cli. Default: all.
    pub(crate) transports: Option<Vec<String>>,
    /// 10.0.0.0/8 or 2001:db8::/32. Default: all.
    pub(crate) networks: Option<Vec<String>>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TransactionConfig {
    /// Isolation level. Default: read committed.
    pub(crate) isolation: IsolationConfig,
    /// Whether the statement may write. Annotations state it. Default: false.
    pub(crate) writes: bool,
    /// Waits until a serialization error is impossible. For serializable transactions that read. Default: false.
    pub(crate) deferrable: bool,
    /// Maximum repetitions after conflicts. Default: 3.
    pub(crate) retries: Option<u32>,
}

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
    /// Duration.
    pub(crate) ttl: Time,
    /// Whether shared caches may store it. It must be the same for all callers. Default: false.
    #[serde(default)]
    pub(crate) public: bool,
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct HttpConfig {
    /// api.example.com, *.example.com or 127.0.0.1:8080. Default: none.
    pub(crate) allow_hosts: Vec<String>,
}
