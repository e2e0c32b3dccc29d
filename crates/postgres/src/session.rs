//! One connection: its settings, its prepared statements, and how transactions begin and end on it.
//!
//! Behind a pooler in transaction mode (PgBouncer), each transaction of a session may run on another connection to the server.
//! The driver names each statement that it prepares, and keeps some of its own for looking up types. PgBouncer before
//! 1.21, and with `max_prepared_statements = 0`, passes these names on unchanged. Then a name may be unknown on the next
//! connection, or belong to another process there. Therefore every transaction begins with `DEALLOCATE ALL`. If the
//! driver uses a name that no longer exists, the server reports it and the session is replaced. A new session looks up
//! all types that other sessions have seen in its first transaction, in which the names stay valid.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lru::LruCache;
use parking_lot::Mutex;
use tidegate_core::Backoff;
use tidegate_sql::{Isolation, Transaction};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error};

use crate::connect::OpenConnection;
use crate::options::PostgresOptions;
use crate::prepared::PreparedStatement;

/// The maximum number of prepared statements of a connection; the least recently used one is closed first.
const STATEMENTS_MAX: NonZeroUsize = NonZeroUsize::new(256).unwrap();

/// Ends a transaction that wrote.
pub(crate) const COMMIT: &str = "COMMIT";
/// Ends a transaction that only read. A rollback resets its settings too.
pub(crate) const ROLLBACK: &str = "ROLLBACK";
/// Ends a transaction with a caller's SQL. Only locks of the session survive a rollback.
pub(crate) const ROLLBACK_AND_UNLOCK: &str = "ROLLBACK; SELECT pg_catalog.pg_advisory_unlock_all()";

/// How long statements without settings of their own transaction may use a role after it was revoked.
const SESSION_IDENTITY_MAX_AGE: Duration = Duration::from_secs(1);

/// The version of the server that has the setting `jit`.
const JIT_SINCE: u32 = 110_000;

/// A statement without a transaction around it has these properties.
const DEFAULT_TRANSACTION: &str = "SET default_transaction_read_only = on; \
    SET default_transaction_isolation = 'read committed'; SET default_transaction_deferrable = off";

pub(crate) struct PostgresSession {
    connection: Arc<OpenConnection>,
    /// Prepared statements by role and text: a name in the text may mean another table to another role.
    statements: Mutex<LruCache<StatementKey, Arc<PreparedStatement>>>,
    settings: SettingsQuery,
    /// The identity of statements outside of transactions that set their own, and when it was set.
    session_identity: Mutex<Option<(Instant, TransactionIdentity)>>,
    /// Whether the role is among the settings.
    sets_role: bool,
    /// `None` without a pooler.
    pooler: Option<PoolerSession>,
    /// Whether a transaction was committed, which may have changed settings of the session.
    has_committed: AtomicBool,
    /// Counts the sessions that are open.
    _sessions: Arc<()>,
}

/// The database identity of a caller.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TransactionIdentity {
    /// The role; `None` is the login role.
    pub role: Option<String>,
    /// The values of the claim settings, in their order.
    pub(crate) claims: Vec<String>,
}

/// The query that sets the role and the claims.
enum SettingsQuery {
    None,
    /// Its last parameter is the [`SettingsLifetime`].
    Prepared(tokio_postgres::Statement),
    /// Behind a pooler, it is not prepared, and also contains the settings that other connections have from the start.
    /// They end with the transaction: the next one may run on another connection to the server.
    Unprepared(String),
}

/// When settings end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SettingsLifetime {
    Transaction,
    Session,
}

