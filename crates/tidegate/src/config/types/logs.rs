//! Log sources.

use schemars::JsonSchema;
use serde::Deserialize;

/// A log source: a table whose rows are log entries, for the tools list_logs_sources, list_logs_fields,
/// list_logs_fields_values and query_logs.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogSourceConfig {
    /// Name of the source: letters, digits, dots, _ and -. Required.
    pub(crate) name: String,
    /// The table with its database: shop.events. Required.
    pub(crate) table: String,
    /// Column with the time of an entry. Default: recognised by names and types.
    pub(crate) time: Option<String>,
    /// Column with the text of an entry. Default: recognised by names and types.
    pub(crate) message: Option<String>,
    /// Column with the severity of an entry. Default: recognised by names and types.
    pub(crate) severity: Option<String>,
    /// The further columns that callers can see and search. Default: all.
    #[serde(default)]
    pub(crate) fields: Vec<String>,
    /// Access names that a caller must hold, all of them, besides the right to the database. Default: none.
    #[serde(default)]
    pub(crate) access: Vec<String>,
}
