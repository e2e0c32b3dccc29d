//! The values of keys of databases: options of tables, row policies, and maps of one kind. The keys themselves are with the
//! kinds of databases.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::quantities::{ColumnTypes, OneOrMany, Time};

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
    /// Roles of the server by role of the caller: {support: reader}. Default: none.
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
    /// Errors and ids as the dispatcher of pgmi has them: pgmi. Default: none.
    pub(crate) compatibility: Option<CompatibilityConfig>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum CompatibilityConfig {
    Pgmi,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum TenancyConfig {
    #[default]
    Roles,
    Settings,
}

/// Options of CSV files and sheets, or of log files.
#[derive(Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub(crate) struct FileTableConfig {
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
    /// Times and numbers can have a form: date DD.MM.YYYY, number 1.234,5. Or what columns mean. Default: detected.
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
    /// Log files: zone of times without one: Europe/Berlin or +02:00. Default: UTC.
    pub(crate) time_zone: Option<String>,
}

/// A table of a folder that takes rows.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub(crate) struct IngestTableConfig {
    /// Types, as string, int64, decimal(P,S) or timestamp not null; or what columns mean. Default: those of the first
    /// rows.
    pub(crate) columns: ColumnTypes,
    /// Columns that separate the files, or hour(C), day(C) or month(C) of times. Default: none.
    pub(crate) partition_by: Vec<String>,
    /// Age at which rows are removed, by the first partition of times: 90d. Default: rows are kept.
    pub(crate) retention: Option<Time>,
    /// Whether rows may add nullable columns. Default: strict.
    pub(crate) evolve: Option<EvolveConfig>,
    /// SELECT over incoming, the table of arriving rows. Each becomes one row or none. Default: none.
    pub(crate) transform: Option<String>,
    /// Columns with attributes of the caller: {tenant: tenant}, {site: claims.site}. Default: none.
    pub(crate) stamp: BTreeMap<String, String>,
}

/// A table that takes rows, and whose database has its columns.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub(crate) struct StampsConfig {
    /// Columns with attributes of the caller: {tenant: tenant}, {site: claims.site}. Default: none.
    pub(crate) stamp: BTreeMap<String, String>,
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