impl PostgresSession {
    pub(crate) async fn open(
        connection: OpenConnection,
        options: &PostgresOptions,
        pooler: Option<PoolerSession>,
        sessions: Arc<()>,
    ) -> Result<Self, Error> {
        let client = connection.client();
        let sets_role = !options.run_as.roles().is_empty();
        let names = sets_role.then_some("role").into_iter().chain(options.claims.names());
        let names: Vec<String> = names.map(quote_literal).collect();
        let constants = session_settings(options, connection.server_version());
        let settings = if pooler.is_some() {
            SettingsQuery::Unprepared(set_config_sql(&names, &constants, "true"))
        } else {
            let set: String =
                constants.iter().map(|(name, value)| format!("SET {name} = {}; ", quote_literal(value))).collect();
            client.batch_execute(&format!("{set}{DEFAULT_TRANSACTION}")).await?;
            if names.is_empty() {
                SettingsQuery::None
            } else {
                let types: Vec<Type> = names.iter().map(|_| Type::TEXT).chain([Type::BOOL]).collect();
                let is_local = format!("${}", types.len());
                SettingsQuery::Prepared(client.prepare_typed(&set_config_sql(&names, &[], &is_local), &types).await?)
            }
        };
        let statements = Mutex::new(LruCache::new(STATEMENTS_MAX));
        Ok(Self {
            connection: Arc::new(connection),
            statements,
            settings,
            session_identity: Mutex::default(),
            sets_role,
            pooler,
            has_committed: AtomicBool::new(false),
            _sessions: sessions,
        })
    }

    pub(crate) fn connection(&self) -> &Arc<OpenConnection> {
        &self.connection
    }

    pub(crate) fn client(&self) -> &Client {
        self.connection.client()
    }

    pub(crate) fn is_behind_pooler(&self) -> bool {
        self.pooler.is_some()
    }

    /// Whether the session still has the settings that it was opened with.
    pub(crate) fn is_unchanged(&self) -> bool {
        !self.has_committed.load(Ordering::Relaxed)
    }

    /// Ends the transaction with `sql`.
    pub(crate) async fn end(&self, sql: &str) -> Result<(), Error> {
        if sql == COMMIT {
            self.has_committed.store(true, Ordering::Relaxed);
            *self.session_identity.lock() = None;
        }
        self.client().batch_execute(sql).await
    }

    /// Gives the session itself the role and the claims of `identity`, unless it has them: statements without settings of
    /// their own transaction run with them. Settings of a transaction hide them until it ends.
    pub(crate) async fn set_identity(&self, identity: &TransactionIdentity) -> Result<(), Error> {
        let has_identity =
            |set: &(Instant, TransactionIdentity)| set.1 == *identity && set.0.elapsed() < SESSION_IDENTITY_MAX_AGE;
        if matches!(self.settings, SettingsQuery::None)
            || self.session_identity.lock().as_ref().is_some_and(has_identity)
        {
            return Ok(());
        }
        *self.session_identity.lock() = None;
        self.apply_identity(identity, SettingsLifetime::Session).await?;
        *self.session_identity.lock() = Some((Instant::now(), identity.clone()));
        Ok(())
    }

    /// Begins a transaction as `identity`. The messages are sent together, and all are answered before anything else is
    /// sent: no statement runs with another identity.
    pub(crate) async fn begin(&self, transaction: &Transaction, identity: &TransactionIdentity) -> Result<(), Error> {
        self.begin_with(begin_sql(transaction), identity).await
    }

    /// Begins a transaction as `identity` that sees one state of the catalog. Statements over the catalog have high estimated
    /// costs, for which a server with its default settings compiles their functions, in seconds.
    pub(crate) async fn begin_lookup(&self, identity: &TransactionIdentity) -> Result<(), Error> {
        let transaction = Transaction { isolation: Isolation::RepeatableRead, ..Transaction::default() };
        let mut begin = begin_sql(&transaction);
        if self.connection.server_version() >= JIT_SINCE {
            begin.push_str("; SET LOCAL jit = off");
        }
        self.begin_with(begin, identity).await
    }

    async fn begin_with(&self, begin: String, identity: &TransactionIdentity) -> Result<(), Error> {
        self.begin_once(begin.clone(), identity).await?;
        match &self.pooler {
            Some(pooler) if !pooler.load_types(self.client()).await? => {
                self.client().batch_execute(ROLLBACK).await?;
                self.begin_once(begin, identity).await
            }
            _ => Ok(()),
        }
    }

    async fn begin_once(&self, mut begin: String, identity: &TransactionIdentity) -> Result<(), Error> {
        if self.pooler.as_ref().is_some_and(PoolerSession::must_deallocate) {
            begin = format!("{begin}; {DEALLOCATE_ALL}");
        }
        let set = self.apply_identity(identity, SettingsLifetime::Transaction);
        let (begun, set) = futures::join!(self.client().batch_execute(&begin), set);
        begun.and(set)
    }

