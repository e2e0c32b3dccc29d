//! The table that a call writes to, if its caller may.

use std::sync::Arc;

use tidegate_core::{Error, ErrorKind, Principal, nearest_names};
use tidegate_query::{IngestTable, REJECTS_SUFFIX, WriteTarget};

use super::IngestContext;
use crate::table_names::strip_database;

const CHOICES_MAX: usize = 20;

/// A table that the caller may write to.
pub(crate) struct WritableTable {
    pub(super) target: Arc<dyn WriteTarget>,
    pub(super) table: IngestTable,
    /// Whether the table exists, or is declared.
    pub(super) exists: bool,
}

impl IngestContext {
    /// The databases that `principal` may write to.
    pub(super) fn targets_for(&self, principal: &Principal) -> impl Iterator<Item = &Arc<dyn WriteTarget>> {
        self.targets.iter().filter(move |target| {
            let database = target.database();
            principal.grants.may_ingest_into(database) && self.options.tenancy.admits(database, principal)
        })
    }

    /// The database and the table that a call names. The name of the database may be before the table instead, and can be
    /// left out if there is only one that `principal` may write to.
    ///
    /// # Errors
    /// `InvalidArguments` if no database is named, and there are several.
    pub(super) fn resolve(
        &self,
        database: Option<String>,
        table: String,
        principal: &Principal,
    ) -> Result<(String, String), Error> {
        let target = match &database {
            Some(name) => self.targets_for(principal).find(|target| target.database() == name),
            None => Some(self.target_of(&table, principal)?),
        };
        let Some(target) = target else { return Ok((database.unwrap_or_default(), table)) };
        // A schema may have the name of its database.
        let is_whole_name = target.tables().iter().any(|known| known.eq_ignore_ascii_case(&table));
        let name = strip_database(&table, target.database()).filter(|_| !is_whole_name).map(str::to_owned);
        Ok((target.database().to_owned(), name.unwrap_or(table)))
    }

    /// The only database that `principal` may write to, or the one whose name is before `table`.
    fn target_of(&self, table: &str, principal: &Principal) -> Result<&Arc<dyn WriteTarget>, Error> {
        let mut all = self.targets_for(principal);
        if let (Some(only), None) = (all.next(), all.next()) {
            return Ok(only);
        }
        let named = self.targets_for(principal).filter(|target| strip_database(table, target.database()).is_some());
        // Two names may differ only in case.
        let nearest = named.max_by_key(|target| (target.database().len(), table.starts_with(target.database())));
        nearest.ok_or_else(|| {
            let names = self.targets_for(principal).map(|target| target.database().to_owned());
            let message = "name the database to write to in the argument \"database\"";
            Error::new(ErrorKind::InvalidArguments, message)
                .with_choices(names.take(CHOICES_MAX))
                .with_hint("Or write it before the table: database.table.")
        })
    }

    /// The table of that name.
    ///
    /// # Errors
    /// `NotFound` with the nearest names, the same whether the table is absent or the caller may not write to it.
    pub(crate) async fn writable_table(
        &self,
        database: &str,
        table: &str,
        principal: &Principal,
    ) -> Result<WritableTable, Error> {
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
        Ok(WritableTable { target, table: found, exists })
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
        let tables_of = |target: &Arc<dyn WriteTarget>| {
            let database = target.database().to_owned();
            let tables = target.tables();
            let granted = tables.into_iter().filter(|table| principal.grants.may_ingest(&database, table));
            granted.collect::<Vec<_>>()
        };
        let own = self.targets_for(principal).find(|target| target.database() == database);
        let (name, names): (String, Vec<String>) = match own {
            Some(target) => (table.to_owned(), tables_of(target)),
            None => {
                let qualified = |target: &Arc<dyn WriteTarget>| {
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
