//! Configuration of databases: files, PostgreSQL, SQLite, federated databases, servers of Flight SQL, networks, live system
//! tables, and row policies.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::network::{ClientTlsConfig, DialectConfig, NetworkConfig};
use crate::config::quantities::{ColumnTypes, OneOrMany, SecretText, Size, Time};

/// A database. Exactly one of files, postgres, sqlite, federated, flight_sql, network, system and journal sets its kind,
/// or ingest with a folder.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DatabaseConfig {
    /// Name of the database, as callers use it. Required.
    pub(crate) name: String,
    /// Tenants whose callers can see the database, with every declared tool, resource and handler that uses it.
    /// Default: all callers.
    pub(crate) tenants: Option<Vec<String>>,
    /// Folder, file or glob (data/2024-*.csv), or a list of these, relative to this file. Default: none.
    pub(crate) files: Option<OneOrMany>,
    /// Folder of tables that take rows, relative to this file: the database has these tables. With postgres and sqlite, the
    /// name of a table that takes rows, or a list of names; with network, such a list. Roles grant the right to write.
    /// Default: none.
    pub(crate) ingest: Option<OneOrMany>,
    /// Ingest: whether the first rows for a table that is not declared create it. Default: true.
    pub(crate) create_tables: Option<bool>,
    /// How CSV files, sheets and log files are read, by table name, folder or path of a file, and what tables of an ingest
    /// folder are, by table name. Default: detected.
    #[serde(default)]
    pub(crate) tables: BTreeMap<String, TableConfig>,
    /// SQLite file, or a list of them, relative to this file. Default: none.
    pub(crate) sqlite: Option<OneOrMany>,
    /// Connection string of PostgreSQL, in the syntax of psql: a URI or keywords. The service file, PG* variables and
    /// .pgpass supply missing parts. Write it as ${VARIABLE} if it contains a password. Default: none.
    pub(crate) postgres: Option<SecretText>,
    /// Row and column policies. For files, SQLite and system tables; PostgreSQL has row-level security. Default: none.
    #[serde(default)]
    pub(crate) policies: Vec<PolicyConfig>,
    /// Names of other databases whose tables are joined here, as database.table. A caller that may query this database
    /// may query all of them through it. Default: none.
    pub(crate) federated: Option<Vec<String>>,
    /// Address of a server of Arrow Flight SQL: grpc+tls://host:443, or grpc://127.0.0.1:7071 on this machine. In a list,
    /// further servers with the same rows follow, which are tried in this order. Default: none.
    pub(crate) flight_sql: Option<OneOrMany>,
    /// Flight SQL: bearer token of this server there. All callers use it. Write it as ${VARIABLE}. Default: none.
    pub(crate) token: Option<SecretText>,
    /// Flight SQL: name of the catalog, which is a database of that server. Default: that of the server.
    pub(crate) catalog: Option<String>,
    /// Flight SQL: the SQL of the server. Default: datafusion.
    pub(crate) dialect: Option<DialectConfig>,
    /// Flight SQL: how long the first row of an answer may take; after it, the time limit of the call applies. Default:
    /// 20s.
    pub(crate) timeout: Option<Time>,
    /// Flight SQL: TLS of the connections.
    #[serde(default)]
    pub(crate) tls: ClientTlsConfig,
    /// Nodes, which are other servers of Tidegate: their tables of the same name are one table. Default: none.
    pub(crate) network: Option<NetworkConfig>,
    /// Live tables of the machine that the server runs on: processes, connections, disks and others. Rows are produced
    /// when they are read. {} offers all tables. Default: none.
    pub(crate) system: Option<SystemConfig>,
    /// Folder with journal files of systemd, or a list of these: /var/log/journal. The table entries has all entries, and is
    /// a log source with the name of the database. Default: none.
    pub(crate) journal: Option<OneOrMany>,
    /// Journals: access name that a caller needs to read command lines and environment variables. They are masked for all
    /// others. Default: none; they are masked for all callers.
    pub(crate) sensitive: Option<String>,
    /// Files, journals: whether log files and journals are log sources by themselves. Default: true.
    pub(crate) log_sources: Option<bool>,
    /// PostgreSQL: the role that calls run as. Default: the login role.
    pub(crate) role: Option<RoleChoice>,
    /// PostgreSQL: the setting that receives all claims of the caller as one JSON object, such as request.jwt.claims.
    /// Default: none.
    pub(crate) claims: Option<String>,
    /// PostgreSQL: further settings, and the claim that each one receives: {app.tenant: tenant}. A setting is empty for
    /// callers without its claim. Default: none.
    #[serde(default)]
    pub(crate) settings: BTreeMap<String, String>,
    /// PostgreSQL: roles, or settings if only settings separate the tenants. With settings, SQL that a caller writes is
    /// refused. Default: roles.
    #[serde(default)]
    pub(crate) tenancy: TenancyConfig,
    /// PostgreSQL: the schemas whose tables are visible. Default: all that the role may use.
    pub(crate) schemas: Option<Vec<String>>,
    /// PostgreSQL: refuses the database if its login role, or a role that calls run as, can do more than read, and
    /// take rows for its tables under ingest; otherwise it only logs a warning. Default: false.
    #[serde(default)]
    pub(crate) strict: bool,
    /// PostgreSQL: whether a connection pooler in transaction mode is in between. Default: false.
    #[serde(default)]
    pub(crate) pgbouncer: bool,
    /// PostgreSQL, Flight SQL: whether the server is not ready, according to /ready, while this database does not answer.
    /// Default: true.
    pub(crate) required: Option<bool>,
    /// PostgreSQL: the highest cost estimate of the planner, in its units, for SQL that a caller writes. Default: no
    /// limit.
    pub(crate) max_cost: Option<f64>,
    /// PostgreSQL: functions of the database that SQL of callers may call although they are VOLATILE or SECURITY
    /// DEFINER, each with or without its schema: [reports.total, uuid_generate_v4]. Default: none.
    #[serde(default)]
    pub(crate) allow_functions: Vec<String>,
    /// PostgreSQL: the maximum size of one row, or of another message of the server. A larger one ends its call with an
    /// error. At least 64KiB. Default: 64MiB.
    pub(crate) max_message_bytes: Option<Size>,
    /// PostgreSQL: the schema whose handlers are offered as tools, resources and prompts. tidegate pg install creates
    /// it. Default: none.
    pub(crate) handlers: Option<HandlersConfig>,
    /// Maximum number of connections. Default: 10 for PostgreSQL, 4 for SQLite.
    pub(crate) connections: Option<usize>,
    /// PostgreSQL: how long a call waits for a connection. Default: 10s.
    pub(crate) connection_timeout: Option<Time>,
    /// PostgreSQL: how long a statement waits for a lock. Default: 5s.
    pub(crate) lock_timeout: Option<Time>,
    /// PostgreSQL and SQLite: how long the answer to a statement is reused for the same caller. Default: never. Answers
    /// from files are reused until a file changes.
    pub(crate) cache: Option<Time>,
}

