//! Log sources.

use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogSourceConfig {
    /// Letters, digits, dots, _ and -.
    pub(crate) name: String,
    /// database.table: shop.events.
    pub(crate) table: String,
    /// Column with the time of an entry. Default: recognised by names and types.
    pub(crate) time: Option<String>,
    /// Column with the text of an entry. Default: recognised by names and types.
    pub(crate) message: Option<String>,
    /// Column with the severity of an entry. Default: recognised by names and types.
    pub(crate) severity: Option<String>,
    /// Further columns that callers can see and search. Default: all.
    #[serde(default)]
    pub(crate) fields: Vec<String>,
    /// Access names that callers need, all of them, besides the right to the database. Default: none.
    #[serde(default)]
    pub(crate) access: Vec<String>,
}
