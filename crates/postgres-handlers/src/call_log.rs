//! The call log in the table `exchange` of a database: caller, handler, duration and outcome of each call.
//!
//! Lines are written after the answers, on separate connections. Therefore failed calls are recorded although they are
//! rolled back, and no call waits for the log. Lines that cannot be written are counted and reported; they do not
//! affect calls.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};
use tidegate_core::{CallTarget, Error, ErrorKind};
use tidegate_postgres::error::internal_statement_error;
use tidegate_postgres::{PostgresDatabase, user_and_tenant};
use tidegate_runtime::Job;
use tidegate_sql::Transaction;
use tokio::sync::mpsc;

use crate::call::RequestParameters;
use crate::install::SchemaName;
use crate::record::HandlerRecord;

/// The maximum number of queued lines; further lines are lost and counted.
const QUEUED_LINES_MAX: usize = 1_000;
/// The maximum size of the arguments in a line, in bytes; larger arguments are left out.
const ARGUMENTS_BYTES_MAX: usize = 64 << 10;
/// The maximum length of the error detail in a line, in characters.
const DETAIL_CHARACTERS_MAX: usize = 4_000;
const BATCH_LINES_MAX: usize = 100;

/// The database performs the redaction, so that a path has the same meaning for all writers.
const INSERT_SQL: &str = "
INSERT INTO {schema}.exchange
    (type, name, user_id, tenant_id, request_id, duration_ms, outcome, code, reference, detail, arguments)
SELECT line.type, line.name, line.user_id, line.tenant_id, line.request_id::pg_catalog.jsonb, line.duration_ms,
    line.outcome, line.code, line.reference, line.detail,
    CASE WHEN handler.name IS NOT NULL THEN {schema}.logged_arguments(handler,
        ROW(line.arguments, line.uri, NULL, NULL, line.variables, NULL)::{schema}.mcp_request) END
FROM pg_catalog.jsonb_to_recordset($1::pg_catalog.text::pg_catalog.jsonb) AS line
    (type pg_catalog.text, name pg_catalog.text, user_id pg_catalog.text, tenant_id pg_catalog.text,
    request_id pg_catalog.text, duration_ms pg_catalog.float8, outcome pg_catalog.text, code pg_catalog.text, reference pg_catalog.text,
    detail pg_catalog.text, arguments pg_catalog.jsonb, uri pg_catalog.text, variables pg_catalog.jsonb)
LEFT JOIN {schema}.handler ON handler.type = line.type AND handler.name = line.name";

/// The call log of one database. Its writer starts with the first call.
pub(crate) struct CallLog {
    writer: Arc<CallWriter>,
    lines: OnceLock<mpsc::Sender<CallLine>>,
}

struct CallWriter {
    database: Arc<PostgresDatabase>,
    name: Arc<str>,
    insert_sql: String,
    lost: AtomicU64,
}

struct CallLine {
    role: Option<String>,
    /// In the form that [`INSERT_SQL`] reads.
    json: Value,
}

impl CallLog {
    pub(crate) fn new(database: Arc<PostgresDatabase>, name: Arc<str>, schema: &SchemaName) -> Self {
        let insert_sql = INSERT_SQL.replace("{schema}", schema.as_str());
        let writer = CallWriter { database, name, insert_sql, lost: AtomicU64::new(0) };
        Self { writer: Arc::new(writer), lines: OnceLock::new() }
    }

    /// Records that the call `job` of the handler of `record`, with `arguments`, has ended.
    pub(crate) fn record(&self, record: &HandlerRecord, job: &Job, arguments: Value, failure: Option<&Error>) {
        let Ok(role) = self.writer.database.role_of(job.principal()) else { return };
        let [user, tenant] = user_and_tenant(job.principal());
        let uri = match job.target() {
            CallTarget::Resource(uri) => Some(uri),
            CallTarget::Tool(_) | CallTarget::Prompt(_) | CallTarget::Completion(_) => None,
        };
        let outcome = match failure.map(Error::kind) {
            None => "done",
            Some(ErrorKind::Unauthenticated) => "refused",
            Some(_) => "failed",
        };
        let non_empty = |text: String| (!text.is_empty()).then_some(text);
        let code = |error: &Error| error.code().map_or_else(|| error.kind().name().to_owned(), |code| code.to_string());
        let detail = |detail: &str| detail.chars().take(DETAIL_CHARACTERS_MAX).collect::<String>();
        let json = json!({
            "type": record.kind.name(), "name": record.name, "user_id": non_empty(user), "tenant_id": non_empty(tenant),
            "request_id": RequestParameters::from_job(job).ok().map(|request| request.id),
            "duration_ms": job.elapsed().as_secs_f64() * 1_000.0, "outcome": outcome,
            "code": failure.map(code),
            "reference": failure.and_then(Error::id),
            "detail": failure.and_then(Error::detail).map(detail),
            "arguments": Some(arguments).filter(|arguments| arguments.to_string().len() <= ARGUMENTS_BYTES_MAX),
            "uri": uri, "variables": job.request().variables,
        });
        let line = CallLine { role: role.map(str::to_owned), json };
        if self.lines.get_or_init(|| self.spawn_writer()).try_send(line).is_err() {
            self.writer.count_lost(1, "the queue is full");
        }
    }

    fn spawn_writer(&self) -> mpsc::Sender<CallLine> {
        let (sender, lines) = mpsc::channel(QUEUED_LINES_MAX);
        let writer = self.writer.clone();
        self.writer.database.spawn(async move { writer.run(lines).await });
        sender
    }
}

impl CallWriter {
    /// Writes until the database is closed and the queue is empty, or until no sender is left.
    async fn run(&self, mut lines: mpsc::Receiver<CallLine>) {
        let mut batch = Vec::with_capacity(BATCH_LINES_MAX);
        loop {
            let count = tokio::select! {
                biased;
                count = lines.recv_many(&mut batch, BATCH_LINES_MAX) => count,
                _ = self.database.closed() => 0,
            };
            if count == 0 {
                return;
            }
            while let Some(first) = batch.first() {
                let role = first.role.clone();
                let (of_role, others): (Vec<_>, Vec<_>) = batch.drain(..).partition(|line| line.role == role);
                batch = others;
                let count = of_role.len();
                if let Err(error) = self.write(role, of_role).await {
                    let reason = error.detail().map_or_else(|| error.to_string(), str::to_owned);
                    self.count_lost(count, &reason);
                }
            }
        }
    }

    /// Uses the role of the call, because the line contains the name of the role.
    async fn write(&self, role: Option<String>, lines: Vec<CallLine>) -> Result<(), Error> {
        let transaction = Transaction { writes: true, ..Transaction::default() };
        let mut transaction = self.database.begin(&transaction, &self.database.identity_for_role(role)).await?;
        let lines = Value::Array(lines.into_iter().map(|line| line.json).collect()).to_string();
        let written = async {
            transaction.query(&self.insert_sql, &[&lines]).await?;
            transaction.commit().await
        };
        written.await.map_err(|error| internal_statement_error(&error, &self.name))
    }

    /// Counts lost lines. Logs a warning for the first ones, and then each time the number has doubled.
    fn count_lost(&self, count: usize, reason: &str) {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        let before = self.lost.fetch_add(count, Ordering::Relaxed);
        let lost = before.saturating_add(count);
        if before.checked_ilog2() != lost.checked_ilog2() {
            let database = &*self.name;
            tracing::warn!(database, lost, "calls of handlers are missing from the exchange log: {reason}");
        }
    }
}
