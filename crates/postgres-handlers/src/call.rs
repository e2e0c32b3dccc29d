//! Executes one call: begins a transaction with the caller's role, calls the function of the handler, checks its
//! answer, ends the transaction. A handler receives the request of the client with its id and its `_meta`.
//!
//! It calls the function directly and not the dispatcher of the database: the caller, the requirements of the handler
//! and the arguments are already checked. The function runs with the privileges of the caller's role, so that grants
//! and row-level security apply.
//!
//! Handlers that return rows run as ordinary statements, whose rows are streamed.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use tidegate_core::{CallTarget, Error, ErrorKind, JsonSchema, Principal, Violation};
use tidegate_postgres::error::{
    common_handler_error, handler_error_detail, handler_rows_error, internal_statement_error, is_function_missing,
    is_retryable,
};
use tidegate_postgres::{CallTransaction, TransactionIdentity, retry_backoff, user_and_tenant};
use tidegate_runtime::event::QueryStep;
use tidegate_runtime::{Answer, Handler, Job, RunningCall};
use tidegate_sql::{Parameter, SqlDialect, Statement, Transaction};
use tokio_postgres::types::ToSql;

use crate::answer::HandlerAnswer;
use crate::database_handlers::{DatabaseHandlers, HandlerCatalog};
use crate::record::{Compatibility, HandlerRecord};

/// The code of JSON-RPC for a failure of the server, which pgmi has for all errors that a handler raises.
const INTERNAL_ERROR_CODE: i64 = -32_603;

/// The maximum size of an answer in the database, in bytes.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// The handler behind a registry entry.
pub(crate) struct PgFunctionHandler {
    handlers: Arc<DatabaseHandlers>,
    record: Arc<HandlerRecord>,
    statement: Statement,
    /// Executes the database's own identity check, if it has one.
    identity_check: Option<String>,
    output_schema: Option<Arc<JsonSchema>>,
    records_calls: bool,
}

/// Why a handler gave no valid answer.
enum HandlerFailure {
    /// An error of the server, which may be a conflict with concurrent transactions.
    Server(tokio_postgres::Error),
    Client(Error),
}

impl From<tokio_postgres::Error> for HandlerFailure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Server(error)
    }
}

