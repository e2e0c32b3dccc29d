//! Executes one call: begins a transaction with the caller's role, calls the function of the handler, checks its
//! answer, ends the transaction.
//!
//! It calls the function directly and not the dispatcher of the database: the caller, the requirements of the handler
//! and the arguments are already checked. The function runs with the privileges of the caller's role, so that grants
//! and row-level security apply.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use tidegate_core::{CallTarget, Error, ErrorKind, JsonSchema, Principal, Violation};
use tidegate_runtime::{Handler, Job, Metadata, ReplySender};
use tidegate_sql::{SqlDialect, Statement};
use tokio_postgres::types::ToSql;

use super::answer::{HandlerAnswer, REQUEST_ID};
use super::catalog::HandlerCatalog;
use super::handler_error::{self, HandlerFailure};
use super::record::HandlerRecord;
use super::schema_name::SchemaName;
use crate::error;
use crate::identity::user_and_tenant;
use crate::lease::Lease;
use crate::retry_backoff;
use crate::server::PostgresServer;
use crate::session::TransactionIdentity;
use crate::transaction::{COMMIT, ROLLBACK};

/// The maximum size of an answer in the database, in bytes.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// The handler behind a registry entry.
pub(crate) struct DatabaseHandler {
    server: Arc<PostgresServer>,
    record: Arc<HandlerRecord>,
    /// Calls the function of the handler.
    statement: Statement,
    /// Executes the database's own identity check, if it has one.
    identity_check: Option<String>,
    /// The schema of its structured content.
    output_schema: Option<Arc<JsonSchema>>,
    /// The schema with the exchange log that records the calls, if enabled.
    exchange_log_schema: Option<SchemaName>,
}

/// The outcome of an attempt that had no conflict with concurrent transactions.
type AttemptResult = Result<HandlerAnswer, HandlerFailure>;

impl DatabaseHandler {
    pub(crate) fn new(
        server: Arc<PostgresServer>,
        record: Arc<HandlerRecord>,
        schema: &SchemaName,
        catalog: &HandlerCatalog,
        output_schema: Option<Arc<JsonSchema>>,
    ) -> Self {
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
        let exchange_log_schema = catalog.logs_exchanges.then(|| schema.clone());
        Self { server, record, statement, identity_check, output_schema, exchange_log_schema }
    }

    async fn run_with_retries(&self, request: &HandlerRequest) -> Result<HandlerAnswer, HandlerFailure> {
        let identity = &request.identity;
        let mut tries = 0;
        loop {
            let outcome = self.attempt(request, identity).await;
            match outcome {
                Err(HandlerFailure::Server(text))
                    if error::is_retryable(&text) && tries < self.record.transaction.retries_max =>
                {
                    tries += 1;
                    tokio::time::sleep(retry_backoff::backoff_delay(tries)).await;
                }
                outcome => return outcome,
            }
        }
    }

