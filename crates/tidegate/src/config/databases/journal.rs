//! Journals of systemd.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use tidegate_engines::{JournalTable, SystemDatabase};

use super::{ConfiguredDatabase, KindParts, Opening, OpeningResult, UsedKeys, key_problem};
use crate::config::quantities::OneOrMany;
use crate::config::types::PolicyConfig;

/// Journals of systemd.
#[derive(Deserialize, JsonSchema)]
pub(super) struct JournalConfig {
    /// Folders with systemd journals: /var/log/journal. The table entries is a log source with the name of the
    /// database.
    journal: OneOrMany,
    /// Access name for command lines and environment variables. Default: none; they are masked for all callers.
    sensitive: Option<String>,
    /// Row and column policies. Default: none.
    #[serde(default)]
    policies: Vec<PolicyConfig>,
    /// Whether the journal becomes a log source. Default: true.
    log_sources: Option<bool>,
}

impl ConfiguredDatabase for JournalConfig {
    fn used_keys(&self) -> UsedKeys<'_> {
        UsedKeys { policies: &self.policies, log_sources: self.log_sources, ..UsedKeys::default() }
    }

    fn open(&self, name: &str, path: &str, opening: &mut Opening<'_>) -> OpeningResult {
        let policies = opening.row_policies(&self.policies, path)?;
        let table = JournalTable::open(opening.resolve(&self.journal));
        let opened = table
            .and_then(|table| SystemDatabase::of_journal(name, table, self.sensitive.clone(), opening.engine()))
            .map_err(|error| key_problem(path, "journal", error))?;
        Ok((Arc::new(opened.with_row_policies(policies)), KindParts::default()))
    }
}
