//! Folders whose files callers may read.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SharedFolderConfig {
    /// Name in calls: letters, digits, dots, _ and -.
    pub(crate) name: String,
    /// Folder with the files. Links out of it lead nowhere, and hidden files do not exist.
    pub(crate) path: PathBuf,
    /// Access names that callers need, all of them, besides the right to the tools. Default: none.
    #[serde(default)]
    pub(crate) access: Vec<String>,
}
