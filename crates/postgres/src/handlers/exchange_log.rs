//! The exchange log: who called what, how long it took, what became of it, written into the database.
//!
//! Lines are written behind the answers, on connections of their own: a call that fails and is rolled back is in the
//! log too, and no call waits for it. What cannot be written is counted and said; it hurts no call.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use serde_json::{Value, json};
use tidegate_core::{CallTarget, Error, ErrorKind, Job};
use tidegate_query::Transaction;
use tokio::sync::mpsc;
use tokio_postgres::types::Type;

use super::record::HandlerRecord;
use super::schema_name::SchemaName;
use crate::error;
use crate::identity::user_and_tenant;
use crate::server::PostgresServer;
use crate::session::TransactionIdentity;
use crate::transaction::COMMIT;

/// Lines that wait to be written; more of them are lost, and counted.
const QUEUED_LINES_MAX: usize = 1_000;
/// Bytes of arguments in a line at most; a line whose arguments are larger does without them.
const ARGUMENTS_BYTES_MAX: usize = 64 << 10;
/// Characters of a failure's detail in a line at most.
const DETAIL_CHARACTERS_MAX: usize = 4_000;
/// Lines that are written at once.
const BATCH_LINES_MAX: usize = 100;

/// Redaction is the database's own, so that a path means the same whoever writes the line.
const INSERT_SQL: &str = "
INSERT INTO {schema}.exchange
    (type, name, user_id, tenant_id, duration_ms, outcome, code, reference, detail, arguments)
SELECT line.type, line.name, line.user_id, line.tenant_id, line.duration_ms, line.outcome, line.code, line.reference,
    line.detail,
    CASE WHEN handler.name IS NOT NULL THEN {schema}.logged_arguments(handler,
        ROW(line.arguments, line.uri, NULL, NULL, line.variables, NULL)::{schema}.mcp_request) END
FROM pg_catalog.jsonb_to_recordset($1::pg_catalog.text::pg_catalog.jsonb) AS line
    (type pg_catalog.text, name pg_catalog.text, user_id pg_catalog.text, tenant_id pg_catalog.text,
    duration_ms pg_catalog.float8, outcome pg_catalog.text, code pg_catalog.text, reference pg_catalog.text,
    detail pg_catalog.text, arguments pg_catalog.jsonb, uri pg_catalog.text, variables pg_catalog.jsonb)
LEFT JOIN {schema}.handler ON handler.type = line.type AND handler.name = line.name";

/// The exchange log of one database. It begins to be written with its first line.
#[derive(Default)]
pub(crate) struct ExchangeRecorder {
    lines: OnceLock<mpsc::Sender<ExchangeLine>>,
    lost: Arc<AtomicU64>,
}

struct ExchangeLine {
    role: Option<String>,
    /// As [`INSERT_SQL`] reads it.
    json: Value,
}

impl ExchangeRecorder {
    /// Notes that the call `job` of the handler of `record`, with `arguments`, has ended.
    pub(crate) fn record_call(
        &self,
        server: &Arc<PostgresServer>,
        schema: &SchemaName,
        record: &HandlerRecord,
        job: &Job,
        arguments: Value,
        failure: Option<&Error>,
    ) {
        let Ok(identity) = server.identity_of(job.principal()) else { return };
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
        let named = |text: String| (!text.is_empty()).then_some(text);
        let code = |error: &Error| error.code().map_or_else(|| error.kind().name().to_owned(), |code| code.to_string());
        let detail = |detail: &str| detail.chars().take(DETAIL_CHARACTERS_MAX).collect::<String>();
        let json = json!({
            "type": record.kind.name(), "name": record.name, "user_id": named(user), "tenant_id": named(tenant),
            "duration_ms": job.elapsed().as_secs_f64() * 1_000.0, "outcome": outcome,
            "code": failure.map(code),
            "reference": failure.and_then(Error::id),
            "detail": failure.and_then(Error::detail).map(detail),
            "arguments": Some(arguments).filter(|arguments| arguments.to_string().len() <= ARGUMENTS_BYTES_MAX),
            "uri": uri, "variables": job.variables(),
        });
        let lines = self.lines.get_or_init(|| spawn_writer(server, schema, self.lost.clone()));
        if lines.try_send(ExchangeLine { role: identity.role, json }).is_err() {
            count_lost_lines(&self.lost, 1, &server.database, "too many wait");
        }
    }
}

fn spawn_writer(server: &Arc<PostgresServer>, schema: &SchemaName, lost: Arc<AtomicU64>) -> mpsc::Sender<ExchangeLine> {
    let (sender, lines) = mpsc::channel(QUEUED_LINES_MAX);
    // The server owns the log, which must not own the server.
    let writer = ExchangeWriter {
        server: Arc::downgrade(server),
        insert: INSERT_SQL.replace("{schema}", schema.as_str()),
        lost,
        database: server.database.clone(),
    };
    let closing = server.background_tasks().closing.clone();
    server.background_tasks().spawn(writer.run(lines, closing));
    sender
}

struct ExchangeWriter {
    server: Weak<PostgresServer>,
    insert: String,
    lost: Arc<AtomicU64>,
    database: Arc<str>,
}

impl ExchangeWriter {
    /// Writes until the database is closed and nothing waits, or nobody can note anything any more.
    async fn run(self, mut lines: mpsc::Receiver<ExchangeLine>, closing: tokio_util::sync::CancellationToken) {
        let mut batch = Vec::with_capacity(BATCH_LINES_MAX);
        loop {
            let count = tokio::select! {
                biased;
                count = lines.recv_many(&mut batch, BATCH_LINES_MAX) => count,
                () = closing.cancelled() => 0,
            };
            let Some(server) = self.server.upgrade().filter(|_| count > 0) else { return };
            while let Some(first) = batch.first() {
                let role = first.role.clone();
                let (of_role, others): (Vec<_>, Vec<_>) = batch.drain(..).partition(|line| line.role == role);
                batch = others;
                let count = of_role.len();
                if let Err(error) = self.write(&server, role, of_role).await {
                    let reason = error.detail().map_or_else(|| error.to_string(), str::to_owned);
                    count_lost_lines(&self.lost, count, &self.database, &reason);
                }
            }
        }
    }

    /// As the role that called, whose name the line then holds.
    async fn write(
        &self,
        server: &PostgresServer,
        role: Option<String>,
        lines: Vec<ExchangeLine>,
    ) -> Result<(), Error> {
        let transaction = Transaction { writes: true, ..Transaction::default() };
        let identity = TransactionIdentity { role, ..server.owner_identity() };
        let mut lease = server.begin(&transaction, &identity).await?;
        let connected = lease.session()?.connection().clone();
        lease.mark_busy();
        let lines = Value::Array(lines.into_iter().map(|line| line.json).collect()).to_string();
        let written = connected.client().query_typed(&self.insert, &[(&lines, Type::TEXT)]).await;
        written.map_err(|error| error::internal_statement_error(&error, &self.database))?;
        lease.end(COMMIT).await.map_err(|error| error::internal_statement_error(&error, &self.database))
    }
}

/// Counts lines that were lost. The first ones are said, and then each time their number has doubled.
fn count_lost_lines(lost: &AtomicU64, count: usize, database: &str, why: &str) {
    let count = u64::try_from(count).unwrap_or(u64::MAX);
    let before = lost.fetch_add(count, Ordering::Relaxed);
    let now = before.saturating_add(count);
    if before.checked_ilog2() != now.checked_ilog2() {
        tracing::warn!(database, lost = now, "calls of handlers are missing from the exchange log: {why}");
    }
}
