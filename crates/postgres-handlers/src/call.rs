//! Executes one call: begins a transaction with the caller's role, calls the function of the handler, checks its
//! answer, ends the transaction.
//!
//! It calls the function directly and not the dispatcher of the database: the caller, the requirements of the handler
//! and the arguments are already checked. The function runs with the privileges of the caller's role, so that grants
//! and row-level security apply.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use tidegate_core::{CallTarget, Error, ErrorKind, JsonSchema, Principal, Violation};
use tidegate_postgres::{CallTransaction, TransactionIdentity, backoff_delay, error, user_and_tenant};
use tidegate_runtime::{Handler, Job, Metadata, ReplySender};
use tidegate_sql::{SqlDialect, Statement};
use tokio_postgres::types::ToSql;

use crate::answer::{HandlerAnswer, REQUEST_ID};
use crate::catalog::HandlerCatalog;
use crate::database_handlers::DatabaseHandlers;
use crate::failure::{self, HandlerFailure};
use crate::record::HandlerRecord;

/// The maximum size of an answer in the database, in bytes.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// The handler behind a registry entry.
pub(crate) struct PgFunctionHandler {
    handlers: Arc<DatabaseHandlers>,
    record: Arc<HandlerRecord>,
    /// Calls the function of the handler.
    statement: Statement,
    /// Executes the database's own identity check, if it has one.
    identity_check: Option<String>,
    /// The schema of its structured content.
    output_schema: Option<Arc<JsonSchema>>,
    /// Whether the exchange log records the calls.
    logs_exchanges: bool,
}

/// The outcome of an attempt that had no conflict with concurrent transactions.
type AttemptResult = Result<HandlerAnswer, HandlerFailure>;

impl PgFunctionHandler {
    pub(crate) fn new(
        handlers: Arc<DatabaseHandlers>,
        record: Arc<HandlerRecord>,
        catalog: &HandlerCatalog,
        output_schema: Option<Arc<JsonSchema>>,
    ) -> Self {
        let schema = &handlers.options.schema;
        let text = format!(
            "SELECT CASE WHEN pg_catalog.pg_column_size(answer.envelope) <= {ANSWER_BYTES_MAX} THEN answer.envelope::pg_catalog.text END, \
             answer.envelope IS NULL FROM {}(ROW($1::pg_catalog.text::pg_catalog.jsonb, $2::pg_catalog.text, \
             $3::pg_catalog.text::pg_catalog.jsonb, '{REQUEST_ID}'::pg_catalog.jsonb, \
             $4::pg_catalog.text::pg_catalog.jsonb, '{{}}'::pg_catalog.jsonb)::{schema}.mcp_request) AS answer",
            record.function
        );
        let statement = Statement::from_owner(text, Vec::new(), SqlDialect::Postgres);
        let identity_check = catalog
            .checks_identity
            .then(|| format!("SELECT {schema}.enter_identity($1::pg_catalog.text::pg_catalog.jsonb)"));
        let logs_exchanges = catalog.logs_exchanges;
        Self { handlers, record, statement, identity_check, output_schema, logs_exchanges }
    }

    async fn run_with_retries(&self, request: &HandlerRequest) -> AttemptResult {
        let mut tries = 0;
        loop {
            match self.attempt(request).await {
                Err(HandlerFailure::Server(error))
                    if error::is_retryable(&error) && tries < self.record.transaction.retries_max =>
                {
                    tries += 1;
                    tokio::time::sleep(backoff_delay(tries)).await;
                }
                outcome => return outcome,
            }
        }
    }

    async fn attempt(&self, request: &HandlerRequest) -> AttemptResult {
        let mut transaction = self.handlers.database.begin(&self.record.transaction, &request.identity).await?;
        if let Some(time) = self.record.timeout {
            let limit = format!("SET LOCAL statement_timeout = {}", time.as_millis());
            transaction.query(&limit, &[]).await?;
        }
        let is_known = match &self.identity_check {
            Some(check) => self.check_identity(&mut transaction, check, request).await?,
            None => true,
        };
        let prepared = transaction.prepare(&self.statement).await;
        let prepared = prepared.map_err(|error| failure::prepare_error(error, &self.record))?;
        let parameters = request.parameters(is_known);
        let parameters: Vec<&(dyn ToSql + Sync)> = parameters.iter().map(|one| one as &(dyn ToSql + Sync)).collect();
        if !self.record.transaction.writes {
            // Nothing is committed, so the answer need not be checked before the end.
            return self.read_answer(transaction.run_and_roll_back(&prepared, &parameters).await?.first());
        }
        let rows = transaction.run(&prepared, &parameters).await.map_err(HandlerFailure::Server);
        let answer = rows.and_then(|rows| self.read_answer(rows.first()));
        match answer.as_ref().is_ok_and(|answer| answer.is_done() || self.record.commits_on_error) {
            true => transaction.commit().await?,
            false => transaction.roll_back().await,
        }
        answer
    }

    /// Sends the answer, or returns the error.
    async fn send(&self, outcome: AttemptResult, reply: &ReplySender) -> Result<Metadata, Error> {
        match outcome {
            Ok(HandlerAnswer::Done(given)) => given.send(self.record.kind, reply).await,
            Ok(HandlerAnswer::Failed(given)) => {
                let message = given.first_text().unwrap_or("the tool failed").to_owned();
                given.send(self.record.kind, reply).await?;
                Err(Error::new(ErrorKind::Failed, message).mark_rendered())
            }
            Ok(HandlerAnswer::Error(error)) => Err(error),
            Err(failure) => Err(failure.into_error(&self.record, &self.handlers.name, self.handlers.options.writes)),
        }
    }

