//! Folders, files and globs.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_engines::{FileDatabase, FileLimits};

use super::kinds::keys_of_kind;
use super::{ConfiguredDatabase, KindParts, Opening, OpeningResult, key_problem};
use crate::config::quantities::OneOrMany;
use crate::config::tables;
use crate::config::types::{PolicyConfig, TableConfig};

keys_of_kind! {
    struct FilesConfig {
        files: OneOrMany,
        tables: BTreeMap<String, TableConfig>,
        policies: Vec<PolicyConfig>,
    }
    elsewhere { log_sources }
}

impl ConfiguredDatabase for FilesConfig {
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
