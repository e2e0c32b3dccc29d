//! Folders, files and globs.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use tidegate_engines::{FileDatabase, FileLimits};

use super::{ConfiguredDatabase, KindParts, Opening, OpeningResult, key_problem};
use crate::config::quantities::OneOrMany;
use crate::config::tables;
use crate::config::types::{FileTableConfig, PolicyConfig};

/// Files of CSV, Parquet, JSON and other formats, sheets and logs.
#[derive(Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct FilesConfig {
    /// Folders, files or globs: data/2024-*.csv.
    files: OneOrMany,
    /// Options by table name, folder or path. Options that are not set are detected. Default: detected.
    #[serde(default)]
    tables: BTreeMap<String, FileTableConfig>,
    /// Row and column policies. Default: none.
    #[serde(default)]
    policies: Vec<PolicyConfig>,
    /// Whether log files become log sources. Default: true.
    log_sources: Option<bool>,
}

impl ConfiguredDatabase for FilesConfig {
    fn policies(&self) -> &[PolicyConfig] {
        &self.policies
    }

    fn has_log_sources(&self) -> bool {
        self.log_sources.unwrap_or(true)
    }

    fn open(&self, name: &str, path: &str, opening: &mut Opening<'_>) -> OpeningResult {
        let tables = tables::build_text_tables(&self.tables, path)?;
        let (files, engine) = (opening.resolve(&self.files), opening.engine());
        let opened = FileDatabase::open_with(name, files, engine, FileLimits::default(), tables);
        let policies = opening.row_policies(&self.policies, path)?;
        let opened = opened.map_err(|error| key_problem(path, "files", error))?;
        let files = Arc::new(opened.with_row_policies(policies));
        Ok((files.clone(), KindParts { files: Some(files), ..KindParts::default() }))
    }
}

/// Globs without files, and options of tables that do not fit.
pub(super) async fn warnings(files: &FileDatabase) -> Vec<String> {
    let unmatched = files.unmatched_globs().into_iter();
    let mut warnings: Vec<String> = unmatched.map(|glob| format!("no file matches {glob} yet")).collect();
    // An unreadable folder is reported by the database itself.
    let found = files.table_option_problems().await.unwrap_or_default();
    warnings.extend(found.into_iter().map(|reason| format!("tables: {reason}")));
    warnings
}
