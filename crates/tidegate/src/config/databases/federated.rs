//! Databases whose tables are joined.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use tidegate_core::nearest_names;
use tidegate_engines::FederatedDatabase;

use super::{ConfiguredDatabase, KindParts, OpenedDatabase, Opening, OpeningResult, UsedKeys, key_problem};
use crate::config::problems::Problems;

const POLICIES_MESSAGE: &str =
    "is for files, SQLite and MySQL; put them on the databases that are joined here, where they hold as well";

/// Other databases, whose tables can be joined.
#[derive(Deserialize, JsonSchema)]
pub(super) struct FederatedConfig {
    /// Databases that are joined here, as database.table. Callers may query all of them through it.
    federated: Vec<String>,
}

impl ConfiguredDatabase for FederatedConfig {
    fn advice(key: &str) -> Option<&'static str> {
        (key == "policies").then_some(POLICIES_MESSAGE)
    }

    fn used_keys(&self) -> UsedKeys<'_> {
        UsedKeys { members: &self.federated, opening_order: 2, ..UsedKeys::default() }
    }

    fn may_keep(&self, _: &OpenedDatabase, opening: &Opening<'_>) -> bool {
        let is_unchanged = |name: &String| {
            let (old, new) = (opening.previous.by_name.get(name), opening.opened.by_name.get(name));
            old.zip(new).is_some_and(|(old, new)| Arc::ptr_eq(&old.database, &new.database))
        };
        self.federated.iter().all(is_unchanged)
    }

    fn open(&self, name: &str, path: &str, opening: &mut Opening<'_>) -> OpeningResult {
        let possible = || opening.opened.by_name.iter().filter(|(_, opened)| opened.entry.of_kind::<Self>().is_none());
        let (mut members, problems) = (Vec::new(), Problems::at_path(path));
        for (index, name) in self.federated.iter().enumerate() {
            match possible().find(|(other, _)| *other == name) {
                Some((_, member)) => members.push(member.database.clone()),
                None => {
                    let near = nearest_names(name, possible().map(|(name, _)| name.as_str()));
                    let meant = near.first().map(|near| format!("; {near} is")).unwrap_or_default();
                    let message = format!("{name} is no database of another kind than federated{meant}");
                    problems.add(format_args!("federated[{index}]"), message);
                }
            }
        }
        let opened = FederatedDatabase::new(name, problems.checked(members)?, opening.engine());
        let opened = opened.map_err(|error| key_problem(path, "federated", error))?;
        Ok((Arc::new(opened), KindParts::default()))
    }
}