impl From<Error> for HandlerFailure {
    fn from(error: Error) -> Self {
        Self::Client(error)
    }
}

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
             answer.envelope IS NULL, answer.envelope -> 'id' IS NOT DISTINCT FROM $5::pg_catalog.text::pg_catalog.jsonb \
             FROM {}(ROW($1::pg_catalog.text::pg_catalog.jsonb, $2::pg_catalog.text, \
             $3::pg_catalog.text::pg_catalog.jsonb, $5::pg_catalog.text::pg_catalog.jsonb, \
             $4::pg_catalog.text::pg_catalog.jsonb, $6::pg_catalog.text::pg_catalog.jsonb)::{schema}.mcp_request) AS answer",
            record.function
        );
        let statement = Statement::from_owner(text, Vec::new(), SqlDialect::Postgres);
        let check = || format!("SELECT {schema}.enter_identity($1::pg_catalog.text::pg_catalog.jsonb)");
        let identity_check = catalog.checks_identity.then(check);
        Self { handlers, record, statement, identity_check, output_schema, records_calls: catalog.records_calls }
    }

    async fn run_with_retries(&self, request: &HandlerRequest, job: &Job) -> Result<HandlerAnswer, HandlerFailure> {
        let (mut retries, mut backoff) = (0, retry_backoff());
        loop {
            match self.attempt(request).await {
                Err(HandlerFailure::Server(error))
                    if is_retryable(&error) && retries < self.record.transaction.retries_max =>
                {
                    retries += 1;
                    job.report_step(QueryStep::Retried { reason: "its transaction conflicted with another one" });
                    tokio::time::sleep(backoff.next_delay()).await;
                }
                outcome => return outcome,
            }
        }
    }

    async fn attempt(&self, request: &HandlerRequest) -> Result<HandlerAnswer, HandlerFailure> {
        let mut transaction = self.handlers.database.begin(&self.record.transaction, &request.identity).await?;
        if self.is_pgmi() {
            transaction.query("SELECT pg_catalog.set_config('mcp.compatibility', 'pgmi', true)", &[]).await?;
        }
        if let Some(timeout) = self.record.timeout {
            let sql = format!("SET LOCAL statement_timeout = {}", timeout.as_millis());
            transaction.query(&sql, &[]).await?;
        }
        let is_recognised = match &self.identity_check {
            Some(check) => self.check_identity(&mut transaction, check, request).await?,
            None => true,
        };
        let prepared = transaction.prepare(&self.statement).await.map_err(|error| self.prepare_error(error))?;
        let parameters = request.parameters(is_recognised);
        let parameters: Vec<_> = parameters.iter().map(|parameter| parameter as &(dyn ToSql + Sync)).collect();
        if !self.record.transaction.writes {
            // Nothing is committed, so the answer need not be checked before the end.
            return self.read_answer(transaction.run_and_roll_back(&prepared, &parameters).await?.first());
        }
        let rows = transaction.run(&prepared, &parameters).await.map_err(HandlerFailure::Server);
        let answer = rows.and_then(|rows| self.read_answer(rows.first()));
        let is_done = |answer: &HandlerAnswer| matches!(answer, HandlerAnswer::Done(_));
        match answer.as_ref().is_ok_and(|answer| is_done(answer) || self.record.commits_on_error) {
            true => transaction.commit().await?,
            false => transaction.roll_back().await,
        }
        answer
    }

    fn is_pgmi(&self) -> bool {
        self.handlers.options.compatibility == Compatibility::Pgmi
    }

    fn answer(&self, outcome: Result<HandlerAnswer, HandlerFailure>) -> Result<Answer, Error> {
        match outcome {
            Ok(HandlerAnswer::Done(output)) => Ok(output.into_answer(self.record.kind)),
            Ok(HandlerAnswer::Failed(output)) => {
                let message = output.first_text().unwrap_or("the tool failed").to_owned();
                let failure = Error::new(ErrorKind::Failed, message).mark_reported();
                Ok(output.into_answer(self.record.kind).followed_by(|_, _| async move { Err(failure) }))
            }
            Ok(HandlerAnswer::Error(error)) | Err(HandlerFailure::Client(error)) => Err(self.to_protocol_error(error)),
            Err(HandlerFailure::Server(error)) => Err(self.to_protocol_error(self.server_error(&error))),
        }
    }

    /// Under pgmi, failures are errors of the protocol, also those of tools.
    fn to_protocol_error(&self, error: Error) -> Error {
        let is_failure = matches!(error.kind(), ErrorKind::Failed | ErrorKind::Internal);
        match self.is_pgmi() && is_failure && error.protocol_error().is_none() {
            true => error.with_protocol_error(INTERNAL_ERROR_CODE, None),
            false => error,
        }
    }

    fn read_answer(&self, row: Option<&tokio_postgres::Row>) -> Result<HandlerAnswer, HandlerFailure> {
        let (kind, name) = (self.record.kind.name(), &self.record.name);
        let invalid = |reason: String| {
            let database = &self.handlers.name;
            Error::internal(format!("database {database}: the handler of the {kind} {name:?}: {reason}"))
        };
        let row = row.ok_or_else(|| invalid("it returned no row".to_owned()))?;
        let (text, is_null, has_id): (Option<&str>, bool, bool) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        if text.is_none() && !is_null {
            let message = format!("the answer of the {kind} {name:?} exceeds the limit of 16 MiB");
            return Err(Error::new(ErrorKind::TooLarge, message).into());
        }
        if text.is_some() && !has_id {
            // PostgreSQL compares: its jsonb writes an equal id in another form.
            return Err(invalid("its envelope has another id than the request".to_owned()).into());
        }
        let answer = HandlerAnswer::parse(&self.record, self.handlers.options.compatibility, text).map_err(invalid)?;
        // Before the changes are committed.
        answer.check_schema(self.output_schema.as_deref()).map_err(invalid)?;
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
        let is_recognised = rows.first().map_or(Ok(false), |row| row.try_get(0))?;
        if !is_recognised && self.record.requires_auth {
            let message = "the handler requires a caller that the database recognises";
            return Err(Error::new(ErrorKind::Unauthenticated, message).into());
        }
        Ok(is_recognised)
    }

    /// The error if the call could not be prepared. Usually the handler was dropped or its privilege revoked, and the
    /// registry is not updated yet.
    fn prepare_error(&self, error: Error) -> Error {
        match error.kind() {
            ErrorKind::Unavailable | ErrorKind::TimedOut | ErrorKind::Internal => error,
            _ => self.not_found_error(),
        }
    }

    fn server_error(&self, error: &tokio_postgres::Error) -> Error {
        let (kind, database) = (self.record.kind.name(), &self.handlers.name);
        let Some(db_error) = error.as_db_error() else { return internal_statement_error(error, database) };
        if let Some(error) = common_handler_error(error, db_error, kind, database) {
            return error;
        }
        let subject = format!("the handler of the {kind} {:?}", self.record.name);
        let detail = handler_error_detail(db_error, &subject, database);
        match db_error.code().code() {
            "25006" if self.record.read_only => {
                let message =
                    format!("write_in_read_only_handler: the {kind} is declared read-only and tried to write");
                Error::new(ErrorKind::Forbidden, message).with_detail(detail)
            }
            "25006" if !self.handlers.options.writes => {
                let message =
                    format!("the {kind} tried to write, but the handlers of {database} are read-only on this node");
                Error::new(ErrorKind::Forbidden, message)
                    .with_hint("To allow it, set writes: true under handlers in the configuration.")
                    .with_detail(detail)
            }
            _ if is_function_missing(db_error) => self.not_found_error(),
            _ if self.is_pgmi() => Error::new(ErrorKind::Failed, db_error.message()).with_detail(detail),
            _ => Error::internal(detail),
        }
    }

    /// The same error as for a name that never existed.
    fn not_found_error(&self) -> Error {
        let (kind, name) = (self.record.kind.name(), &self.record.name);
        Error::new(ErrorKind::NotFound, format!("there is no {kind} {name:?}"))
    }
}

