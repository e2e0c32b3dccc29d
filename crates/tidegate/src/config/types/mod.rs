//! What a configuration may say. The JSON Schema for editors is generated from these types, and so is the
//! check for unknown keys.

mod databases;
mod identity;
mod limits;
mod policies;
mod resources_and_prompts;
mod results;
mod safeguards;
mod tls;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::quantities::{SecretText, Size, Time};

pub(crate) use databases::{
    DatabaseEntry, HandlerSchemaEntry, HandlersEntry, OneOrManyTexts, RaggedEntry, RoleChoice, TableEntry, TenancyEntry,
};
pub(crate) use identity::{AuthEntry, CertificateEntry, ProxyEntry, RoleEntry, TokensEntry};
pub(crate) use limits::{AllowanceEntry, CallLimitsEntry, LimitsEntry, ToolLimitsEntry};
pub(crate) use policies::{MaskEntry, NamedMask, PolicyEntry};
pub(crate) use resources_and_prompts::{MessageEntry, MessageRole, PromptEntry, ResourceEntry};
pub(crate) use results::ResultsEntry;
pub(crate) use safeguards::{AuditEntry, SecretAction, SecretRuleEntry, SecretsEntry, WhenFullEntry};
pub(crate) use tls::{ClientCertificatesEntry, TlsEntry, TlsVersionEntry};

/// The configuration of a Tidegate node.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// Where the node listens and who it says it is.
    pub(crate) server: ServerEntry,
    /// The databases that can be asked.
    pub(crate) databases: Vec<DatabaseEntry>,
    /// The secret that row policies hash columns with; write it as ${VARIABLE}. One that lasts until the node is started
    /// again unless said.
    pub(crate) policies_key: Option<SecretText>,
    /// The built-in tools and prompts that are offered, as patterns of their names; all of them unless said.
    pub(crate) built_in: Option<Vec<String>>,
    /// Tools of your own.
    pub(crate) tools: Vec<ToolEntry>,
    /// Named parts of the registry, as patterns of the names of tools, resources and prompts. Each is served at
    /// /mcp/NAME and can be given to roles.
    pub(crate) toolsets: BTreeMap<String, Vec<String>>,
    /// Resources of your own.
    pub(crate) resources: Vec<ResourceEntry>,
    /// Prompts of your own.
    pub(crate) prompts: Vec<PromptEntry>,
    /// What callers may reach, by role.
    pub(crate) roles: Vec<RoleEntry>,
    /// How callers prove who they are. As soon as this stands here, be it empty, nobody reaches anything without a role.
    #[serde(deserialize_with = "identity::deserialize_present")]
    pub(crate) auth: Option<AuthEntry>,
    /// The bounds of all calls, and of what callers may have.
    pub(crate) limits: LimitsEntry,
    /// Answers that do not fit inline, kept to be paged through and fetched.
    pub(crate) results: ResultsEntry,
    /// What tools of kind http may reach.
    pub(crate) http: HttpEntry,
    /// The audit log; none unless said.
    pub(crate) audit: Option<AuditEntry>,
    /// Secrets in answers; not looked for unless said.
    pub(crate) secrets: Option<SecretsEntry>,
    /// Whether rows that a model reads stand between two lines with a random mark, which nothing in them can forge.
    pub(crate) fence: bool,
}

/// Where the node listens and who it says it is.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ServerEntry {
    /// Address to listen on; 127.0.0.1:7070 unless said.
    pub(crate) listen: Option<String>,
    /// TLS, and the certificates of clients; without it the node speaks plain HTTP.
    pub(crate) tls: Option<TlsEntry>,
    /// Host names that requests may be addressed to, beside this machine's.
    pub(crate) allow_hosts: Vec<String>,
    /// Web page origins that may call, beside those of this machine.
    pub(crate) allow_origins: Vec<String>,
    /// Size of a request body.
    pub(crate) max_body: Option<Size>,
    /// The server's name for people.
    pub(crate) title: Option<String>,
    /// What a model is told at the start; the built-in playbook unless said.
    pub(crate) instructions: Option<String>,
    /// Doors that are open; all of them unless said.
    pub(crate) transports: TransportsEntry,
}

/// Doors that can be switched off.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TransportsEntry {
    /// MCP over Streamable HTTP at /mcp.
    pub(crate) mcp: bool,
    /// MCP over HTTP+SSE of 2024-11-05 at /mcp/sse.
    pub(crate) sse: bool,
    /// MCP over WebSocket at /mcp/ws.
    pub(crate) ws: bool,
    /// REST at /rest.
    pub(crate) rest: bool,
    /// Prometheus at /metrics.
    pub(crate) metrics: bool,
}

impl Default for TransportsEntry {
    fn default() -> Self {
        Self { mcp: true, sse: true, ws: true, rest: true, metrics: true }
    }
}

