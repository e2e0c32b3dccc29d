//! Configuration of databases: files, PostgreSQL, SQLite, federated databases, servers of Flight SQL, networks, live system
//! tables, and row policies.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::network::{ClientTlsConfig, DialectConfig, NetworkConfig};
use crate::config::quantities::{ColumnTypes, OneOrMany, SecretText, Size, Time};

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DatabaseConfig {
    /// Name for callers.
    pub(crate) name: String,
    /// Tenants that can see the database and entries that use it. Default: all callers.
    pub(crate) tenants: Option<Vec<String>>,
    /// Folders, files or globs: data/2024-*.csv. Default: none.
    pub(crate) files: Option<OneOrMany>,
    /// Folder of tables that take rows. With postgres, sqlite or network: names of such tables. Roles grant the right
    /// to write. Default: none.
    pub(crate) ingest: Option<OneOrMany>,
    /// Ingest: whether rows create undeclared tables. Default: true.
    pub(crate) create_tables: Option<bool>,
    /// Options of files, by table name, folder or path, or of ingest tables. Options that are not set are detected.
    /// Default: detected.
    #[serde(default)]
    pub(crate) tables: BTreeMap<String, TableConfig>,
    /// SQLite files. Default: none.
    pub(crate) sqlite: Option<OneOrMany>,
    /// Connection string: a URI or keywords. The service file, PG* variables and .pgpass supply missing parts. Default:
    /// none.
    pub(crate) postgres: Option<SecretText>,
    /// Row and column policies. For files, SQLite and system tables. Default: none.
    #[serde(default)]
    pub(crate) policies: Vec<PolicyConfig>,
    /// Databases that are joined here, as database.table. Callers may query all of them through it. Default: none.
    pub(crate) federated: Option<Vec<String>>,
    /// grpc+tls://host:443, or grpc://127.0.0.1:7071 on this machine. Further addresses are replicas, tried in order.
    /// Default: none.
    pub(crate) flight_sql: Option<OneOrMany>,
    /// Flight SQL: bearer token, sent for all callers. Default: none.
    pub(crate) token: Option<SecretText>,
    /// Flight SQL: database of that server. Default: that of the server.
    pub(crate) catalog: Option<String>,
    /// Flight SQL: SQL of the server. Default: datafusion.
    pub(crate) dialect: Option<DialectConfig>,
    /// Flight SQL: maximum time to the first row. Default: 20s.
    pub(crate) timeout: Option<Time>,
    /// Flight SQL: TLS.
    #[serde(default)]
    pub(crate) tls: ClientTlsConfig,
    /// Tidegate servers whose tables of the same name are one table. They need server.flight. Without trust and token,
    /// they receive no credentials. Default: none.
    pub(crate) network: Option<NetworkConfig>,
    /// Live tables of this machine, such as processes and disks. Rows are produced when they are read. {} offers all
    /// tables. Default: none.
    pub(crate) system: Option<SystemConfig>,
    /// Folders with systemd journals: /var/log/journal. The table entries is a log source with the name of the
    /// database. Default: none.
    pub(crate) journal: Option<OneOrMany>,
    /// Journals: access name for command lines and environment variables. Default: none; they are masked for all
    /// callers.
    pub(crate) sensitive: Option<String>,
    /// Whether log files and journals become log sources. Default: true.
    pub(crate) log_sources: Option<bool>,
    /// PostgreSQL: role that calls run as. Default: the login role.
    pub(crate) role: Option<RoleChoice>,
    /// PostgreSQL: setting with all claims as one JSON object: request.jwt.claims. Default: none.
    pub(crate) claims: Option<String>,
    /// PostgreSQL: settings with one claim each: {app.tenant: tenant}. A missing claim leaves its setting empty.
    /// Default: none.
    #[serde(default)]
    pub(crate) settings: BTreeMap<String, String>,
    /// PostgreSQL: what separates tenants. With settings, SQL that callers write is refused. Default: roles.
    #[serde(default)]
    pub(crate) tenancy: TenancyConfig,
    /// PostgreSQL: visible schemas. Default: all that the role may use.
    pub(crate) schemas: Option<Vec<String>>,
    /// PostgreSQL: refuses the database if a role can do more than read and append under ingest. Otherwise this is a
    /// warning. Default: false.
    #[serde(default)]
    pub(crate) strict: bool,
    /// PostgreSQL: whether connections pass a pooler in transaction mode. Default: false.
    #[serde(default)]
    pub(crate) pgbouncer: bool,
    /// PostgreSQL, Flight SQL: whether /ready fails without this database. Default: true.
    pub(crate) required: Option<bool>,
    /// PostgreSQL: maximum planner cost of SQL that callers write. Default: no limit.
    pub(crate) max_cost: Option<f64>,
    /// PostgreSQL: VOLATILE or SECURITY DEFINER functions that callers may use, with or without a schema:
    /// [reports.total, uuid_generate_v4]. Default: none.
    #[serde(default)]
    pub(crate) allow_functions: Vec<String>,
    /// PostgreSQL: maximum size of a row or message, at least 64KiB. A larger one ends its call with an error. Default:
    /// 64MiB.
    pub(crate) max_message_bytes: Option<Size>,
    /// PostgreSQL: schema whose handlers are tools, resources and prompts. tidegate pg install creates it. Default:
    /// none.
    pub(crate) handlers: Option<HandlersConfig>,
    /// Maximum number. Default: 10 for PostgreSQL, 4 for SQLite.
    pub(crate) connections: Option<usize>,
    /// PostgreSQL: maximum wait for a connection. Default: 10s.
    pub(crate) connection_timeout: Option<Time>,
    /// PostgreSQL: maximum wait for a lock. Default: 5s.
    pub(crate) lock_timeout: Option<Time>,
    /// PostgreSQL, SQLite: how long an answer is reused for the same caller. Answers from files are reused until a file
    /// changes. Default: never.
    pub(crate) cache: Option<Time>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SystemConfig {
    /// Offered tables. Default: all.
    pub(crate) tables: Option<Vec<String>>,
    /// Access name for sensitive columns, such as command lines. Default: none; they are masked for all callers.
    pub(crate) sensitive: Option<String>,
    /// Required access names by table: {processes: [admin]}. Default: operator for caches and tables of PostgreSQL,
    /// else none.
    pub(crate) access: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum RoleChoice {
    /// This role for all callers.
    Fixed(String),
    /// One of several roles.
    Chosen(ChosenRole),
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ChosenRole {
    /// Claim that names the role. Default: none.
    pub(crate) claim: Option<String>,
    /// Roles that the claim may select. Default: none.
    pub(crate) allow: Vec<String>,
    /// PostgreSQL roles by role of the caller: {support: reader}. Default: none.
    pub(crate) by_role: BTreeMap<String, String>,
    /// Role of all other callers. Default: none; such callers are refused.
    pub(crate) default: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum HandlersConfig {
    /// Schema of the handlers, which may only read.
    Schema(String),
    /// Schema of the handlers, and options.
    Options(HandlerSchemaConfig),
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HandlerSchemaConfig {
    /// Name of the schema.
    pub(crate) schema: String,
    /// Whether handlers may write. Otherwise their transactions are read-only. Default: false.
    #[serde(default)]
    pub(crate) writes: bool,
    /// Logs all calls, even if the log is off in the database. Default: false.
    #[serde(default)]
    pub(crate) exchange_log: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum TenancyConfig {
    #[default]
    Roles,
    Settings,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TableConfig {
    /// One character, or tab. Default: detected.
    pub(crate) delimiter: Option<String>,
    /// Character that encloses values. Default: ".
    pub(crate) quote: Option<String>,
    /// Character before a quote that is part of a value: a backslash. Default: none; a quote within quotes is doubled.
    pub(crate) escape: Option<String>,
    /// strict: text after a closing quote is an error. lenient: it belongs to the field, unless quotes enclose a line
    /// break. none: quotes are ordinary characters. Default: strict.
    pub(crate) quotes: Option<QuotesConfig>,
    /// Whether blanks around a quoted field, and before others, are dropped: 1, "x". Default: false.
    pub(crate) skip_blanks: Option<bool>,
    /// Whether the first line names the columns. Default: true, unless its values have the same types as the rows below
    /// it.
    pub(crate) header: Option<bool>,
    /// Texts that mean null in all columns, as an empty value always does. Default: N/A, NULL, - and similar markers,
    /// in columns whose other values have a type.
    pub(crate) null: Option<OneOrMany>,
    /// Decimal character, also in texts of sheets. Default: a point.
    pub(crate) decimal: Option<String>,
    /// Character between groups of three digits. Default: none.
    pub(crate) thousands: Option<String>,
    /// utf-8, latin-1, windows-1252, utf-16, shift_jis and others. Default: detected.
    pub(crate) encoding: Option<String>,
    /// Lines or sheet rows before the header. Default: 0.
    pub(crate) skip: Option<usize>,
    /// Rows of another length. fill: missing values are null. trim: excess values are dropped, too. Default: such a row
    /// is an error.
    pub(crate) ragged: Option<RaggedConfig>,
    /// Whether files of this folder form one table. Default: by their columns.
    pub(crate) one_table: Option<bool>,
    /// First character of skipped lines. Default: none.
    pub(crate) comment: Option<String>,
    /// Rows of CSV and JSON files that decide the types: all (full) or some (sample). Default: full up to 8 MiB, else
    /// sample.
    pub(crate) infer: Option<InferConfig>,
    /// Types: string, integer, number, decimal(P,S), boolean, date, timestamp, timestamptz, or PostgreSQL's names.
    /// Times and numbers can have a form: date DD.MM.YYYY, number 1.234,5. Ingest tables have more types, and not null.
    /// Default: detected.
    pub(crate) columns: ColumnTypes,
    /// Log files: combined, common, nginx_error, apache_error, haproxy, cri, klog, syslog, logfmt, json, csvlog,
    /// jsonlog, postgresql or pattern. NAME is the path of a file that is no table: app.txt. Default: detected in files
    /// with the name of a log.
    pub(crate) format: Option<String>,
    /// Log files: regular expression whose named groups become columns, as format: pattern. Default: none.
    pub(crate) pattern: Option<String>,
    /// Log files: types of groups: text, integer, float, boolean or time. A time has a form of strftime or to_char:
    /// time %Y-%m-%d %H:%M:%S. Default: text; times if the group has the name of a time and its values have one form of
    /// times.
    pub(crate) groups: BTreeMap<String, String>,
    /// Ingest: columns that separate the files, or hour(C), day(C) or month(C) of times. Default: none.
    pub(crate) partition_by: Vec<String>,
    /// Ingest: age at which rows are removed, by the first partition of times: 90d. Default: rows are kept.
    pub(crate) retention: Option<Time>,
    /// Ingest: whether rows may add nullable columns. Default: strict.
    pub(crate) evolve: Option<EvolveConfig>,
    /// Ingest: SELECT over incoming, the table of arriving rows. Each becomes one row or none. Default: none.
    pub(crate) transform: Option<String>,
    /// Ingest: columns with attributes of the caller: {tenant: tenant}, {site: claims.site}. Default: none.
    pub(crate) stamp: BTreeMap<String, String>,
    /// Log files: zone of times without one: Europe/Berlin or +02:00. Default: UTC.
    pub(crate) time_zone: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum EvolveConfig {
    Strict,
    AddColumns,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum InferConfig {
    /// All rows.
    Full,
    /// The first rows, and some later ones.
    Sample,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum QuotesConfig {
    /// They enclose whole fields.
    Strict,
    /// Text after a closing quote belongs to the field.
    Lenient,
    /// They are ordinary characters.
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum RaggedConfig {
    /// Missing values at the end are null.
    Fill,
    /// As fill; excess values are dropped.
    Trim,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PolicyConfig {
    /// Table as in list_tables, or "*" for all.
    pub(crate) table: String,
    /// Condition for visible rows: tenant_id = :claims.tenant. It has columns, literals, :subject, :tenant and
    /// :claims.NAME. Callers without the claim see no rows. Default: all rows.
    pub(crate) rows: Option<String>,
    /// Masks: deny, null, hash, {keep_first: 2} or {keep_last: 4}. Default: none.
    #[serde(default)]
    pub(crate) columns: BTreeMap<String, MaskConfig>,
    /// Roles without this policy. Default: none.
    #[serde(default)]
    pub(crate) except_roles: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum MaskConfig {
    /// deny, null or hash.
    Named(NamedMask),
    /// Some characters stay visible.
    Partial(PartialMask),
    /// An unquoted null of YAML: the mask null.
    NullLiteral,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum NamedMask {
    Deny,
    Null,
    Hash,
}

/// Characters that stay visible. Exactly one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PartialMask {
    /// Number of visible first characters; the others become stars. Default: none.
    pub(crate) keep_first: Option<u32>,
    /// Number of visible last characters; the others become stars. Default: none.
    pub(crate) keep_last: Option<u32>,
}
