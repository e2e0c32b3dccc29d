//! Databases: files, PostgreSQL, SQLite, and several of them as one.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::PolicyEntry;
use crate::config::quantities::{OneOrMany, SecretText, Time};

/// A database: one of files, postgres, sqlite and federated says of which kind.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DatabaseEntry {
    /// The name that callers give.
    pub(crate) name: String,
    /// The tenants whose callers know of it; everybody does unless said. Declared tools and resources over it are theirs,
    /// too.
    pub(crate) tenants: Option<Vec<String>>,
    /// A folder, a file or a pattern of files (data/2024-*.csv), or several; relative to this file.
    pub(crate) files: Option<OneOrMany>,
    /// How single tables of CSV files are read, by the tables' names.
    #[serde(default)]
    pub(crate) tables: BTreeMap<String, TableEntry>,
    /// A SQLite file, or several; relative to this file.
    pub(crate) sqlite: Option<OneOrMany>,
    /// Where PostgreSQL is, as psql takes it: a URI or keywords, completed by service, PG* variables and .pgpass.
    /// Write it as ${VARIABLE} when a password is in it.
    pub(crate) postgres: Option<SecretText>,
    /// Files and SQLite: which rows and columns of its tables callers see. PostgreSQL has row-level security.
    #[serde(default)]
    pub(crate) policies: Vec<PolicyEntry>,
    /// The names of other databases whose tables are joined here, as database.table. Whoever may ask this database asks
    /// them through it.
    pub(crate) federated: Option<Vec<String>>,
    /// PostgreSQL: the role that calls run as; the one that logs in unless said.
    pub(crate) role: Option<RoleChoice>,
    /// PostgreSQL: the setting that holds the caller's claims as JSON for policies, such as request.jwt.claims.
    pub(crate) claims: Option<String>,
    /// PostgreSQL: settings and the claim that each holds: {app.tenant: tenant}.
    #[serde(default)]
    pub(crate) settings: BTreeMap<String, String>,
    /// PostgreSQL: settings where only settings keep tenants apart; then callers may not write SQL of their own.
    #[serde(default)]
    pub(crate) tenancy: TenancyEntry,
    /// PostgreSQL: the schemas whose tables are shown; all that the role may use unless said.
    pub(crate) schemas: Option<Vec<String>>,
    /// PostgreSQL: refuses a login role that may do more than read, instead of warning about it.
    #[serde(default)]
    pub(crate) strict: bool,
    /// PostgreSQL: a pooler in transaction mode stands between.
    #[serde(default)]
    pub(crate) pgbouncer: bool,
    /// PostgreSQL: the most that the planner may expect a caller's own SQL to cost, in its units.
    pub(crate) max_cost: Option<f64>,
    /// PostgreSQL: the schema whose handlers are served as tools, resources and prompts; tidegate pg install makes it.
    pub(crate) handlers: Option<HandlersEntry>,
    /// Connections at most; 10 to PostgreSQL unless said, 4 to SQLite.
    pub(crate) connections: Option<usize>,
    /// How long a call waits for a connection; 10s unless said.
    pub(crate) connection_timeout: Option<Time>,
    /// PostgreSQL: how long a statement waits for a lock; 5s unless said.
    pub(crate) lock_timeout: Option<Time>,
    /// PostgreSQL and SQLite: how old an answer may be that is given again to the same question; none is ever, unless
    /// said. Answers of files are given again until a file changes.
    pub(crate) cache: Option<Time>,
}

/// The role that calls run as.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum RoleChoice {
    /// This one, whoever calls.
    Fixed(String),
    /// One of several.
    Chosen(ChosenRole),
}

/// The role that a caller's claim or role chooses.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ChosenRole {
    /// The claim that names the role.
    pub(crate) claim: Option<String>,
    /// The roles that the claim may name.
    pub(crate) allow: Vec<String>,
    /// Roles of this file, and the role of the database that belongs to each.
    pub(crate) by_role: BTreeMap<String, String>,
    /// The role of callers for whom nothing is chosen; without one they are refused.
    pub(crate) default: Option<String>,
}

/// The handlers inside a PostgreSQL database.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum HandlersEntry {
    /// Those of this schema, which only read.
    Schema(String),
    /// Those of a schema, and what they may.
    Options(HandlerSchemaEntry),
}

/// The handlers of a schema, and what they may.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HandlerSchemaEntry {
    /// The schema that holds them.
    pub(crate) schema: String,
    /// Lets them write. Otherwise each runs in a transaction that only reads, whatever it says of itself.
    #[serde(default)]
    pub(crate) writes: bool,
    /// Writes each call into the database's exchange log, also where its own switch is off.
    #[serde(default)]
    pub(crate) exchange_log: bool,
}

/// What keeps tenants apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum TenancyEntry {
    #[default]
    Roles,
    Settings,
}

/// How a table of CSV files, or of a sheet, is read. What is not declared is found out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TableEntry {
    /// What stands between values: one character, or tab.
    pub(crate) delimiter: Option<String>,
    /// What stands around values: one character.
    pub(crate) quote: Option<String>,
    /// Whether the first line names the columns; it does unless its values are like those of the rows below it.
    pub(crate) header: Option<bool>,
    /// The text that means null in every column, or several, beside the empty one. Without it, N/A, NA, n/a, NULL, -,
    /// \\N and the like do in columns whose other values have a type.
    pub(crate) null: Option<OneOrManyTexts>,
    /// What stands before the fraction of a number: one character; a point unless said.
    pub(crate) decimal: Option<String>,
    /// What stands between groups of three digits: one character.
    pub(crate) thousands: Option<String>,
    /// How characters are written as bytes: utf-8, latin-1, windows-1252, utf-16, shift_jis, …
    pub(crate) encoding: Option<String>,
    /// Lines before the header that are passed over; rows of a sheet.
    pub(crate) skip: Option<usize>,
    /// What becomes of rows with fewer or more values than there are columns; an error unless said.
    pub(crate) ragged: Option<RaggedEntry>,
    /// The files of this folder are one table (true), or a table each (false), whatever their columns are.
    pub(crate) one_table: Option<bool>,
    /// Lines that begin with this character are skipped.
    pub(crate) comment: Option<String>,
    /// Types of columns by their names: string, integer, number, decimal(P,S), boolean, date or timestamp.
    pub(crate) columns: BTreeMap<String, String>,
}

/// A text, or several.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum OneOrManyTexts {
    /// One.
    One(String),
    /// Several.
    Many(Vec<String>),
}

/// What becomes of rows with fewer or more values than there are columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum RaggedEntry {
    /// Values that lack at the end are null.
    Fill,
    /// As fill; values beyond the last column are left out.
    Trim,
}
