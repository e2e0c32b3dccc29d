//! A database of a MySQL or MariaDB server.

use std::sync::Arc;
use std::time::Duration;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_query::{Catalog, ColumnEntry, Connections, Database, DatabaseKind, Freshness, Plan, TableStorage};
use tidegate_sql::{Author, Isolation, SqlDialect, Statement};
use tokio::sync::Mutex;

use crate::catalog::ServerCatalog;
use crate::connection_string::MySqlTarget;
use crate::options::MySqlOptions;
use crate::plan::MySqlPlan;
use crate::pool::Pool;
use crate::running_statement::{StatementRequest, check_parameter_count};
use crate::server::MySqlServer;
use crate::values::{arrow_schema, bind_parameters};

/// How long closing waits for running statements.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// A database of a MySQL or MariaDB server. It connects on demand: if the server cannot be reached, only the calls to it
/// fail. As soon as the server is back, calls succeed again.
#[derive(Clone)]
pub struct MySqlDatabase {
    server: Arc<MySqlServer>,
}

impl MySqlDatabase {
    /// Creates the database `name` at `target`; opens no connection.
    ///
    /// # Errors
    /// `Internal` if the pool cannot be created.
    pub fn open(name: impl Into<String>, target: &MySqlTarget, options: MySqlOptions) -> Result<Self, Error> {
        let (name, options): (Arc<str>, _) = (name.into().into(), Arc::new(options));
        let pool = Pool::new(name.clone(), target, options.clone())?;
        let default_schema = target.database().map(str::to_owned);
        Ok(Self { server: Arc::new(MySqlServer::new(name, pool, options, default_schema)) })
    }

    async fn catalog_with(&self, table: &str) -> Result<Arc<ServerCatalog>, Error> {
        let catalog = self.server.catalog().await?;
        match catalog.columns(table) {
            Some(_) => Ok(catalog),
            None => {
                let error = Error::new(ErrorKind::NotFound, format!("there is no table {table:?}"));
                Err(error.with_choices(catalog.catalog.nearest_tables(table)))
            }
        }
    }
}

#[async_trait]
impl Database for MySqlDatabase {
    fn name(&self) -> &str {
        &self.server.database
    }

    fn kind(&self) -> DatabaseKind {
        DatabaseKind::Other("mysql")
    }

    fn dialect(&self) -> SqlDialect {
        SqlDialect::MySql
    }

    async fn freshness(&self, statement: &Statement, _principal: &Principal) -> Freshness {
        Freshness::from_max_age(self.server.options.cached_answer_max_age, statement)
    }

    async fn catalog(&self, _principal: &Principal) -> Result<Arc<Catalog>, Error> {
        Ok(self.server.catalog().await?.catalog.clone())
    }

    async fn columns(&self, table: &str, _principal: &Principal) -> Result<Vec<ColumnEntry>, Error> {
        let catalog = self.catalog_with(table).await?;
        Ok(catalog.columns(table).map(<[ColumnEntry]>::to_vec).unwrap_or_default())
    }

    async fn table_storage(&self, table: &str, _principal: &Principal) -> Result<TableStorage, Error> {
        Ok(self.catalog_with(table).await?.storage(table))
    }

    /// The server masks nothing here: it returns what the login may read.
    async fn masked_columns(&self, _: &str, _: &Principal) -> Result<Option<Vec<String>>, Error> {
        Ok(Some(Vec::new()))
    }

    async fn plan(&self, statement: &Statement, _principal: &Principal) -> Result<Box<dyn Plan>, Error> {
        let (text, numbers) = statement.text_with_plain_placeholders()?;
        let parameters = bind_parameters(statement.parameters(), &numbers)?;
        let mut lease = self.server.acquire().await?;
        let prepared = self.server.prepare(&mut lease, &text, statement).await?;
        check_parameter_count(usize::from(prepared.num_params()), parameters.len())?;
        let schema = arrow_schema(&self.server.decoders(&prepared.columns()));
        let transaction = statement.transaction().clone();
        // Sessions only read. A caller's statement may leave locks behind, by way of a view.
        let needs_transaction =
            statement.author() != Author::Owner || transaction.isolation != Isolation::ReadCommitted;
        let request = StatementRequest { text, parameters, transaction, needs_transaction };
        Ok(Box::new(MySqlPlan { server: self.server.clone(), lease: Mutex::new(lease), request, schema }))
    }

    async fn describe(&self, statement: &Statement, _principal: &Principal) -> Result<SchemaRef, Error> {
        let (text, _) = statement.text_with_plain_placeholders()?;
        let mut lease = self.server.acquire().await?;
        let prepared = self.server.prepare(&mut lease, &text, statement).await?;
        Ok(arrow_schema(&self.server.decoders(&prepared.columns())))
    }

    /// Uses a connection of its own: those of the pool may all be in use for long calls.
    async fn check_reachable(&self) -> Result<(), Error> {
        self.server.pool.connector().check_reachable().await
    }

    async fn excess_privileges(&self) -> Result<Vec<String>, Error> {
        let findings = self.server.findings_for_owner().await?;
        Ok(findings.iter().map(ToString::to_string).collect())
    }

    fn connections(&self) -> Option<Connections> {
        Some(Connections::InUse(self.server.pool.connections_in_use()))
    }

    fn no_tables_reason(&self) -> &'static str {
        "none that its account may read; schemas may leave some out"
    }

    async fn close(&self) {
        self.server.pool.close(CLOSE_TIMEOUT).await;
    }
}
