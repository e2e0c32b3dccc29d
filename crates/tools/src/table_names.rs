//! Names of tables with the name of their database before them: `shop.orders` means the table `orders` of the database
//! `shop`, wherever a table is named, unless `shop` has a schema of that name. Names that the caller used recently and
//! often come first in completions.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use tidegate_core::{Completion, CompletionRequest, Error, ErrorKind, Principal};
use tidegate_query::{Database, DatabaseKind, RESULTS_DATABASE};
use tidegate_runtime::{Completer, Job};
use tidegate_sql::{SqlDialect, Statement};

use crate::result_tables::ResolvedDatabase;
use crate::tool_services::ToolServices;

impl ToolServices {
    /// The database that is named, the only one, or the one that all `tables` name; a federated one if they name several.
    /// Each of `tables` becomes its name in that database.
    ///
    /// # Errors
    /// As [`tidegate_query::Databases::get`].
    pub(crate) async fn resolve_tables<'a>(
        &self,
        database: Option<&str>,
        tables: impl Iterator<Item = &'a mut String>,
        job: &Job,
    ) -> Result<ResolvedDatabase, Error> {
        let mut tables: Vec<&mut String> = tables.collect();
        let principal = job.principal();
        let names: Vec<&str> = tables.iter().map(|table| table.as_str()).collect();
        if let Some(resolved) = self.resolve_results(database, &names, job).await? {
            for table in tables {
                let name = resolved.federated.as_deref().and_then(|federated| strip_database(table, federated));
                if let Some(name) = name.map(str::to_owned) {
                    *table = name;
                }
            }
            return Ok(resolved);
        }
        let database = match self.databases.get(database, principal) {
            Ok(database) => database.clone(),
            Err(error) if database.is_some() => return Err(error),
            Err(error) => self.find_database(tables.iter().map(|table| table.as_str()), principal, error)?,
        };
        for table in &mut tables {
            let Some(name) = strip_database(table, database.name()).map(str::to_owned) else { continue };
            let columns = database.columns(table, principal).await;
            if columns.is_err_and(|error| error.kind() == ErrorKind::NotFound) {
                **table = name;
            }
        }
        Ok(ResolvedDatabase::of_server(database))
    }

    /// Parses `sql` with its parameters for the database that is named, the only one, or the one that its tables name.
    ///
    /// # Errors
    /// As [`tidegate_query::Databases::get`] and [`Statement::parse`].
    pub(crate) async fn resolve_statement(
        &self,
        database: Option<&str>,
        sql: &str,
        parameters: &[Value],
        job: &Job,
    ) -> Result<(ResolvedDatabase, Statement), Error> {
        let principal = job.principal();
        if let Some(resolved) = self.resolve_results_of_sql(database, sql, job).await? {
            let statement = self.statement(sql, parameters, resolved.database.dialect())?;
            let renamed =
                resolved.federated.as_deref().map(|name| statement.without_database_name(name)).transpose()?;
            return Ok((resolved, renamed.flatten().unwrap_or(statement)));
        }
        let database = match self.databases.get(database, principal) {
            Ok(database) => database.clone(),
            Err(error) if database.is_some() => return Err(error),
            Err(error) => self.find_database_of_sql(sql, principal, error)?,
        };
        let statement = self.statement(sql, parameters, database.dialect())?;
        let statement = remove_database_name(statement, &*database, principal).await?;
        Ok((ResolvedDatabase::of_server(database), statement))
    }

    /// The database for `sql`, if it reads stored results. Its dialect is that of files, whatever the other tables are.
    async fn resolve_results_of_sql(
        &self,
        database: Option<&str>,
        sql: &str,
        job: &Job,
    ) -> Result<Option<ResolvedDatabase>, Error> {
        if database != Some(RESULTS_DATABASE) && !sql.to_ascii_lowercase().contains(RESULTS_DATABASE) {
            return Ok(None);
        }
        let named = self.databases.get(database, job.principal()).ok();
        for dialect in [Some(SqlDialect::DataFusion), named.map(|named| named.dialect())].into_iter().flatten() {
            // The statement may be of another dialect.
            let Ok(statement) = self.statements.parse(sql, dialect) else { continue };
            let tables: Vec<&str> = statement.tables().iter().map(String::as_str).collect();
            return self.resolve_results(database, &tables, job).await;
        }
        self.resolve_results(database, &[], job).await
    }

    fn find_database_of_sql(
        &self,
        sql: &str,
        principal: &Principal,
        missing: Error,
    ) -> Result<Arc<dyn Database>, Error> {
        let mut dialects: Vec<SqlDialect> = Vec::new();
        for database in self.databases.visible_to(principal) {
            if !dialects.contains(&database.dialect()) {
                dialects.push(database.dialect());
            }
        }
        for dialect in dialects {
            // The statement may be of another dialect.
            let Ok(statement) = self.statements.parse(sql, dialect) else { continue };
            let tables = statement.tables().iter().map(String::as_str);
            let found = self.find_database(tables, principal, missing.clone())?;
            if found.dialect() == dialect {
                return Ok(found);
            }
        }
        Err(with_qualify_hint(missing))
    }

    /// The database that all `tables` name, or the federated one if they name several; otherwise the error `missing`.
    pub(crate) fn find_database<'a>(
        &self,
        tables: impl Iterator<Item = &'a str>,
        principal: &Principal,
        missing: Error,
    ) -> Result<Arc<dyn Database>, Error> {
        let visible: Vec<&Arc<dyn Database>> = self.databases.visible_to(principal).collect();
        let of_table = |table: &str| {
            let named = visible.iter().filter(|database| strip_database(table, database.name()).is_some());
            // Two names may differ only in case.
            named.max_by_key(|database| (database.name().len(), table.starts_with(database.name()))).copied()
        };
        let Some(named) = tables.map(of_table).collect::<Option<Vec<_>>>() else {
            return Err(with_qualify_hint(missing));
        };
        let Some(first) = named.first() else { return Err(missing) };
        if named.iter().all(|other| Arc::ptr_eq(other, first)) {
            return Ok(Arc::clone(first));
        }
        let mut federated = visible.iter().filter(|database| database.kind() == DatabaseKind::Federated);
        match (federated.next(), federated.next()) {
            (Some(only), None) => Ok(Arc::clone(only)),
            (None, _) => Err(Error::new(
                ErrorKind::InvalidArguments,
                "the tables are in several databases, and there is no federated database to join them",
            )
            .with_hint("Query each database by itself.")),
            (Some(_), Some(_)) => Err(missing),
        }
    }
}