    async fn attempt(&self, request: &HandlerRequest, identity: &TransactionIdentity) -> AttemptResult {
        let mut lease = self.server.acquire().await?;
        lease.begin(&self.record.transaction, identity).await?;
        if let Some(time) = self.record.timeout {
            self.set_statement_timeout(&mut lease, time).await?;
        }
        let is_known = match &self.identity_check {
            Some(check) => self.check_identity(&mut lease, check, request).await?,
            None => true,
        };
        let prepared = self.server.prepare(&mut lease, &self.statement, &self.record.transaction, identity).await;
        let prepared = prepared.map_err(|error| handler_error::prepare_error(error, &self.record))?;
        let connected = lease.session()?.connection().clone();
        lease.mark_busy();
        let parameters = request.parameters(is_known);
        let parameters: Vec<&(dyn ToSql + Sync)> = parameters.iter().map(|one| one as &(dyn ToSql + Sync)).collect();
        let run = connected.client().query(&prepared.statement, &parameters);
        if self.record.transaction.writes {
            let answer = run.await.map_err(HandlerFailure::Server).and_then(|rows| self.read_answer(rows.first()));
            let stays = answer.as_ref().is_ok_and(|answer| answer.is_done() || self.record.commits_on_error);
            let ended = lease.end(if stays { COMMIT } else { ROLLBACK }).await;
            if stays {
                ended.map_err(HandlerFailure::Server)?;
            }
            return answer;
        }
        // Nothing is committed, so the answer need not be checked before the end.
        let (rows, ended) = futures::future::join(run, connected.client().batch_execute(ROLLBACK)).await;
        if ended.is_ok() {
            lease.mark_idle();
        }
        self.read_answer(rows.map_err(HandlerFailure::Server)?.first())
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
            Err(failure) => {
                Err(failure.into_error(&self.record, &self.server.database, self.server.handlers_may_write()))
            }
        }
    }

    fn read_answer(&self, row: Option<&tokio_postgres::Row>) -> AttemptResult {
        let broken = |why: String| HandlerFailure::InvalidAnswer(why);
        let row = row.ok_or_else(|| broken("it returned no row".to_owned()))?;
        let (text, is_null): (Option<&str>, bool) =
            (row.try_get(0).map_err(HandlerFailure::Server)?, row.try_get(1).map_err(HandlerFailure::Server)?);
        if text.is_none() && !is_null {
            return Err(HandlerFailure::TooLarge);
        }
        let answer = HandlerAnswer::parse(&self.record, text).map_err(broken)?;
        // Before the changes are committed.
        answer.check_schema(self.output_schema.as_deref()).map_err(broken)?;
        Ok(answer)
    }

    /// Limits the time of the following statements.
    async fn set_statement_timeout(&self, lease: &mut Lease, time: Duration) -> Result<(), HandlerFailure> {
        let connected = lease.session()?.connection().clone();
        lease.mark_busy();
        let words = format!("SET LOCAL statement_timeout = {}", time.as_millis());
        connected.client().batch_execute(&words).await.map_err(HandlerFailure::Server)?;
        lease.mark_in_transaction();
        Ok(())
    }

    /// Executes the database's own identity check: an unrecognised caller is anonymous.
    async fn check_identity(
        &self,
        lease: &mut Lease,
        check: &str,
        request: &HandlerRequest,
    ) -> Result<bool, HandlerFailure> {
        let connected = lease.session()?.connection().clone();
        lease.mark_busy();
        let types = [(&request.context as &(dyn ToSql + Sync), tokio_postgres::types::Type::TEXT)];
        let rows = connected.client().query_typed(check, &types).await.map_err(HandlerFailure::Server)?;
        lease.mark_in_transaction();
        let is_known = rows.first().map_or(Ok(false), |row| row.try_get(0)).map_err(HandlerFailure::Server)?;
        if !is_known && self.record.requires_auth {
            return Err(HandlerFailure::UnknownCaller);
        }
        Ok(is_known)
    }
}

#[async_trait]
impl Handler for DatabaseHandler {
    async fn handle(&self, job: Arc<Job>, reply: ReplySender) -> Result<Metadata, Error> {
        let request = HandlerRequest::from_job(&job, self.server.identity_of(job.principal())?)?;
        let outcome = tokio::select! {
            biased;
            () = job.cancelled() => Err(HandlerFailure::ClientError(Error::new(ErrorKind::Cancelled, "the call was cancelled"))),
            () = self.server.background_tasks().closing.cancelled() => {
                Err(HandlerFailure::ClientError(crate::pool::closed_error(&self.server.database)))
            }
            outcome = self.run_with_retries(&request) => outcome,
        };
        let outcome = self.send(outcome, &reply).await;
        if let Some(schema) = &self.exchange_log_schema {
            let arguments = Value::Object(job.arguments().clone());
            let failure = outcome.as_ref().err();
            self.server.exchange_log.record_call(&self.server, schema, &self.record, &job, arguments, failure);
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
pub(super) fn arguments_to_json(arguments: &Map<String, Value>) -> Result<String, Error> {
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
pub(super) fn caller_context(principal: &Principal) -> Value {
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
