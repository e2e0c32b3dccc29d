//! A database of a MySQL or MariaDB server.

use std::sync::Arc;
use std::time::Duration;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_query::{
    Catalog, ColumnEntry, Connections, Database, DatabaseKind, Freshness, Plan, PolicyProblem, StableHasher,
    TableStorage, identity_fingerprint,
};
use tidegate_sql::{Author, Isolation, SqlDialect, Statement};
use tokio::sync::Mutex;

use crate::catalog::{ServerCatalog, TableDetails};
use crate::connection_string::MySqlTarget;
use crate::options::MySqlOptions;
use crate::plan::MySqlPlan;
use crate::pool::Pool;
use crate::row_policies::{self, RestrictedCaller};
use crate::running_statement::{StatementRequest, check_parameter_count};
use crate::server::{MySqlServer, StatementText};
use crate::session::SessionAccess;
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
        let pool = Pool::new(name.clone(), target, options.clone(), SessionAccess::ReadOnly)?;
        let default_schema = target.database().map(str::to_owned);
        Ok(Self { server: Arc::new(MySqlServer::new(name, pool, options, default_schema)) })
    }

    /// The tables that the role of `principal` may read.
    async fn catalog_of(&self, principal: &Principal) -> Result<Arc<ServerCatalog>, Error> {
        self.server.catalog(&self.server.identity_of(principal)?.role).await
    }

    /// The restrictions of `principal` by row policies, if any.
    fn restricted_caller(&self, principal: &Principal) -> Option<RestrictedCaller> {
        RestrictedCaller::new(&self.server.options.row_policies, principal)
    }
}

fn find_table<'a>(catalog: &'a ServerCatalog, table: &str) -> Result<&'a TableDetails, Error> {
    catalog.details(table).ok_or_else(|| {
        let error = Error::new(ErrorKind::NotFound, format!("there is no table {table:?}"));
        error.with_choices(catalog.catalog.nearest_tables(table))
    })
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

    fn row_policy_fingerprint(&self, principal: &Principal) -> u64 {
        let MySqlOptions { row_policies, run_as, claims, .. } = &*self.server.options;
        StableHasher::combine_named([
            ("policies", row_policies.fingerprint(principal)),
            ("identity", identity_fingerprint(run_as, claims, principal)),
        ])
    }

    async fn check_policies(&self) -> Result<Vec<PolicyProblem>, Error> {
        let role = self.server.owner_identity().role;
        let catalog = self.server.catalog(&role).await?;
        Ok(row_policies::find_problems(&self.server.options.row_policies, &catalog))
    }

    async fn catalog(&self, principal: &Principal) -> Result<Arc<Catalog>, Error> {
        let catalog = self.catalog_of(principal).await?;
        Ok(match self.restricted_caller(principal) {
            Some(caller) => Arc::new(caller.visible_tables(&catalog)),
            None => catalog.catalog.clone(),
        })
    }

    async fn columns(&self, table: &str, principal: &Principal) -> Result<Vec<ColumnEntry>, Error> {
        let catalog = self.catalog_of(principal).await?;
        let table = find_table(&catalog, table)?;
        match self.restricted_caller(principal) {
            Some(caller) => caller.visible_columns(table),
            None => Ok(table.columns.clone()),
        }
    }

    async fn table_storage(&self, table: &str, principal: &Principal) -> Result<TableStorage, Error> {
        let catalog = self.catalog_of(principal).await?;
        let table = find_table(&catalog, table)?;
        match self.restricted_caller(principal) {
            Some(caller) => caller.visible_storage(table),
            None => Ok(table.storage.clone()),
        }
    }

    async fn plan(&self, statement: &Statement, principal: &Principal) -> Result<Box<dyn Plan>, Error> {
        let identity = self.server.identity_of(principal)?;
        let text = self.server.statement_text(statement, principal, &identity).await?;
        let parameters = bind_parameters(statement.parameters(), &text.numbers)?;
        let mut lease = self.server.acquire(identity).await?;
        let prepared = self.server.prepare(&mut lease, &text, statement).await?;
        check_parameter_count(usize::from(prepared.num_params()), parameters.len())?;
        let schema = arrow_schema(&self.server.decoders(&prepared.columns(), lease.role()));
        let transaction = statement.transaction().clone();
        // Sessions only read. A caller's statement may leave locks behind, by way of a view.
        let needs_transaction =
            statement.author() != Author::Owner || transaction.isolation != Isolation::ReadCommitted;
        let StatementText { text, restricted, .. } = text;
        let request = StatementRequest { text, parameters, transaction, needs_transaction };
        let (server, lease) = (self.server.clone(), Mutex::new(lease));
        Ok(Box::new(MySqlPlan { server, lease, request, restricted, schema }))
    }

    async fn describe(&self, statement: &Statement, principal: &Principal) -> Result<SchemaRef, Error> {
        let identity = match statement.author() {
            Author::Caller => self.server.identity_of(principal)?,
            Author::Owner | Author::Handler => self.server.owner_identity(),
        };
        let text = self.server.statement_text(statement, principal, &identity).await?;
        let mut lease = self.server.acquire(identity).await?;
        let prepared = self.server.prepare(&mut lease, &text, statement).await?;
        Ok(arrow_schema(&self.server.decoders(&prepared.columns(), lease.role())))
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
