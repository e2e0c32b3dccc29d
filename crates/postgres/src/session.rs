//! One connection: what is set when it opens, the statements that it has prepared, how a transaction begins on it.

use std::num::NonZeroUsize;
use std::sync::Arc;

use lru::LruCache;
use parking_lot::Mutex;
use tidegate_sql::Transaction;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error};

use crate::connect::{Canceller, OpenConnection};
use crate::options::PostgresOptions;
use crate::pooler::{DEALLOCATE_ALL, PoolerSession};
use crate::prepared::PreparedStatement;
use crate::transaction::{self, ROLLBACK};

/// Statements that a connection keeps prepared; the one used longest ago goes first.
const STATEMENTS_MAX: NonZeroUsize = match NonZeroUsize::new(256) {
    Some(count) => count,
    None => NonZeroUsize::MIN,
};

/// One connection to the server.
pub(crate) struct PostgresSession {
    connection: Arc<OpenConnection>,
    statements: Mutex<LruCache<StatementKey, Arc<PreparedStatement>>>,
    settings: SettingsQuery,
    /// None where the connection is one of our own.
    pooler: Option<PoolerSession>,
}

/// The role that a statement was prepared as, and its text: a name in it may mean another table to another role.
#[derive(Debug, PartialEq, Eq, Hash)]
struct StatementKey {
    role: Option<String>,
    text: Box<str>,
}

impl StatementKey {
    fn new(role: Option<&str>, text: &str) -> Self {
        Self { role: role.map(str::to_owned), text: Box::from(text) }
    }
}

/// The caller of a transaction, as the database sees it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TransactionIdentity {
    /// The role; `None` is the login role.
    pub role: Option<String>,
    /// The values of the claim settings, in their order.
    pub(crate) claims: Vec<String>,
}

/// How settings are made for one transaction.
enum SettingsQuery {
    /// Nothing is to be set.
    None,
    /// Prepared once.
    Prepared { statement: tokio_postgres::Statement, has_role: bool },
    /// Sent anew each time, with the settings that a connection of our own has from its beginning.
    Unprepared { text: String, has_role: bool },
}

impl PostgresSession {
    /// A session on the connection that was just made; `pooler` is what stands between, if the options say so.
    pub(crate) async fn open(
        connected: OpenConnection,
        options: &PostgresOptions,
        pooler: Option<PoolerSession>,
    ) -> Result<Self, Error> {
        let client = connected.client();
        let has_role = !options.run_as.roles().is_empty();
        let named = has_role.then_some("role").into_iter().chain(options.claims.names()).map(quote_literal);
        let constants = session_settings(options, connected.server_version());
        let settings = if pooler.is_some() {
            let constants = constants.into_iter().map(|(name, value)| (quote_literal(name), quote_literal(&value)));
            let text = set_config_sql(
                named.map(|name| (name, None)).chain(constants.map(|(name, value)| (name, Some(value)))),
            );
            SettingsQuery::Unprepared { text, has_role }
        } else {
            let once: String =
                constants.iter().map(|(name, value)| format!("SET {name} = {}; ", quote_literal(value))).collect();
            client.batch_execute(&format!("{once}SET default_transaction_read_only = on")).await?;
            let named: Vec<_> = named.map(|name| (name, None)).collect();
            match named.len() {
                0 => SettingsQuery::None,
                count => {
                    let types = vec![Type::TEXT; count];
                    let statement = client.prepare_typed(&set_config_sql(named.into_iter()), &types).await?;
                    SettingsQuery::Prepared { statement, has_role }
                }
            }
        };
        let statements = Mutex::new(LruCache::new(STATEMENTS_MAX));
        Ok(Self { connection: Arc::new(connected), statements, settings, pooler })
    }

    /// The connection.
    pub(crate) fn connection(&self) -> &Arc<OpenConnection> {
        &self.connection
    }

    /// The connection's client.
    pub(crate) fn client(&self) -> &Client {
        self.connection.client()
    }

    /// What stops the statement that runs.
    pub(crate) fn canceller(&self) -> Canceller {
        self.connection.canceller()
    }

