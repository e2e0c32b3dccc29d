//! The session that makes an attempt, and the effects that are visible within it.

use std::error::Error;

use futures::TryStreamExt;
use tokio_postgres::types::{FromSql, Type};
use tokio_postgres::{Client, NoTls};

use super::state_diff::{StateByAspect, StateDiff, diff_states, query_state};

/// What a caller may not read, whatever it says: a file of the server, a verifier of a password, and what the scene
/// hides.
const SECRETS: [&str; 5] =
    ["root:x:0:0", "SCRAM-SHA-256$", "what the vault holds", "what the superuser asks", "what another caller asks"];

/// Runs one statement as a new caller, and disconnects.
pub(crate) trait StatementRunner {
    async fn run_statement(&self, sql: &str) -> RunOutcome;

    /// Whether what a parser does not understand comes through.
    fn has_no_parser(&self) -> bool;
}

/// What came of a statement.
#[derive(Debug)]
pub(crate) struct RunOutcome {
    /// The values of the answer one after another, as the server sent them, or why there are none.
    pub(crate) answer: Result<Vec<u8>, String>,
    /// What the next statement of the same session would find changed, and what the answer gave away.
    pub(crate) left: StateDiff,
    /// The server's process that ran it, if the caller left it to end.
    pub(crate) process: Option<i32>,
}

/// A session for each statement, with nothing between it and the server but a transaction.
pub(crate) struct PlainRunner {
    /// Connection string.
    pub(crate) server: String,
    /// How the transaction begins.
    pub(crate) begin: &'static str,
}

/// The state of a session that the next caller would inherit. A loaded library adds settings: only those that were set
/// count.
const SESSION_STATE_SQL: &str = "
    SELECT 'settings', name || ' = ' || setting FROM pg_settings WHERE source <> 'default'
    UNION ALL SELECT 'settings', name || ' = ' || coalesce(current_setting(name, true), '')
        FROM unnest(ARRAY['a.b', 'app.tenant', 'tidegate.probe']) AS name
    UNION ALL SELECT 'identity', format('%s of %s', current_user, session_user)
    UNION ALL SELECT 'channels', channel FROM pg_listening_channels() AS channel
    UNION ALL SELECT 'prepared statements', name FROM pg_prepared_statements WHERE from_sql
    UNION ALL SELECT 'cursors', name FROM pg_cursors WHERE name <> '' AND name !~ '^p[0-9]+$'
    UNION ALL SELECT 'temporary tables', relname FROM pg_class WHERE relnamespace = pg_my_temp_schema()
    UNION ALL SELECT 'kept locks', format('%s %s', locktype, mode) FROM pg_locks
        WHERE pid = pg_backend_pid() AND locktype <> 'virtualxid' AND mode <> 'AccessShareLock'";

/// What the rest of a transaction would run under. Every reader takes virtual transactions and locks of shared access.
const TRANSACTION_STATE_SQL: &str = "
    SELECT 'transaction', format('read only: %s, role: %s of %s, of: %s', current_setting('transaction_read_only'),
        current_user, session_user, current_setting('tidegate.probe', true))
    UNION ALL SELECT 'locks', format('%s %s %s', locktype, relation::regclass, mode) FROM pg_locks
        WHERE pid = pg_backend_pid() AND locktype <> 'virtualxid' AND mode <> 'AccessShareLock'";

/// Rows of an answer that are looked at.
const ROWS_MAX: usize = 10_000;

impl StatementRunner for PlainRunner {
    fn has_no_parser(&self) -> bool {
        true
    }

    async fn run_statement(&self, sql: &str) -> RunOutcome {
        let server = format!("{} options='-c statement_timeout=1s'", self.server);
        let (client, connection) = tokio_postgres::connect(&server, NoTls).await.unwrap();
        let connection = tokio::spawn(connection);
        let process = client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
        let mut left = StateDiff::new();
        let before = query_state(&client, SESSION_STATE_SQL).await.unwrap();
        client.batch_execute(self.begin).await.unwrap();
        let within = capture_transaction_state(&client).await;
        let answer = match fetch_raw_values(&client, sql).await {
            Ok(bytes) => {
                left.extend(find_secrets(&bytes));
                // An answer that is there and a session that is not: the statement ended its own.
                if let Ok(now) = query_state(&client, TRANSACTION_STATE_SQL).await {
                    left.extend(diff_states(&within, &now));
                }
                client.batch_execute("COMMIT").await.map(|()| bytes).map_err(|error| error_text(&error))
            }
            Err(error) => {
                let _ = client.batch_execute("ROLLBACK").await;
                Err(error_text(&error))
            }
        };
        if let Ok(after) = query_state(&client, SESSION_STATE_SQL).await {
            left.extend(diff_states(&before, &after));
        }
        drop(client);
        let _ = connection.await.unwrap();
        RunOutcome { answer, left, process: Some(process) }
    }
}

/// Says what an engine says before each statement: who asks. It takes the transaction's first snapshot as well, after
/// which its access mode may not be widened.
async fn capture_transaction_state(client: &Client) -> StateByAspect {
    client.query_one("SELECT set_config('tidegate.probe', 'here', true)", &[]).await.unwrap();
    query_state(client, TRANSACTION_STATE_SQL).await.unwrap()
}

async fn fetch_raw_values(client: &Client, sql: &str) -> Result<Vec<u8>, tokio_postgres::Error> {
    let statement = client.prepare(sql).await?;
    let rows = client.query_raw(&statement, Vec::<String>::new()).await?;
    futures::pin_mut!(rows);
    let mut bytes = Vec::new();
    let mut count = 0;
    while let Some(row) = rows.try_next().await? {
        for column in (0..row.len()).filter(|_| count < ROWS_MAX) {
            let RawValue(value) = row.get(column);
            bytes.extend_from_slice(value);
        }
        count += 1;
    }
    Ok(bytes)
}

/// A value of any type, undecoded.
struct RawValue<'a>(&'a [u8]);

impl<'a> FromSql<'a> for RawValue<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(raw))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(&[]))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

pub(super) fn find_secrets(bytes: &[u8]) -> StateDiff {
    let message = SECRETS.iter().filter(|secret| bytes.windows(secret.len()).any(|window| window == secret.as_bytes()));
    let lines: Vec<String> = message.map(|secret| format!("+ {secret}")).collect();
    if lines.is_empty() { StateDiff::new() } else { StateDiff::from([("secrets".to_owned(), lines)]) }
}

fn error_text(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(error) => format!("{} {}", error.code().code(), error.message()),
        None => error.to_string(),
    }
}
