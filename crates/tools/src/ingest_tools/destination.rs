//! The table that a call writes to, if its caller may.

use std::sync::Arc;

use tidegate_core::{Error, ErrorKind, Principal, nearest_names};
use tidegate_query::{IngestTable, IngestTarget, REJECTS_SUFFIX};

use super::IngestContext;

const CHOICES_MAX: usize = 20;

/// A table that the caller may write to.
pub(crate) struct Destination {
    pub(super) target: Arc<dyn IngestTarget>,
    pub(super) table: IngestTable,
    /// Whether the table exists, or is declared.
    pub(super) exists: bool,
}

impl IngestContext {
    /// The databases that `principal` may write to.
    pub(super) fn targets_for(&self, principal: &Principal) -> impl Iterator<Item = &Arc<dyn IngestTarget>> {
        self.targets.iter().filter(move |target| {
            let database = target.database();
            principal.grants.may_ingest_into(database) && self.options.tenancy.admits(database, principal)
        })
    }

    /// The table of that name.
    ///
    /// # Errors
    /// `NotFound` with the nearest names, the same whether the table is absent or the caller may not write to it.
    pub(crate) async fn destination(
        &self,
        database: &str,
        table: &str,
        principal: &Principal,
    ) -> Result<Destination, Error> {
        let absent = || self.no_such_table(database, table, principal);
        let grants = &principal.grants;
        let target = self.targets_for(principal).find(|target| target.database() == database).ok_or_else(absent)?;
        let target = target.for_caller(principal).unwrap_or_else(|| target.clone());
        // Rows get there only by being rejected.
        if !grants.may_ingest(database, table) || table.ends_with(REJECTS_SUFFIX) {
            return Err(absent());
        }
        let found = target.table(table).await.map_err(|error| self.hide_names(error, database, table, principal))?;
        // The name may have been found in another spelling.
        if !grants.may_ingest(database, &found.name) || found.name.ends_with(REJECTS_SUFFIX) {
            return Err(absent());
        }
        let exists = target.tables().contains(&found.name);
        Ok(Destination { target, table: found, exists })
    }

    /// An error of a target about a table that does not exist, without the names of tables that the caller may not write
    /// to.
    pub(super) fn hide_names(&self, error: Error, database: &str, table: &str, principal: &Principal) -> Error {
        if error.kind() != ErrorKind::NotFound {
            return error;
        }
        let absent = self.no_such_table(database, table, principal);
        match error.hint() {
            Some(hint) => absent.with_hint(hint),
            None => absent,
        }
    }

    /// The error for a table that does not exist, or that the caller may not write to.
    pub(super) fn no_such_table(&self, database: &str, table: &str, principal: &Principal) -> Error {
        Error::takes_no_rows(database, table).with_choices(self.choices(database, table, principal))
    }

    /// The tables of the database, or of all databases if it does not exist: those with similar names, or else the first.
    fn choices(&self, database: &str, table: &str, principal: &Principal) -> Vec<String> {
        let tables_of = |target: &Arc<dyn IngestTarget>| {
            let database = target.database().to_owned();
            let tables = target.tables();
            let granted = tables.into_iter().filter(|table| principal.grants.may_ingest(&database, table));
            granted.collect::<Vec<_>>()
        };
        let own = self.targets_for(principal).find(|target| target.database() == database);
        let (name, names): (String, Vec<String>) = match own {
            Some(target) => (table.to_owned(), tables_of(target)),
            None => {
                let qualified = |target: &Arc<dyn IngestTarget>| {
                    let database = target.database().to_owned();
                    tables_of(target).into_iter().map(move |table| format!("{database}.{table}"))
                };
                (format!("{database}.{table}"), self.targets_for(principal).flat_map(qualified).collect())
            }
        };
        let near = nearest_names(&name, names.iter().map(String::as_str));
        if near.is_empty() { names.into_iter().take(CHOICES_MAX).collect() } else { near }
    }
}