    async fn apply_identity(&self, identity: &TransactionIdentity, scope: SettingsLifetime) -> Result<(), Error> {
        let role = self.sets_role.then_some(identity.role.as_deref().unwrap_or("none"));
        let values: Vec<&str> = role.into_iter().chain(identity.claims.iter().map(String::as_str)).collect();
        let values = values.iter().map(|value| (value as &(dyn ToSql + Sync), Type::TEXT));
        match &self.settings {
            SettingsQuery::None => Ok(()),
            SettingsQuery::Prepared(statement) => {
                let is_local = scope == SettingsLifetime::Transaction;
                let values: Vec<&(dyn ToSql + Sync)> = values.map(|(value, _)| value).chain([&is_local as _]).collect();
                self.client().execute(statement, &values).await.map(drop)
            }
            SettingsQuery::Unprepared(text) => {
                let values: Vec<_> = values.collect();
                self.client().query_typed(text, &values).await.map(drop)
            }
        }
    }

    pub(crate) fn cached_statement(&self, role: Option<&str>, text: &str) -> Option<Arc<PreparedStatement>> {
        self.statements.lock().get(&statement_key(role, text)).cloned()
    }

    pub(crate) fn cache_statement(&self, role: Option<&str>, text: &str, prepared: Arc<PreparedStatement>) {
        self.statements.lock().put(statement_key(role, text), prepared);
    }

    /// Removes a prepared statement that no longer matches its tables.
    pub(crate) fn evict_statement(&self, role: Option<&str>, text: &str) {
        self.statements.lock().pop(&statement_key(role, text));
    }
}

type StatementKey = (Option<String>, Box<str>);

fn statement_key(role: Option<&str>, text: &str) -> StatementKey {
    (role.map(str::to_owned), Box::from(text))
}

/// Settings that are the same for every call. The meaning of SQL text must not depend on the configuration of the
/// server, since the statement policy has parsed it; and the server must notice that its client is gone.
fn session_settings(options: &PostgresOptions, version: u32) -> Vec<(&'static str, String)> {
    let milliseconds = |time: Duration| time.as_millis().to_string();
    let mut settings = vec![
        ("standard_conforming_strings", "on".to_owned()),
        ("backslash_quote", "safe_encoding".to_owned()),
        ("transform_null_equals", "off".to_owned()),
        ("bytea_output", "hex".to_owned()),
        ("datestyle", "ISO, YMD".to_owned()),
        ("intervalstyle", "postgres".to_owned()),
        ("lock_timeout", milliseconds(options.lock_timeout)),
        ("idle_in_transaction_session_timeout", milliseconds(options.idle_timeout)),
    ];
    if version >= 140_000 {
        settings.push(("client_connection_check_interval", "5000".to_owned()));
    }
    settings
}

/// Sets the settings `names` (SQL literals) to the parameters, and `constants` to their values: for one transaction if the
/// SQL expression `is_local` is true.
fn set_config_sql(names: &[String], constants: &[(&str, String)], is_local: &str) -> String {
    let parameters = names.iter().zip(1..).map(|(name, number)| (name.clone(), format!("${number}")));
    let constants = constants.iter().map(|(name, value)| (quote_literal(name), quote_literal(value)));
    let calls = parameters.chain(constants);
    let calls: Vec<String> =
        calls.map(|(name, value)| format!("pg_catalog.set_config({name}, {value}, {is_local})")).collect();
    format!("SELECT {}", calls.join(", "))
}

/// `text` as an SQL string. It contains no backslash, or strings conform to the standard.
fn quote_literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

pub(crate) fn begin_sql(transaction: &Transaction) -> String {
    let isolation = match transaction.isolation {
        Isolation::ReadCommitted => "READ COMMITTED",
        Isolation::RepeatableRead => "REPEATABLE READ",
        Isolation::Serializable => "SERIALIZABLE",
    };
    let access = if transaction.writes { "READ WRITE" } else { "READ ONLY" };
    let deferrable = if transaction.deferrable { ", DEFERRABLE" } else { "" };
    format!("BEGIN ISOLATION LEVEL {isolation}, {access}{deferrable}")
}

/// The delays before the retries of a transaction that conflicted with another one.
pub fn retry_backoff() -> Backoff {
    Backoff::new(Duration::from_millis(20), Duration::from_millis(1_280))
}

