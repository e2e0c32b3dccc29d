//! Configuration of stored results: folder, sizes and durations.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use super::super::quantities::{Size, Time};

/// Stored results: answers that do not fit inline, kept for later pages and downloads.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ResultsEntry {
    /// Whether answers are stored. Default: true.
    pub(crate) enabled: bool,
    /// Folder of stored results, relative to this file. Default: tidegate/results in the user's cache folder.
    pub(crate) folder: Option<PathBuf>,
    /// Maximum size of an answer that is stored because it did not fit inline, in bytes. Default: 64MiB.
    pub(crate) store_limit: Option<Size>,
    /// Size of the rows of a block before compression, in bytes. Default: 4MiB.
    pub(crate) block_bytes: Option<Size>,
    /// How long a result is kept. Default: 1h.
    pub(crate) ttl: Option<Time>,
    /// Maximum size of all results, in bytes. Default: 10GiB.
    pub(crate) total: Option<Size>,
    /// Maximum size of the results of one principal, in bytes. Default: 2GiB.
    pub(crate) per_principal: Option<Size>,
    /// Disk space that stays free, in bytes. Default: 1GiB.
    pub(crate) keep_free: Option<Size>,
    /// How long a query may continue in the background. Default: 10m.
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