    fn read_answer(&self, row: Option<&tokio_postgres::Row>) -> AttemptResult {
        let broken = |why: String| HandlerFailure::InvalidAnswer(why);
        let row = row.ok_or_else(|| broken("it returned no row".to_owned()))?;
        let (text, is_null): (Option<&str>, bool) = (row.try_get(0)?, row.try_get(1)?);
        if text.is_none() && !is_null {
            return Err(HandlerFailure::TooLarge);
        }
        let answer = HandlerAnswer::parse(&self.record, text).map_err(broken)?;
        // Before the changes are committed.
        answer.check_schema(self.output_schema.as_deref()).map_err(broken)?;
        Ok(answer)
    }

    /// Executes the database's own identity check: an unrecognised caller is anonymous.
    async fn check_identity(
        &self,
        transaction: &mut CallTransaction,
        check: &str,
        request: &HandlerRequest,
    ) -> Result<bool, HandlerFailure> {
        let rows = transaction.query(check, &[&request.context]).await?;
        let is_known = rows.first().map_or(Ok(false), |row| row.try_get(0))?;
        if !is_known && self.record.requires_auth {
            return Err(HandlerFailure::UnknownCaller);
        }
        Ok(is_known)
    }
}

#[async_trait]
impl Handler for PgFunctionHandler {
    async fn handle(&self, job: Arc<Job>, reply: ReplySender) -> Result<Metadata, Error> {
        let database = &self.handlers.database;
        let request = HandlerRequest::from_job(&job, database.identity_of(job.principal())?)?;
        let outcome = tokio::select! {
            biased;
            () = job.cancelled() => Err(Error::new(ErrorKind::Cancelled, "the call was cancelled").into()),
            error = database.closed() => Err(error.into()),
            outcome = self.run_with_retries(&request) => outcome,
        };
        let outcome = self.send(outcome, &reply).await;
        if self.logs_exchanges {
            let arguments = Value::Object(job.arguments().clone());
            self.handlers.record_call(&self.record, &job, arguments, outcome.as_ref().err());
        }
        outcome
    }
}

/// The request to a handler.
struct HandlerRequest {
    identity: TransactionIdentity,
    arguments: String,
    uri: Option<String>,
    context: String,
    variables: String,
}

impl HandlerRequest {
    /// # Errors
    /// Fails if PostgreSQL cannot represent the request.
    fn from_job(job: &Job, identity: TransactionIdentity) -> Result<Self, Error> {
        let uri = match job.target() {
            CallTarget::Resource(uri) => Some(uri.clone()),
            CallTarget::Tool(_) | CallTarget::Prompt(_) | CallTarget::Completion(_) => None,
        };
        if uri.as_ref().is_some_and(|uri| uri.contains('\0'))
            || job.variables().values().any(|value| value.contains('\0'))
        {
            return Err(Error::new(ErrorKind::NotFound, "no resource of this database has U+0000 in its URI"));
        }
        Ok(Self {
            identity,
            arguments: arguments_to_json(job.arguments())?,
            uri,
            context: caller_context(job.principal()).to_string(),
            variables: json!(job.variables()).to_string(),
        })
    }

    /// The parameters of the call. For an unrecognised caller the context is empty, since a handler may read it
    /// directly.
    fn parameters(&self, is_known: bool) -> [Option<&str>; 4] {
        let context = if is_known { self.context.as_str() } else { "{}" };
        [Some(&self.arguments), self.uri.as_deref(), Some(context), Some(&self.variables)]
    }
}

/// The arguments as JSON text that PostgreSQL can represent.
///
/// # Errors
/// `InvalidArguments` with each occurrence of U+0000, which PostgreSQL's text cannot contain.
pub(crate) fn arguments_to_json(arguments: &Map<String, Value>) -> Result<String, Error> {
    let mut violations = Vec::new();
    for (name, value) in arguments {
        find_nul(value, name, &mut violations);
        if name.contains('\0') {
            violations.push(nul_violation(name.replace('\0', "\\u0000")));
        }
    }
    match violations.is_empty() {
        true => Ok(Value::Object(arguments.clone()).to_string()),
        false => Err(Error::invalid_arguments("the database cannot represent the arguments:", violations)),
    }
}

fn find_nul(value: &Value, path: &str, found: &mut Vec<Violation>) {
    match value {
        Value::String(text) if text.contains('\0') => found.push(nul_violation(path.to_owned())),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| find_nul(item, &format!("{path}[{index}]"), found));
        }
        Value::Object(members) => {
            for (name, member) in members {
                let path = format!("{path}.{}", name.replace('\0', "\\u0000"));
                if name.contains('\0') {
                    found.push(nul_violation(path.clone()));
                }
                find_nul(member, &path, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn nul_violation(path: String) -> Violation {
    Violation { path, message: "contains U+0000, which PostgreSQL text cannot contain".to_owned() }
}

/// The context for handlers: `user_id`, `tenant_id` and the verified claims of the caller.
pub(crate) fn caller_context(principal: &Principal) -> Value {
    let [user, tenant] = user_and_tenant(principal);
    let mut context = Map::new();
    for (name, value) in [("user_id", user), ("tenant_id", tenant)] {
        if !value.is_empty() {
            context.insert(name.to_owned(), value.replace('\0', "\\u0000").into());
        }
    }
    let mut nul = Vec::new();
    principal.claims.values().for_each(|claim| find_nul(claim, "", &mut nul));
    if !principal.claims.is_empty() && nul.is_empty() {
        context.insert("claims".to_owned(), Value::Object(principal.claims.clone()));
    }
    Value::Object(context)
}
