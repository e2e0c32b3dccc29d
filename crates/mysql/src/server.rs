//! The shared state of the calls of one database: its connections, its options, its catalog and what its account may do.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Column, Error as MySqlError, Params, Row, Statement as PreparedStatement, Value};
use tidegate_core::{Error, ErrorKind, Principal, nearest_names};
use tidegate_query::{LoginCheck, RoleFinding};
use tidegate_runtime::{CacheAges, LoadingCache};
use tidegate_sql::Statement;

use crate::catalog::ServerCatalog;
use crate::error;
use crate::options::MySqlOptions;
use crate::pool::{Lease, Pool};
use crate::role::{self, ExpectedGrants};
use crate::row_policies::{RestrictedCaller, RestrictedStatement};
use crate::session::SessionIdentity;
use crate::values::ColumnDecoder;

pub(crate) struct MySqlServer {
    pub(crate) database: Arc<str>,
    pub(crate) pool: Pool,
    pub(crate) options: Arc<MySqlOptions>,
    /// The database of the connection string.
    default_schema: Option<String>,
    /// By role.
    catalog: LoadingCache<Option<String>, ServerCatalog>,
    login: LoginCheck,
}

/// The SQL that runs for a statement.
pub(crate) struct StatementText {
    pub(crate) text: String,
    /// The number of the value of each placeholder; 1 is the first parameter.
    pub(crate) numbers: Vec<usize>,
    /// The statement of a caller whom row policies restrict.
    pub(crate) restricted: Option<RestrictedStatement>,
}

/// The catalog and the rights are read again while they are used. A change takes effect within `expire_after`.
const CATALOG_AGES: CacheAges = CacheAges {
    refresh_after: Duration::from_secs(10),
    expire_after: Duration::from_secs(60),
    load_timeout: Duration::from_secs(60),
    keys_max: NonZeroUsize::new(64).unwrap(),
};

/// The maximum number of columns that an error names.
const CHOICES_MAX: usize = 60;

impl MySqlServer {
    pub(crate) fn new(
        database: Arc<str>,
        pool: Pool,
        options: Arc<MySqlOptions>,
        default_schema: Option<String>,
    ) -> Self {
        let login = LoginCheck::new(database.clone(), "account", options.strict, CATALOG_AGES);
        Self { database, pool, options, default_schema, catalog: LoadingCache::new(CATALOG_AGES), login }
    }

    /// The identity of `principal` on the server; `Forbidden` if it has no role there.
    pub(crate) fn identity_of(&self, principal: &Principal) -> Result<SessionIdentity, Error> {
        let role = self.options.run_as.role_of(principal)?.map(str::to_owned);
        Ok(SessionIdentity { role, claims: self.options.claims.values(principal) })
    }

    /// An identity with any suitable role and without claims, for statements of the owner.
    pub(crate) fn owner_identity(&self) -> SessionIdentity {
        self.identity_without_claims(self.options.run_as.any_role().map(str::to_owned))
    }

    fn identity_without_claims(&self, role: Option<String>) -> SessionIdentity {
        SessionIdentity { role, claims: vec![String::new(); self.options.claims.names().count()] }
    }

    /// The tables and their columns, as far as `role` may read them.
    pub(crate) async fn catalog(self: &Arc<Self>, role: &Option<String>) -> Result<Arc<ServerCatalog>, Error> {
        self.check_account().await?;
        self.catalog.get(role, || self.clone().load_catalog(role.clone())).await
    }

    async fn load_catalog(self: Arc<Self>, role: Option<String>) -> Result<ServerCatalog, Error> {
        let schemas = self.options.schemas.clone().or_else(|| Some(vec![self.default_schema.clone()?]));
        let mut lease = self.pool.acquire(self.identity_without_claims(role)).await?;
        lease.check().await?;
        lease.mark_busy();
        let has_policies = !self.options.row_policies.is_empty();
        let loaded =
            ServerCatalog::load(lease.session()?, schemas.as_deref(), self.default_schema.as_deref(), has_policies)
                .await;
        let loaded = loaded.map_err(|error| self.error(&error))?;
        lease.mark_idle();
        Ok(loaded)
    }

    /// The catalog, if it is known; otherwise it is loaded in the background.
    fn known_catalog(self: &Arc<Self>, role: Option<&str>) -> Option<Arc<ServerCatalog>> {
        let role = role.map(str::to_owned);
        self.catalog.peek(&role, || self.clone().load_catalog(role.clone()))
    }

    /// How the values of `columns` are decoded, of a statement that runs as `role`.
    pub(crate) fn decoders(self: &Arc<Self>, columns: &[Column], role: Option<&str>) -> Vec<ColumnDecoder> {
        let catalog = self.known_catalog(role);
        let is_json = |column: &Column| catalog.as_ref().is_some_and(|catalog| catalog.is_json(column));
        columns.iter().map(|column| ColumnDecoder::new(column, is_json(column))).collect()
    }

    /// A connection for a call of `identity`, if the account is suitable.
    pub(crate) async fn acquire(self: &Arc<Self>, identity: SessionIdentity) -> Result<Lease, Error> {
        self.check_account().await?;
        self.pool.acquire(identity).await
    }

    /// With `strict`, an account with further privileges is an error. Otherwise the log has them, and no call waits for
    /// that.
    async fn check_account(self: &Arc<Self>) -> Result<(), Error> {
        for finding in self.login.check(|| self.clone().load_findings()).await? {
            tracing::warn!(database = %self.database, "{finding}");
        }
        Ok(())
    }

