//! Row policies: which rows and columns of a database's tables callers see.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

/// What callers see of a table.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PolicyEntry {
    /// The table's name as list_tables shows it, or "*" for all tables.
    pub(crate) table: String,
    /// A condition for the rows that are shown, over the table's columns, literals, :subject, :tenant and :claims.NAME:
    /// tenant_id = :claims.tenant. Callers without the claim see no rows.
    pub(crate) rows: Option<String>,
    /// Columns that are not shown as they are: deny, null, hash, {keep_first: 2} or {keep_last: 4}.
    #[serde(default)]
    pub(crate) columns: BTreeMap<String, MaskEntry>,
    /// Roles whose callers see everything.
    #[serde(default)]
    pub(crate) except_roles: Vec<String>,
}

/// How a column is shown.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum MaskEntry {
    /// As one of these.
    Named(NamedMask),
    /// In part.
    Partial(PartialMask),
    /// As null, which YAML reads as nothing.
    NullLiteral,
}

/// Masks that want no number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum NamedMask {
    Deny,
    Null,
    Hash,
}

/// Characters that are kept: one of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PartialMask {
    /// So many of the first characters; the others become stars.
    pub(crate) keep_first: Option<u32>,
    /// So many of the last characters.
    pub(crate) keep_last: Option<u32>,
}
