//! Handlers that return rows: each runs as an ordinary statement, whose rows are streamed.

use std::sync::Arc;

use serde_json::{Map, Value};
use tidegate_core::{Error, ErrorKind};
use tidegate_runtime::Job;
use tidegate_sql::{Parameter, SqlDialect, Statement, Transaction};

use super::answer::REQUEST_ID;
use super::call::{arguments_to_json, caller_context};
use super::catalog::HandlerCatalog;
use super::record::HandlerRecord;
use super::schema_name::SchemaName;
use crate::server::PostgresServer;
use crate::transaction::ROLLBACK;

/// A handler that returns rows.
pub struct HandlerRows {
    server: Arc<PostgresServer>,
    text: String,
    transaction: Arc<Transaction>,
    /// Executes the database's own identity check, if needed.
    identity_check: Option<String>,
    record: Arc<HandlerRecord>,
    /// The schema with the exchange log that records the calls, if enabled.
    exchange_log_schema: Option<SchemaName>,
}

impl HandlerRows {
    pub(crate) fn new(
        server: Arc<PostgresServer>,
        record: Arc<HandlerRecord>,
        schema: &SchemaName,
        catalog: &HandlerCatalog,
    ) -> Self {
        // If the database has an identity check, an unrecognised caller becomes anonymous. The handler runs after the
        // check, because it needs its result.
        let (caller, context) = match catalog.checks_identity {
            true => (
                format!(
                    "(SELECT {schema}.enter_identity($2::pg_catalog.text::pg_catalog.jsonb) AS is_known OFFSET 0) AS who, "
                ),
                "CASE WHEN who.is_known THEN $2::pg_catalog.text::pg_catalog.jsonb ELSE '{}' END",
            ),
            false => (String::new(), "$2::pg_catalog.text::pg_catalog.jsonb"),
        };
        // In the select list, the function returns one row at a time; in FROM, it would run to its end first.
        let rows = format!(
            "{caller}LATERAL (SELECT {}(ROW($1::pg_catalog.text::pg_catalog.jsonb, NULL, {context}, \
             '{REQUEST_ID}'::pg_catalog.jsonb, '{{}}'::pg_catalog.jsonb, '{{}}'::pg_catalog.jsonb)::{schema}.mcp_request) AS row) AS given",
            record.function
        );
        let text = match &record.columns {
            Some(columns) => {
                format!("SELECT one.* FROM {rows}, LATERAL pg_catalog.jsonb_to_record(given.row) AS one({columns})")
            }
            None => format!("SELECT given.row FROM {rows}"),
        };
        let check = || format!("SELECT {schema}.identity_is_known($1::pg_catalog.text::pg_catalog.jsonb)");
        let transaction = Transaction { writes: false, ..record.transaction.clone() };
        Self {
            server,
            text,
            transaction: Arc::new(transaction),
            identity_check: (catalog.checks_identity && record.requires_auth).then(check),
            record,
            exchange_log_schema: catalog.logs_exchanges.then(|| schema.clone()),
        }
    }

    /// The statement for `job`, which was called with `arguments`.
    ///
    /// # Errors
    /// `AuthenticationError` if the database does not recognise the caller.
    pub async fn statement(&self, job: &Job, arguments: Map<String, Value>) -> Result<Statement, Error> {
        let context = caller_context(job.principal()).to_string();
        if let Some(check) = &self.identity_check {
            self.check_identity(check, &context, job).await?;
        }
        let arguments = arguments_to_json(&arguments)?;
        let parameters = vec![Parameter::Text(arguments), Parameter::Text(context)];
        let statement = Statement::from_handler(self.text.clone(), parameters, SqlDialect::Postgres);
        Ok(statement.in_transaction(self.transaction.clone()))
    }

    /// Records that the call `job`, with `arguments`, has ended.
    pub fn record_end(&self, job: &Job, arguments: Map<String, Value>, failure: Option<&Error>) {
        if let Some(schema) = &self.exchange_log_schema {
            self.server.exchange_log.record_call(
                &self.server,
                schema,
                &self.record,
                job,
                Value::Object(arguments),
                failure,
            );
        }
    }

    async fn check_identity(&self, check: &str, context: &String, job: &Job) -> Result<(), Error> {
        let identity = self.server.identity_of(job.principal())?;
        let mut lease = self.server.begin(&Transaction::default(), &identity).await?;
        let connected = lease.session()?.connection().clone();
        lease.mark_busy();
        let rows = connected.client().query_typed(check, &[(context, tokio_postgres::types::Type::TEXT)]).await;
        let database = &self.server.database;
        let rows = rows.map_err(|error| super::handler_error::rows_error(&error, database))?;
        // If this fails, the lease discards the connection; the result stays valid.
        let _ = lease.end(ROLLBACK).await;
        match rows.first().map(|row| row.try_get(0)) {
            Some(Ok(true)) => Ok(()),
            _ => Err(Error::new(ErrorKind::Unauthenticated, "the database does not recognise the caller")),
        }
    }
}
