//! Handlers that return rows: each runs as an ordinary statement, whose rows are streamed.

use std::sync::Arc;

use serde_json::{Map, Value};
use tidegate_core::{Error, ErrorKind};
use tidegate_postgres::error::handler_rows_error;
use tidegate_runtime::Job;
use tidegate_sql::{Parameter, SqlDialect, Statement, Transaction};

use crate::call::{arguments_to_json, caller_context};
use crate::client_request::RequestParameters;
use crate::database_handlers::{DatabaseHandlers, HandlerCatalog};
use crate::record::HandlerRecord;

/// A handler that returns rows.
pub struct PgRowsFunction {
    handlers: Arc<DatabaseHandlers>,
    text: String,
    transaction: Arc<Transaction>,
    identity_check: Option<String>,
    record: Arc<HandlerRecord>,
    records_calls: bool,
}

impl PgRowsFunction {
    pub(crate) fn new(handlers: Arc<DatabaseHandlers>, record: Arc<HandlerRecord>, catalog: &HandlerCatalog) -> Self {
        let schema = &handlers.options.schema;
        // If the database has an identity check, an unrecognised caller becomes anonymous. The handler runs after the
        // check, because it needs its result.
        let (caller, context) = match catalog.checks_identity {
            true => (
                format!(
                    "(SELECT {schema}.enter_identity($2::pg_catalog.text::pg_catalog.jsonb) AS is_recognised OFFSET 0) AS identity, "
                ),
                "CASE WHEN identity.is_recognised THEN $2::pg_catalog.text::pg_catalog.jsonb ELSE '{}' END",
            ),
            false => (String::new(), "$2::pg_catalog.text::pg_catalog.jsonb"),
        };
        // In the select list, the function returns one row at a time; in FROM, it would run to its end first.
        let rows = format!(
            "{caller}LATERAL (SELECT {}(ROW($1::pg_catalog.text::pg_catalog.jsonb, NULL, {context}, \
             $3::pg_catalog.text::pg_catalog.jsonb, '{{}}'::pg_catalog.jsonb, $4::pg_catalog.text::pg_catalog.jsonb)::{schema}.mcp_request) AS row) AS returned",
            record.function
        );
        let text = match &record.columns {
            Some(columns) => {
                format!("SELECT one.* FROM {rows}, LATERAL pg_catalog.jsonb_to_record(returned.row) AS one({columns})")
            }
            None => format!("SELECT returned.row FROM {rows}"),
        };
        let checks_identity = catalog.checks_identity && record.requires_auth;
        let check = || format!("SELECT {schema}.identity_is_known($1::pg_catalog.text::pg_catalog.jsonb)");
        Self {
            text,
            transaction: Arc::new(Transaction { writes: false, ..record.transaction.clone() }),
            identity_check: checks_identity.then(check),
            handlers,
            record,
            records_calls: catalog.records_calls,
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
        let RequestParameters { id, meta } = RequestParameters::from_job(job)?;
        let meta = meta.map_or(Parameter::Null, Parameter::Text);
        let parameters = vec![Parameter::Text(arguments), Parameter::Text(context), Parameter::Text(id), meta];
        let statement = Statement::from_handler(self.text.clone(), parameters, SqlDialect::Postgres);
        Ok(statement.in_transaction(self.transaction.clone()))
    }

    /// Records that the call `job`, with `arguments`, has ended.
    pub fn record_end(&self, job: &Job, arguments: Map<String, Value>, failure: Option<&Error>) {
        if self.records_calls {
            self.handlers.call_log.record(&self.record, job, Value::Object(arguments), failure);
        }
    }

    async fn check_identity(&self, check: &str, context: &str, job: &Job) -> Result<(), Error> {
        let database = &self.handlers.database;
        let mut transaction = database.begin(&Transaction::default(), &database.identity_of(job.principal())?).await?;
        let rows = transaction.query(check, &[context]).await;
        let rows = rows.map_err(|error| handler_rows_error(&error, &self.handlers.name))?;
        transaction.roll_back().await;
        match rows.first().map(|row| row.try_get(0)) {
            Some(Ok(true)) => Ok(()),
            _ => Err(Error::new(ErrorKind::Unauthenticated, "the database does not recognise the caller")),
        }
    }
}
