//! Stored results as tables: `results.NAME` is a result of the caller, by its identifier or by the name of `save_as`,
//! alone or beside the tables of one database. For all other callers it is as if it did not exist.
//!
//! What is computed from stored results depends on all that they depend on: a caller that loses access to one of the
//! databases, or gets other row policies there, loses the result too.

use std::collections::HashSet;
use std::sync::Arc;

use tidegate_core::{Error, ErrorKind};
use tidegate_query::{Database, KnowledgeLayers, RESULTS_DATABASE, ResultTable, ResultTables, missing_result_table};
use tidegate_results::{RequiredAccess, ResultId, ResultStore, StoredResult};
use tidegate_runtime::Job;
use tidegate_sql::SqlDialect;

use crate::catalog_tools::{DatabaseListing, list_catalogs};
use crate::table_names::strip_database;
use crate::tool_services::ToolServices;

/// Characters of a name that a caller chooses for a table. It is the limit of PostgreSQL.
const TABLE_NAME_CHARS_MAX: usize = 63;

/// A database for one call.
pub(crate) struct ResolvedDatabase {
    pub(crate) database: Arc<dyn Database>,
    /// What a stored answer depends on, if the call reads stored results.
    pub(crate) required_access: Vec<RequiredAccess>,
    /// The database whose members have the tables, so that its name before them means nothing.
    pub(crate) federated: Option<String>,
}

impl ResolvedDatabase {
    /// A database of the server.
    pub(crate) fn of_server(database: Arc<dyn Database>) -> Self {
        Self { database, required_access: Vec::new(), federated: None }
    }

    /// Records what `job` queries with the rights of its caller.
    pub(crate) fn record(&self, services: &ToolServices, job: &Job) {
        if self.required_access.is_empty() {
            job.record_database(self.database.name());
        }
        for RequiredAccess { tool, database, .. } in &self.required_access {
            let is_of_caller = services.reads_caller_databases(tool, job.caller()) == Some(true);
            if let Some(database) = database.as_ref().filter(|_| is_of_caller) {
                job.record_database(database);
            }
        }
    }
}

/// Checks the name that a caller chooses for a table.
pub(crate) fn check_table_name(name: &str) -> Result<(), Error> {
    let is_plain = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '_';
    let begins_with_letter = name.starts_with(|first: char| first.is_ascii_lowercase());
    let is_identifier = begins_with_letter && name.chars().all(is_plain) && name.len() <= TABLE_NAME_CHARS_MAX;
    if is_identifier && ResultId::from_table_name(name).is_none() {
        return Ok(());
    }
    let message = format!("save_as is {name:?}, which cannot be the name of a table");
    Err(Error::new(ErrorKind::InvalidArguments, message).with_hint(format!(
        "Use up to {TABLE_NAME_CHARS_MAX} lower-case letters, digits and underscores, a letter first, such as \
         top_customers; not the identifier of a result.",
    )))
}

impl ToolServices {
    /// The stored results of the caller of `job`, if they are tables here.
    fn caller_results<'a>(&'a self, job: &'a Job) -> Option<CallerResults<'a>> {
        let (store, tables) = (self.executor.store()?, self.executor.result_tables()?);
        // The command line, or an embedding program, may have a database of this name.
        let is_taken = self.databases.names().any(|name| name.eq_ignore_ascii_case(RESULTS_DATABASE));
        (!is_taken).then_some(CallerResults { services: self, store, tables, job })
    }

    /// Checks that stored results are tables here.
    ///
    /// # Errors
    /// `Unavailable` if results are not stored, or if another database has the name of theirs.
    pub(crate) fn require_result_tables(&self, job: &Job) -> Result<(), Error> {
        if self.caller_results(job).is_some() {
            return Ok(());
        }
        // The caller may not see the other database.
        let message = format!(
            "answers are no tables here: results are not stored on this server, or {RESULTS_DATABASE:?} is another database"
        );
        Err(Error::new(ErrorKind::Unavailable, message).with_hint("Leave out save_as, and delivery: \"table\"."))
    }

    /// The databases of the caller, with that of its stored results if it has tables there; or the one that is named.
    ///
    /// # Errors
    /// As [`tidegate_query::Databases::get`].
    pub(crate) async fn list_databases(&self, name: Option<&str>, job: &Job) -> Result<Vec<DatabaseListing>, Error> {
        let Some(results) = self.caller_results(job).filter(|_| name.is_none_or(|name| name == RESULTS_DATABASE))
        else {
            return list_catalogs(&self.databases, name, job.principal()).await;
        };
        let tables = results.list();
        let mut found = match name {
            Some(_) => Vec::new(),
            None => list_catalogs(&self.databases, None, job.principal()).await?,
        };
        if name.is_some() || !tables.is_empty() {
            let database = results.tables.open(tables, None)?;
            let catalog = database.catalog(job.principal()).await;
            // Nobody describes stored results.
            found.push(DatabaseListing { database, catalog, knowledge: KnowledgeLayers::default() });
        }
        Ok(found)
    }

