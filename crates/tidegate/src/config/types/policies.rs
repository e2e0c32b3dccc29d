//! Configuration of row policies: which rows and columns of a table callers see.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

/// Rows and columns of a table that callers see.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PolicyEntry {
    /// Name of the table as in list_tables, or "*" for all tables. Required.
    pub(crate) table: String,
    /// Condition for visible rows, over columns of the table, literals, :subject, :tenant and :claims.NAME: tenant_id =
    /// :claims.tenant. Callers without the claim see no rows. Default: all rows.
    pub(crate) rows: Option<String>,
    /// Masks of columns: deny, null, hash, {keep_first: 2} or {keep_last: 4}. Default: none.
    #[serde(default)]
    pub(crate) columns: BTreeMap<String, MaskEntry>,
    /// Roles whose callers see all rows and columns. Default: none.
    #[serde(default)]
    pub(crate) except_roles: Vec<String>,
}

/// Mask of a column.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum MaskEntry {
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