fn with_qualify_hint(missing: Error) -> Error {
    match missing.kind() {
        ErrorKind::InvalidArguments => missing.with_hint("Or write it before the table: database.table."),
        // There are no databases.
        _ => missing,
    }
}

/// `table` without `database`, in any case, and the dot after it.
pub(crate) fn strip_database<'a>(table: &'a str, database: &str) -> Option<&'a str> {
    let (first, rest) = table.split_at_checked(database.len())?;
    let name = rest.strip_prefix('.').filter(|name| !name.is_empty())?;
    first.eq_ignore_ascii_case(database).then_some(name)
}

/// Removes the name of `database` before tables, unless the database has a schema of that name.
async fn remove_database_name(
    statement: Statement,
    database: &dyn Database,
    principal: &Principal,
) -> Result<Statement, Error> {
    let name = database.name();
    let is_qualified =
        |table: &String| table.split_once('.').is_some_and(|(first, _)| first.eq_ignore_ascii_case(name));
    // The embedded engine itself knows the name of its database.
    let is_resolved = |table: &String| database.kind() == DatabaseKind::Files && strip_database(table, name).is_some();
    if !statement.tables().iter().any(|table| is_qualified(table) && !is_resolved(table)) {
        return Ok(statement);
    }
    let catalog = database.catalog(principal).await?;
    if catalog.tables.iter().any(|table| is_qualified(&table.name)) {
        return Ok(statement);
    }
    Ok(statement.without_database_name(name)?.unwrap_or(statement))
}

/// Completes the arguments `database` and `table`; other arguments have no completions.
pub(crate) struct NameCompleter(pub(crate) Arc<ToolServices>);

#[async_trait]
impl Completer for NameCompleter {
    async fn complete(&self, request: &CompletionRequest, job: Arc<Job>) -> Result<Completion, Error> {
        let usage_tracker = self.0.executor.usage();
        match request.argument.as_str() {
            "database" => {
                let names = self.0.databases.visible_to(job.principal()).map(|database| database.name().to_owned());
                let mut names: Vec<String> = names.collect();
                usage_tracker.rank_databases(job.caller()).sort(&mut names);
                Ok(Completion::matching(names, &request.value))
            }
            "table" => {
                let database = request.context.get("database").map(String::as_str);
                let mut names = self.table_names(database, &job).await?;
                usage_tracker.rank_tables(job.caller(), database).sort(&mut names);
                Ok(Completion::matching(names, &request.value))
            }
            _ => Ok(Completion::default()),
        }
    }
}

impl NameCompleter {
    async fn table_names(&self, database: Option<&str>, job: &Job) -> Result<Vec<String>, Error> {
        let found = self.0.list_databases(database, job).await?;
        let catalogs = found.iter().filter_map(|listing| listing.catalog.as_ref().ok());
        let mut names: Vec<String> =
            catalogs.flat_map(|catalog| catalog.tables.iter().map(|table| table.name.clone())).collect();
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }
}