    /// The database for a call that names `tables`, if it reads stored results; `None` if it reads none.
    ///
    /// # Errors
    /// `NotFound` for a table that the caller does not have; those of [`ResultTable::check_complete`] and of
    /// [`tidegate_query::Databases::get`].
    pub(crate) async fn resolve_results(
        &self,
        database: Option<&str>,
        tables: &[&str],
        job: &Job,
    ) -> Result<Option<ResolvedDatabase>, Error> {
        let Some(results) = self.caller_results(job) else { return Ok(None) };
        let is_named = database == Some(RESULTS_DATABASE);
        let is_result = |table: &str| strip_database(table, RESULTS_DATABASE).is_some();
        if !is_named && !tables.iter().any(|table| is_result(table)) {
            return Ok(None);
        }
        let is_of_other = |table: &&str| match is_named {
            // The others are results without the name of the database, or system catalogs.
            true => self.databases.visible_to(job.principal()).any(|it| strip_database(table, it.name()).is_some()),
            false => !is_result(table),
        };
        let others: Vec<&str> = tables.iter().copied().filter(is_of_other).collect();
        let base = self.databases.get(database.filter(|_| !is_named), job.principal()).cloned();
        let base = match base {
            Err(error) if database.is_some() && !is_named => return Err(error),
            Ok(base) if !is_named => {
                let catalog = base.catalog(job.principal()).await?;
                // A schema of the database has that name.
                if catalog.tables.iter().any(|table| is_result(&table.name)) {
                    return Ok(None);
                }
                Ok(base)
            }
            base => base,
        };
        let joined = match base {
            _ if others.is_empty() => None,
            Ok(base) => Some(base),
            Err(error) => Some(self.find_database(others.into_iter(), job.principal(), error)?),
        };
        results.resolve(tables, joined, is_named).map(Some)
    }
}

/// The stored results of the caller of a job.
struct CallerResults<'a> {
    services: &'a ToolServices,
    store: &'a Arc<ResultStore>,
    tables: &'a Arc<dyn ResultTables>,
    job: &'a Job,
}

impl CallerResults<'_> {
    /// The database for a call that names `tables`, which also has those of `joined`. With `is_named`, the name of the
    /// database is optional before tables.
    fn resolve(
        &self,
        tables: &[&str],
        joined: Option<Arc<dyn Database>>,
        is_named: bool,
    ) -> Result<ResolvedDatabase, Error> {
        let mut found = Vec::new();
        for table in tables {
            match strip_database(table, RESULTS_DATABASE) {
                Some(name) => found.push(self.find(name)?.ok_or_else(|| self.missing_error(name))?),
                None if is_named => found.extend(self.find(table)?),
                None => {}
            }
        }
        let required_access = self.required_access(&found, joined.as_deref());
        if is_named {
            // For system catalogs, and as choices. A result that gets one of the names now is not read.
            let is_read = |name: &str| {
                tables.iter().any(|table| strip_database(table, RESULTS_DATABASE).unwrap_or(table) == name)
            };
            found.extend(self.list().into_iter().filter(|table| !is_read(table.name())));
        }
        let federated = joined.as_ref().filter(|joined| !joined.members().is_empty());
        let federated = federated.map(|joined| joined.name().to_owned());
        Ok(ResolvedDatabase { database: self.tables.open(found, joined.as_ref())?, required_access, federated })
    }

    /// The result that is the table `name`, if the caller may still read it.
    fn find(&self, name: &str) -> Result<Option<ResultTable>, Error> {
        let Some(result) = self.store.find_table(name, self.job.caller()).filter(|result| self.is_readable(result))
        else {
            return Ok(None);
        };
        if let Some(missing) = &result.header().missing_nodes {
            self.job.record_missing_nodes(missing)?;
        }
        let table = self.table(result, name);
        table.check_complete()?;
        Ok(Some(table))
    }

    /// The results that the caller requested as tables, by the names that it chose. Of several with the same name, the newest
    /// one has it.
    fn list(&self) -> Vec<ResultTable> {
        let (mut aliases, mut tables) = (HashSet::new(), Vec::new());
        for result in self.store.list(self.job.caller()) {
            let header = result.header();
            let alias = header.alias.clone().filter(|alias| aliases.insert(alias.clone()));
            if header.is_table && self.is_readable(&result) {
                let name = alias.unwrap_or_else(|| header.id.table_name());
                tables.push(self.table(result.clone(), &name));
            }
        }
        tables
    }

    fn is_readable(&self, result: &StoredResult) -> bool {
        let caller = self.job.caller();
        let is_kept = self.store.get(result.header().id, caller).is_ok();
        is_kept && result.file().is_none() && self.services.authorize_read(result, caller).is_ok()
    }

    fn table(&self, result: Arc<StoredResult>, name: &str) -> ResultTable {
        let database = self.services.databases.get_unrestricted(&result.header().database);
        let dialect = database.map_or(SqlDialect::DataFusion, |database| database.dialect());
        ResultTable::new(result, name, dialect)
    }

    fn missing_error(&self, name: &str) -> Error {
        let tables = self.list();
        missing_result_table(name, tables.iter().map(ResultTable::name))
    }

    /// What an answer depends on that is computed from `tables` and the tables of `joined`.
    fn required_access(&self, tables: &[ResultTable], joined: Option<&dyn Database>) -> Vec<RequiredAccess> {
        let own = RequiredAccess {
            tool: self.job.target().name().to_owned(),
            database: joined.map(|joined| joined.name().to_owned()),
            policies: joined.map_or(0, |joined| joined.row_policy_fingerprint(self.job.principal())),
        };
        let mut required = vec![own];
        for access in tables.iter().flat_map(|table| table.result().header().required_access()) {
            if !required.contains(&access) {
                required.push(access);
            }
        }
        required
    }
}