    /// Whether a transaction says nothing of who calls.
    pub(crate) fn has_no_settings(&self) -> bool {
        matches!(self.settings, SettingsQuery::None)
    }

    /// Whether the connection has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.connection.is_closed()
    }

    /// Begins a transaction as `identity`. Both messages leave together, and both are answered before anything else is
    /// sent: a statement never runs as somebody else.
    pub(crate) async fn begin(&self, transaction: &Transaction, identity: &TransactionIdentity) -> Result<(), Error> {
        self.begin_once(transaction, identity).await?;
        match &self.pooler {
            Some(pooler) if !pooler.load_types(self.client()).await? => {
                self.client().batch_execute(ROLLBACK).await?;
                self.begin_once(transaction, identity).await
            }
            _ => Ok(()),
        }
    }

    async fn begin_once(&self, transaction: &Transaction, identity: &TransactionIdentity) -> Result<(), Error> {
        let mut begin = transaction::begin_sql(transaction);
        if self.pooler.as_ref().is_some_and(PoolerSession::must_deallocate) {
            begin = format!("{begin}; {DEALLOCATE_ALL}");
        }
        let (began, set) =
            futures::future::join(self.client().batch_execute(&begin), self.apply_identity(identity)).await;
        began?;
        set
    }

    async fn apply_identity(&self, identity: &TransactionIdentity) -> Result<(), Error> {
        let role = identity.role.as_deref().unwrap_or("none");
        let values = |has_role: bool| {
            let role = has_role.then_some(role);
            role.into_iter().chain(identity.claims.iter().map(String::as_str)).collect::<Vec<&str>>()
        };
        match &self.settings {
            SettingsQuery::None => Ok(()),
            SettingsQuery::Prepared { statement, has_role } => {
                let values = values(*has_role);
                let values: Vec<&(dyn ToSql + Sync)> =
                    values.iter().map(|value| value as &(dyn ToSql + Sync)).collect();
                self.client().execute(statement, &values).await.map(drop)
            }
            SettingsQuery::Unprepared { text, has_role } => {
                let values = values(*has_role);
                let values: Vec<(&(dyn ToSql + Sync), Type)> =
                    values.iter().map(|value| (value as &(dyn ToSql + Sync), Type::TEXT)).collect();
                self.client().query_typed(text, &values).await.map(drop)
            }
        }
    }

    /// The prepared statement of `text` for `role`, if the session has it.
    pub(crate) fn cached_statement(&self, role: Option<&str>, text: &str) -> Option<Arc<PreparedStatement>> {
        self.statements.lock().get(&StatementKey::new(role, text)).cloned()
    }

    /// Keeps a prepared statement.
    pub(crate) fn cache_statement(&self, role: Option<&str>, text: &str, prepared: Arc<PreparedStatement>) {
        self.statements.lock().put(StatementKey::new(role, text), prepared);
    }

    /// Forgets a prepared statement that no longer fits.
    pub(crate) fn evict_statement(&self, role: Option<&str>, text: &str) {
        self.statements.lock().pop(&StatementKey::new(role, text));
    }
}

/// Settings that are the same for every call. What text means must not depend on the server's configuration, as the
/// policy has read it; and a server whose client has died must notice.
fn session_settings(options: &PostgresOptions, version: u32) -> Vec<(&'static str, String)> {
    let milliseconds = |time: std::time::Duration| time.as_millis().to_string();
    let mut constants = vec![
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
        constants.push(("client_connection_check_interval", "5000".to_owned()));
    }
    constants
}

/// Sets each of `settings` for the transaction; one without a value has its parameter, in order.
fn set_config_sql(settings: impl Iterator<Item = (String, Option<String>)>) -> String {
    let mut parameter = 0;
    let calls: Vec<String> = settings
        .map(|(name, value)| {
            let value = value.unwrap_or_else(|| {
                parameter += 1;
                format!("${parameter}")
            });
            format!("pg_catalog.set_config({name}, {value}, true)")
        })
        .collect();
    format!("SELECT {}", calls.join(", "))
}

/// `text` as a string of SQL. Strings conform to the standard here or hold nothing that would matter.
fn quote_literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