/// The maximum number of remembered types. With more types, sessions are replaced more often.
const TYPES_MAX: usize = 1_000;
/// A statement that is prepared to find its name on the server.
const PROBE: &str = "SELECT 'by which name does the server know this'";
/// Whether the probe has the driver's name on the server, and not one of the pooler's.
const IS_NAMED_BY_DRIVER: &str = "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_prepared_statements
    WHERE statement = 'SELECT ''by which name does the server know this''' AND name ~ '^s[0-9]+$')";
const DEALLOCATE_ALL: &str = "DEALLOCATE ALL";

/// The state of a session behind a pooler.
pub(crate) struct PoolerSession {
    /// Whether the pooler makes statement names valid on every connection.
    keeps_statement_names: bool,
    /// Whether this session replaces one with outdated statements.
    is_replacement: bool,
    has_run_transaction: AtomicBool,
    seen_types: Arc<SeenTypes>,
}

/// User-defined types of results and parameters, which the driver must look up on the server.
#[derive(Default)]
pub(crate) struct SeenTypes(Mutex<BTreeMap<u32, Type>>);

impl SeenTypes {
    pub(crate) fn remember(&self, types: &[Type]) {
        let mut seen = self.0.lock();
        for new in types {
            if seen.len() < TYPES_MAX {
                seen.insert(new.oid(), new.clone());
            }
        }
    }
}

impl PoolerSession {
    /// Detects how the pooler behind `client` treats statement names.
    pub(crate) async fn detect(
        client: &Client,
        seen_types: Arc<SeenTypes>,
        is_replacement: bool,
    ) -> Result<Self, Error> {
        client.batch_execute("BEGIN READ ONLY").await?;
        let keeps_statement_names = match client.prepare(PROBE).await {
            Ok(probe) => {
                let rows = client.query_typed(IS_NAMED_BY_DRIVER, &[]).await?;
                let is_named_by_driver: bool = rows.first().map_or(Ok(true), |row| row.try_get(0))?;
                // It must be closed on the connection on which it was prepared, and so in this transaction.
                drop(probe);
                !is_named_by_driver
            }
            // Another process has left a statement with the same name.
            Err(error) if error.code() == Some(&SqlState::DUPLICATE_PSTATEMENT) => false,
            Err(error) => return Err(error),
        };
        client.batch_execute("ROLLBACK").await?;
        Ok(Self { keeps_statement_names, is_replacement, has_run_transaction: AtomicBool::new(false), seen_types })
    }

    /// Whether the next transaction must deallocate all statements.
    fn must_deallocate(&self) -> bool {
        // Statements that the pooler keeps are reused, unless one of their tables has changed.
        !self.keeps_statement_names || self.is_replacement && !self.has_run_transaction.load(Ordering::Relaxed)
    }

    /// Looks up the types that other sessions have seen, once, in the transaction that has begun. Returns false if one of
    /// them no longer exists; the transaction has then failed.
    async fn load_types(&self, client: &Client) -> Result<bool, Error> {
        if self.has_run_transaction.swap(true, Ordering::Relaxed) || self.keeps_statement_names {
            return Ok(true);
        }
        let types: Vec<Type> = self.seen_types.0.lock().values().cloned().collect();
        if types.is_empty() {
            return Ok(true);
        }
        let parameters: Vec<String> = (1..=types.len()).map(|number| format!("${number}")).collect();
        match client.prepare_typed(&format!("SELECT {}", parameters.join(", ")), &types).await {
            Ok(_) => Ok(true),
            Err(error) if error.as_db_error().is_some() => {
                tracing::debug!(%error, "a remembered type no longer exists");
                self.seen_types.0.lock().clear();
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn begin_sql_states_isolation_and_access() {
        let begin = |transaction: Transaction| super::begin_sql(&transaction);
        assert_eq!(begin(Transaction::default()), "BEGIN ISOLATION LEVEL READ COMMITTED, READ ONLY");
        let strict = Transaction { isolation: Isolation::Serializable, deferrable: true, ..Transaction::default() };
        assert_eq!(begin(strict), "BEGIN ISOLATION LEVEL SERIALIZABLE, READ ONLY, DEFERRABLE");
        let writing = Transaction { isolation: Isolation::RepeatableRead, writes: true, ..Transaction::default() };
        assert_eq!(begin(writing), "BEGIN ISOLATION LEVEL REPEATABLE READ, READ WRITE");
    }
}