#[async_trait]
impl Handler for PgFunctionHandler {
    async fn handle(&self, call: RunningCall) -> Result<Answer, Error> {
        let database = &self.handlers.database;
        let mut request = HandlerRequest::from_job(&call, database.identity_of(call.principal())?)?;
        if self.is_pgmi() && !request.request.id.starts_with('"') {
            // A handler of pgmi receives the id of a request as a string.
            request.request.id = format!("\"{}\"", request.request.id);
        }
        let outcome = tokio::select! {
            biased;
            () = call.cancelled() => Err(Error::cancelled().into()),
            error = database.closed() => Err(error.into()),
            outcome = self.run_with_retries(&request, &call) => outcome,
        };
        let answer = self.answer(outcome);
        if !self.records_calls {
            return answer;
        }
        let (handlers, record) = (self.handlers.clone(), self.record.clone());
        Ok(Answer::written(move |reply| async move {
            let outcome = async { answer?.send(&reply).await }.await;
            let arguments = Value::Object(reply.job().arguments().clone());
            handlers.call_log.record(&record, reply.job(), arguments, outcome.as_ref().err());
            outcome
        }))
    }
}

struct HandlerRequest {
    identity: TransactionIdentity,
    arguments: String,
    uri: Option<String>,
    context: String,
    variables: String,
    request: RequestParameters,
}

