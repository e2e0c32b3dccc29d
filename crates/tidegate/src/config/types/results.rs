//! Stored results: where they are kept, how much and how long.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use super::super::quantities::{Size, Time};

/// Answers that do not fit inline, kept to be paged through and fetched.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ResultsEntry {
    /// Whether they are kept at all.
    pub(crate) enabled: bool,
    /// The folder; tidegate/results in the user's cache folder unless said.
    pub(crate) folder: Option<PathBuf>,
    /// Size of an answer that goes on by itself because it did not fit; 64MiB unless said.
    pub(crate) store_limit: Option<Size>,
    /// Size of a block's rows before they are compressed; 4MiB unless said.
    pub(crate) block_bytes: Option<Size>,
    /// How long a result is kept; 1h unless said.
    pub(crate) ttl: Option<Time>,
    /// Size of all results; 10GiB unless said.
    pub(crate) total: Option<Size>,
    /// Size of the results of one principal; 2GiB unless said.
    pub(crate) per_principal: Option<Size>,
    /// What stays free of the disk; 1GiB unless said.
    pub(crate) keep_free: Option<Size>,
    /// How long a query may run on in the background; 10m unless said.
    pub(crate) timeout: Option<Time>,
}

impl Default for ResultsEntry {
    fn default() -> Self {
        Self {
            enabled: true,
            folder: None,
            store_limit: None,
            block_bytes: None,
            ttl: None,
            total: None,
            per_principal: None,
            keep_free: None,
            timeout: None,
        }
    }
}