    /// The privileges beyond reading, for the owner.
    pub(crate) async fn findings_for_owner(self: &Arc<Self>) -> Result<Arc<Vec<RoleFinding>>, Error> {
        self.login.findings_for_owner(|| self.clone().load_findings()).await
    }

    async fn load_findings(self: Arc<Self>) -> Result<Vec<RoleFinding>, Error> {
        let mut lease = self.pool.acquire(self.owner_identity()).await?;
        lease.check().await?;
        lease.mark_busy();
        let expected = ExpectedGrants {
            roles: self.options.run_as.roles(),
            written: role::written_tables(&self.options.ingest_tables, self.default_schema.as_deref()),
        };
        let found = role::inspect(lease.session()?, &expected).await.map_err(|error| self.error(&error))?;
        lease.mark_idle();
        Ok(found)
    }

    /// What runs for `statement` of `principal`: under row policies, it reads other tables.
    pub(crate) async fn statement_text(
        self: &Arc<Self>,
        statement: &Statement,
        principal: &Principal,
        identity: &SessionIdentity,
    ) -> Result<StatementText, Error> {
        let Some(caller) = RestrictedCaller::new(&self.options.row_policies, principal) else {
            let (text, numbers) = statement.text_with_plain_placeholders()?;
            return Ok(StatementText { text, numbers, restricted: None });
        };
        let restricted = RestrictedStatement::new(statement, caller, self.catalog(&identity.role).await?)?;
        let (text, numbers) = restricted.text()?;
        Ok(StatementText { text, numbers, restricted: Some(restricted) })
    }

    /// Prepares `text` of `statement`. The error names what exists, if a table or a column does not.
    pub(crate) async fn prepare(
        self: &Arc<Self>,
        lease: &mut Lease,
        text: &StatementText,
        statement: &Statement,
    ) -> Result<PreparedStatement, Error> {
        match lease.prepare(&text.text).await? {
            Ok(prepared) => Ok(prepared),
            Err(refusal) => {
                Err(self.error_with_suggestions(&refusal, statement, lease.role(), text.restricted.as_ref()))
            }
        }
    }

    fn error_with_suggestions(
        self: &Arc<Self>,
        refusal: &MySqlError,
        statement: &Statement,
        role: Option<&str>,
        restricted: Option<&RestrictedStatement>,
    ) -> Error {
        let error = error::statement_error(refusal, &self.database);
        let MySqlError::Server(server) = refusal else { return error };
        if server.code == error::SYNTAX_ERROR && restricted.is_some() {
            // The message has a part of the text, in which the policies stand.
            return Error::new(ErrorKind::InvalidArguments, "the server does not read this SQL: a syntax error")
                .with_detail(server.to_string());
        }
        if ![error::NO_SUCH_TABLE, error::NO_SUCH_COLUMN].contains(&server.code) {
            return error;
        }
        let (Some(name), Some(catalog)) = (error::quoted_name(server), self.known_catalog(role)) else { return error };
        if server.code == error::NO_SUCH_TABLE {
            return error.with_choices(catalog.catalog.nearest_tables(name));
        }
        let names: Vec<String> = match restricted {
            Some(restricted) => restricted.column_names(),
            None => {
                let tables = statement.tables().iter().filter_map(|table| catalog.columns(table));
                tables.flatten().map(|column| column.name.clone()).collect()
            }
        };
        let mut choices = nearest_names(name, names.iter().map(String::as_str));
        for name in names {
            if choices.len() < CHOICES_MAX && !choices.contains(&name) {
                choices.push(name);
            }
        }
        error.with_choices(choices)
    }

    /// The plan of the server for a statement, a line for each table, whatever format the server has by default. For a
    /// restricted caller, it has neither numbers of rows nor what is read in place of tables.
    pub(crate) async fn explain(
        &self,
        lease: &mut Lease,
        text: &str,
        parameters: Vec<Value>,
        is_restricted: bool,
    ) -> Result<String, Error> {
        lease.mark_busy();
        let connection = &mut lease.session()?.connection;
        let rows: Result<Vec<Row>, MySqlError> =
            connection.exec(format!("EXPLAIN FORMAT = TRADITIONAL {text}"), Params::Positional(parameters)).await;
        let rows = rows.map_err(|error| error::statement_error(&error, &self.database))?;
        lease.mark_idle();
        Ok(rows.iter().filter_map(|row| explain_line(row, is_restricted)).collect())
    }

    pub(crate) fn error(&self, error: &MySqlError) -> Error {
        error::internal_statement_error(error, &self.database)
    }
}

/// The columns of EXPLAIN that depend on rows, which may be hidden.
const ROW_COLUMNS: &[&str] = &["rows", "filtered", "Extra"];

/// The values of a line of EXPLAIN with their names, without those that are null; `None` for a line of a hidden query.
fn explain_line(row: &Row, is_restricted: bool) -> Option<String> {
    let values = row.columns_ref().iter().enumerate().filter_map(|(index, column)| {
        let value = crate::session::value_text(row, index)?;
        Some((column.name_str().into_owned(), value))
    });
    let values: Vec<(String, String)> = values.collect();
    if is_restricted && values.iter().any(|(name, value)| name == "select_type" && value.ends_with("DERIVED")) {
        return None;
    }
    let is_visible = |(name, _): &&(String, String)| !is_restricted || !ROW_COLUMNS.contains(&name.as_str());
    let parts: Vec<String> = values.iter().filter(is_visible).map(|(name, value)| format!("{name}: {value}")).collect();
    Some(format!("{}\n", parts.join(", ")))
}
