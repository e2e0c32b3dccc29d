//! Journals of systemd.

use std::sync::Arc;

use tidegate_engines::{JournalTable, SystemDatabase};

use super::kinds::keys_of_kind;
use super::{ConfiguredDatabase, KindParts, Opening, OpeningResult, key_problem};
use crate::config::quantities::OneOrMany;
use crate::config::types::PolicyConfig;

keys_of_kind! {
    struct JournalConfig {
        journal: OneOrMany,
        sensitive: Option<String>,
        policies: Vec<PolicyConfig>,
    }
    elsewhere { log_sources }
}

impl ConfiguredDatabase for JournalConfig {
    fn open(&self, name: &str, path: &str, opening: &mut Opening<'_>) -> OpeningResult {
        let policies = opening.row_policies(&self.policies, path)?;
        let table = JournalTable::open(opening.resolve(&self.journal));
        let opened = table
            .and_then(|table| SystemDatabase::of_journal(name, table, self.sensitive.clone(), opening.engine()))
            .map_err(|error| key_problem(path, "journal", error))?;
        Ok((Arc::new(opened.with_row_policies(policies)), KindParts::default()))
    }
}