/// Live system tables.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SystemConfig {
    /// Names of the tables that are offered. Default: all.
    pub(crate) tables: Option<Vec<String>>,
    /// Access name that a caller needs to read sensitive columns, such as command lines and environment variables. They
    /// are masked for all others. Default: none; they are masked for all callers.
    pub(crate) sensitive: Option<String>,
    /// Access names that a caller needs to see a table, all of them, by the name of the table: {processes: [admin]}.
    /// Default: operator for caches and tables of PostgreSQL, else none.
    pub(crate) access: BTreeMap<String, Vec<String>>,
}

/// The PostgreSQL role that calls run as.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum RoleChoice {
    /// This role for all callers.
    Fixed(String),
    /// One of several roles.
    Chosen(ChosenRole),
}

/// A role that a claim or a role of the caller selects.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ChosenRole {
    /// Claim that contains the name of the PostgreSQL role. Default: none.
    pub(crate) claim: Option<String>,
    /// Roles that the claim may select. Default: none.
    pub(crate) allow: Vec<String>,
    /// PostgreSQL role for each role of this file: {support: reader}. Default: none.
    pub(crate) by_role: BTreeMap<String, String>,
    /// PostgreSQL role of callers for whom no other one is selected. Default: none; such callers are refused.
    pub(crate) default: Option<String>,
}