/// A tool: an SQL statement, or a request to an HTTP API.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolEntry {
    /// 1 to 128 of letters, digits, _, - and .
    pub(crate) name: String,
    /// For people.
    pub(crate) title: Option<String>,
    /// For the model: when to use it and what to use before it.
    pub(crate) description: String,
    /// Hints for clients.
    #[serde(default)]
    pub(crate) annotations: AnnotationsEntry,
    /// The database of the statement; may be left out when there is only one.
    pub(crate) database: Option<String>,
    /// One statement with :name parameters; it only reads unless its transaction says that it writes.
    pub(crate) sql: Option<String>,
    /// How a PostgreSQL database runs the statement.
    #[serde(default)]
    pub(crate) transaction: TransactionEntry,
    /// A request to an HTTP API, instead of a statement.
    pub(crate) http: Option<HttpRequestEntry>,
    /// The parameters, by name.
    #[serde(default)]
    pub(crate) input: BTreeMap<String, InputEntry>,
    /// What the person behind a call must agree to before anything is done: Refund {{amount}} to order {{order}}?
    pub(crate) confirm: Option<String>,
    /// Access names that a caller must hold, all of them.
    #[serde(default)]
    pub(crate) access: Vec<String>,
    /// OAuth scopes that a caller's token must carry, all of them; lists show the entry all the same. A broader one counts
    /// for those that it implies (auth.tokens.implied_scopes).
    #[serde(default)]
    pub(crate) scopes: Vec<String>,
    /// Where calls may come from; anywhere unless said.
    #[serde(default)]
    pub(crate) from: FromEntry,
    /// Bounds of its calls.
    #[serde(default)]
    pub(crate) limits: ToolLimitsEntry,
    /// How long clients may keep an answer.
    pub(crate) cache: Option<CacheEntry>,
}

/// A request to an HTTP API. {name} stands for a parameter, {{ for a brace.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HttpRequestEntry {
    /// GET unless said.
    #[serde(default)]
    pub(crate) method: String,
    /// The address; parameters may stand in its path and query only. Its host must be under http.allow_hosts.
    pub(crate) url: String,
    /// What is added to the address; a pair whose parameter is not given is left out.
    #[serde(default)]
    pub(crate) query: Map<String, Value>,
    /// Headers; write secrets as ${VARIABLE} or ${file:PATH}.
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    /// A JSON body; a text that is exactly {name} becomes the parameter's value.
    pub(crate) body: Option<Value>,
    /// Where in the answer the rows are, as a JSON pointer: /items.
    pub(crate) rows: Option<String>,
    /// How long the API may take.
    pub(crate) timeout: Option<Time>,
    /// The size of an answer that is read.
    pub(crate) max_bytes: Option<Size>,
}

impl std::fmt::Debug for HttpRequestEntry {
    /// Neither headers nor body, which may hold secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpRequestEntry").field("method", &self.method).finish_non_exhaustive()
    }
}

/// Hints for clients.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AnnotationsEntry {
    /// Changes nothing.
    pub(crate) read_only: Option<bool>,
    /// May destroy.
    pub(crate) destructive: Option<bool>,
    /// The same call again changes nothing more.
    pub(crate) idempotent: Option<bool>,
    /// Reaches beyond this server's data.
    pub(crate) open_world: Option<bool>,
}

/// A parameter.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct InputEntry {
    /// string, integer, number, boolean, date, timestamp, list or identifier.
    #[serde(rename = "type")]
    pub(crate) kind: InputType,
    /// The type of a list's values.
    pub(crate) items: Option<InputType>,
    /// The columns or tables that an identifier may be.
    pub(crate) allow: Vec<String>,
    /// For the model.
    pub(crate) description: Option<String>,
    /// Used when the caller gives no value.
    pub(crate) default: Option<Value>,
    /// What the person behind a call is asked when the caller gives no value: Which year? Only for tools.
    pub(crate) ask: Option<String>,
    /// Whether a value must be given; true unless said. Without one and without a default the parameter is null.
    pub(crate) required: Option<bool>,
    /// The values that it may have.
    #[serde(rename = "enum")]
    pub(crate) choices: Option<Vec<Value>>,
    /// The least number.
    pub(crate) minimum: Option<serde_json::Number>,
    /// The greatest number.
    pub(crate) maximum: Option<serde_json::Number>,
    /// The least number of characters.
    pub(crate) min_length: Option<u64>,
    /// The greatest number of characters.
    pub(crate) max_length: Option<u64>,
    /// A regular expression that the text must match.
    pub(crate) pattern: Option<String>,
}

/// The type of a parameter.
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

/// Where calls may come from.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct FromEntry {
    /// Transports: stdio, http, cli.
    pub(crate) transports: Option<Vec<String>>,
    /// Networks as 10.0.0.0/8 or 2001:db8::/32.
    pub(crate) networks: Option<Vec<String>>,
}

/// How a PostgreSQL database runs a statement.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TransactionEntry {
    /// What it sees of others: read committed (unless said), repeatable read or serializable.
    pub(crate) isolation: IsolationEntry,
    /// Whether the statement may write. Such a tool says so in its annotations, and rolls back when it fails.
    pub(crate) writes: bool,
    /// Whether it waits for a moment in which it cannot fail for others; for serializable ones that only read.
    pub(crate) deferrable: bool,
    /// How often it is tried again after a conflict with others; 3 unless said.
    pub(crate) retries: Option<u32>,
}

/// What a transaction sees of others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(inline)]
pub(crate) enum IsolationEntry {
    #[default]
    #[serde(rename = "read committed")]
    ReadCommitted,
    #[serde(rename = "repeatable read")]
    RepeatableRead,
    #[serde(rename = "serializable")]
    Serializable,
}

/// How long clients may keep an answer.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CacheEntry {
    /// How long.
    pub(crate) ttl: Time,
    /// Whether shared caches may keep it: only if it is the same for everybody.
    #[serde(default)]
    pub(crate) public: bool,
}

/// What tools of kind http may reach.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct HttpEntry {
    /// Hosts, as api.example.com, *.example.com or 127.0.0.1:8080.
    pub(crate) allow_hosts: Vec<String>,
}