impl HandlerRequest {
    /// Fails if PostgreSQL cannot represent the request.
    fn from_job(job: &Job, identity: TransactionIdentity) -> Result<Self, Error> {
        let uri = match job.target() {
            CallTarget::Resource(uri) => Some(uri.clone()),
            CallTarget::Tool(_) | CallTarget::Prompt(_) | CallTarget::Completion(_) => None,
        };
        if uri.iter().chain(job.request().variables.values()).any(|text| text.contains('\0')) {
            return Err(Error::new(ErrorKind::NotFound, "no resource of this database has U+0000 in its URI"));
        }
        Ok(Self {
            identity,
            arguments: arguments_to_json(job.arguments())?,
            uri,
            context: caller_context(job.principal()).to_string(),
            variables: json!(job.request().variables).to_string(),
            request: RequestParameters::from_job(job)?,
        })
    }

    /// The parameters of the call. For an unrecognised caller the context is empty, since a handler may read it
    /// directly.
    fn parameters(&self, is_recognised: bool) -> [Option<&str>; 6] {
        let context = if is_recognised { self.context.as_str() } else { "{}" };
        let RequestParameters { id, meta } = &self.request;
        [Some(&self.arguments), self.uri.as_deref(), Some(context), Some(&self.variables), Some(id), meta.as_deref()]
    }
}

/// The arguments as JSON text; `InvalidArguments` with each occurrence of U+0000, which PostgreSQL's text cannot
/// contain.
fn arguments_to_json(arguments: &Map<String, Value>) -> Result<String, Error> {
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

fn find_nul(value: &Value, path: &str, violations: &mut Vec<Violation>) {
    match value {
        Value::String(text) if text.contains('\0') => violations.push(nul_violation(path.to_owned())),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| find_nul(item, &format!("{path}[{index}]"), violations));
        }
        Value::Object(members) => {
            for (name, member) in members {
                let path = format!("{path}.{}", name.replace('\0', "\\u0000"));
                if name.contains('\0') {
                    violations.push(nul_violation(path.clone()));
                }
                find_nul(member, &path, violations);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn nul_violation(path: String) -> Violation {
    Violation { path, message: "contains U+0000, which PostgreSQL text cannot contain".to_owned() }
}

/// The context for handlers: `user_id`, `tenant_id` and the verified claims of the caller.
fn caller_context(principal: &Principal) -> Value {
    let [user, tenant] = user_and_tenant(principal);
    let mut context = Map::new();
    for (name, value) in [("user_id", user), ("tenant_id", tenant)] {
        if !value.is_empty() {
            context.insert(name.to_owned(), value.replace('\0', "\\u0000").into());
        }
    }
    let mut violations = Vec::new();
    principal.claims.values().for_each(|claim| find_nul(claim, "", &mut violations));
    if !principal.claims.is_empty() && violations.is_empty() {
        context.insert("claims".to_owned(), Value::Object(principal.claims.clone()));
    }
    Value::Object(context)
}

/// The id and `_meta` of a request, as text that PostgreSQL can cast to jsonb.
pub(crate) struct RequestParameters {
    pub(crate) id: String,
    pub(crate) meta: Option<String>,
}

impl RequestParameters {
    /// A call without a JSON-RPC request has the id of its job, which is in the log.
    ///
    /// # Errors
    /// `InvalidArguments` if PostgreSQL cannot represent the id or `_meta`.
    pub(crate) fn from_job(job: &Job) -> Result<Self, Error> {
        let Some(request) = &job.request().client_request else {
            return Ok(Self { id: format!("\"{}\"", job.id()), meta: None });
        };
        let mut violations = Vec::new();
        for (path, text) in [("id", Some(&request.id)), ("params._meta", request.meta.as_ref())] {
            match text.map(|text| serde_json::from_str::<Value>(text)).transpose() {
                Ok(value) => value.iter().for_each(|value| find_nul(value, path, &mut violations)),
                Err(error) => violations.push(Violation { path: path.to_owned(), message: error.to_string() }),
            }
        }
        match violations.is_empty() {
            true => Ok(Self { id: (*request.id).to_owned(), meta: request.meta.as_deref().map(str::to_owned) }),
            false => Err(Error::invalid_arguments("the database cannot represent the request:", violations)),
        }
    }
}

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