/// The handlers of a PostgreSQL database.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum HandlersConfig {
    /// Schema of the handlers, which may only read.
    Schema(String),
    /// Schema of the handlers, and options.
    Options(HandlerSchemaConfig),
}

/// A schema of handlers, and options.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HandlerSchemaConfig {
    /// Name of the schema.
    pub(crate) schema: String,
    /// Whether handlers may write. Otherwise each one runs in a read-only transaction, whatever it declares. Default:
    /// false.
    #[serde(default)]
    pub(crate) writes: bool,
    /// Writes each call to the exchange log of the database, even if the log is off in the database. Default: false.
    #[serde(default)]
    pub(crate) exchange_log: bool,
}

/// What separates tenants in PostgreSQL.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum TenancyConfig {
    #[default]
    Roles,
    Settings,
}

/// How a table of CSV files, of a sheet, or of log files is read. Options that are not set are detected.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TableConfig {
    /// Separator between values: one character, or tab. Default: detected.
    pub(crate) delimiter: Option<String>,
    /// Character that encloses values: one character. Default: ".
    pub(crate) quote: Option<String>,
    /// Character within quotes that takes the meaning from a quote behind it: one character, such as a backslash. Default:
    /// none; a quote within quotes is doubled.
    pub(crate) escape: Option<String>,
    /// How quotes are read. strict: they enclose whole fields; text after a closing quote is an error. lenient: such text
    /// belongs to the field, unless the quotes enclose a line break. none: quotes are characters like others. Quotes that are
    /// never closed are an error, except with none. Default: strict.
    pub(crate) quotes: Option<QuotesConfig>,
    /// Whether blanks at the beginning of a field, and between its closing quote and the delimiter, are no part of it: 1, "x".
    /// Default: false.
    pub(crate) skip_blanks: Option<bool>,
    /// Whether the first line names the columns. Default: true, unless its values have the same types as the rows below
    /// it.
    pub(crate) header: Option<bool>,
    /// Text that means null in columns of every type, or a list of texts. An empty value is always null. Default: N/A,
    /// NULL, - and similar markers, in columns whose other values have a type.
    pub(crate) null: Option<OneOrMany>,
    /// Decimal separator of numbers in CSV files and in texts of sheets: one character. Default: a point.
    pub(crate) decimal: Option<String>,
    /// Separator between groups of three digits: one character. Default: none.
    pub(crate) thousands: Option<String>,
    /// Character encoding: utf-8, latin-1, windows-1252, utf-16, shift_jis and others. Default: detected.
    pub(crate) encoding: Option<String>,
    /// Number of lines (rows of a sheet) to skip before the header. Default: 0.
    pub(crate) skip: Option<usize>,
    /// How rows with fewer or more values than columns are read. fill: missing values at the end are null. trim: as
    /// fill, and values beyond the last column are dropped. Default: such a row is an error.
    pub(crate) ragged: Option<RaggedConfig>,
    /// Whether the files of this folder form one table (true) or one table each (false). Default: by their columns.
    pub(crate) one_table: Option<bool>,
    /// Lines that begin with this character are skipped: one character. Default: none.
    pub(crate) comment: Option<String>,
    /// Which rows decide the types of CSV and JSON files. full: all, which reads a file once before the first answer. sample:
    /// the first rows; a later value that does not fit corrects the type. Default: full up to 8 MiB, else sample.
    pub(crate) infer: Option<InferConfig>,
    /// Types of columns by name: string, integer, number, decimal(P,S), boolean, date, timestamp or timestamptz, or the names that
    /// PostgreSQL has for them. The last three may have a form: date DD.MM.YYYY. Types of numbers may have the number 1234.5 as
    /// the column has it: number 1.234,5. Tables of an ingest folder have more types, and not null after a type. Default:
    /// detected.
    pub(crate) columns: ColumnTypes,
    /// Log files: the format of their lines: combined, common, nginx_error, apache_error, haproxy, cri, klog, syslog,
    /// logfmt, json, csvlog, jsonlog or postgresql (text) of PostgreSQL, or pattern. For a file without the name of a table,
    /// NAME is its path with its extension: app.txt. Default: detected in files with the name of a log.
    pub(crate) format: Option<String>,
    /// Log files: a regular expression whose named groups become columns. It is the format pattern. Default: none.
    pub(crate) pattern: Option<String>,
    /// Log files: types of the groups of the pattern by name: text, integer, float, boolean, or time with its form as
    /// strftime or to_char write it: time %Y-%m-%d %H:%M:%S, time YYYY-MM-DD HH24:MI:SS. Default: text; times if the group
    /// has the name of a time and its values have one form of times.
    pub(crate) groups: BTreeMap<String, String>,
    /// Ingest: columns by whose values the files of the table are separated: a column, or hour(C), day(C) or month(C) of a
    /// column of times. Default: none.
    pub(crate) partition_by: Vec<String>,
    /// Ingest: the age after which rows are removed, such as 90d, by the first partition of times. Default: rows are kept.
    pub(crate) retention: Option<Time>,
    /// Ingest: whether rows may add nullable columns (add_columns) or must have those of the table (strict). Default:
    /// strict.
    pub(crate) evolve: Option<EvolveConfig>,
    /// Ingest: a SELECT over the table incoming, which has the rows that arrive: each row by itself becomes a row of the
    /// table, or none. Default: none.
    pub(crate) transform: Option<String>,
    /// Ingest: columns that get an attribute of the caller, whatever its rows have: {tenant: tenant} or {site:
    /// claims.site}. Default: none.
    pub(crate) stamp: BTreeMap<String, String>,
    /// Log files: the zone of times that name none, such as Europe/Berlin or +02:00. Default: UTC.
    pub(crate) time_zone: Option<String>,
}

/// Whether rows may add columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum EvolveConfig {
    Strict,
    AddColumns,
}

/// Which rows decide the types of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum InferConfig {
    /// All rows.
    Full,
    /// The first rows, and some later ones.
    Sample,
}

/// How quotes are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum QuotesConfig {
    /// They enclose whole fields.
    Strict,
    /// What follows a closing quote belongs to the field.
    Lenient,
    /// They are characters like others.
    None,
}

/// How rows with fewer or more values than columns are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum RaggedConfig {
    /// Missing values at the end of a row are null.
    Fill,
    /// As fill; values beyond the last column are dropped.
    Trim,
}

/// Rows and columns of a table that callers see.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PolicyConfig {
    /// Name of the table as in list_tables, or "*" for all tables. Required.
    pub(crate) table: String,
    /// Condition for visible rows, over columns of the table, literals, :subject, :tenant and :claims.NAME: tenant_id =
    /// :claims.tenant. Callers without the claim see no rows. Default: all rows.
    pub(crate) rows: Option<String>,
    /// Masks of columns: deny, null, hash, {keep_first: 2} or {keep_last: 4}. Default: none.
    #[serde(default)]
    pub(crate) columns: BTreeMap<String, MaskConfig>,
    /// Roles whose callers see all rows and columns. Default: none.
    #[serde(default)]
    pub(crate) except_roles: Vec<String>,
}

/// Mask of a column.
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

/// Masks without a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum NamedMask {
    Deny,
    Null,
    Hash,
}

/// Characters that stay visible. Exactly one of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PartialMask {
    /// Number of characters that stay visible at the beginning; the others become stars. Default: none.
    pub(crate) keep_first: Option<u32>,
    /// Number of characters that stay visible at the end; the others become stars. Default: none.
    pub(crate) keep_last: Option<u32>,
}
