//! The handlers of one database that are visible to the roles of calls. A watcher listens on its own connection and catches up
//! with missed changes.
//!
//! A notification only triggers reading; the content of the database counts. It is read after listening has begun, so
//! that no change is lost. It is also read periodically, since changes of grants cause no notification.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::{Backoff, Error, ErrorKind};
use tidegate_postgres::connect::OpenConnection;
use tidegate_postgres::error::internal_statement_error;
use tidegate_postgres::{CallTransaction, PostgresDatabase};
use tidegate_sql::Transaction;
use tokio::time::sleep;
use tokio_postgres::error::SqlState;

use crate::call_log::CallLog;
use crate::install::HandlerSchemaScripts;
use crate::record::{Compatibility, HANDLERS_SQL, HandlerKind, HandlerOptions, HandlerRecord, RecordError};

/// The maximum number of handlers of a database; further ones are left out, with a warning.
const HANDLERS_MAX: usize = 10_000;

/// The code that pgmi has for unknown names.
const METHOD_NOT_FOUND_CODE: i64 = -32_601;

/// The maximum length of the server's name and version, in characters.
const SETTING_CHARACTERS_MAX: usize = 128;

/// The handlers of one database.
pub struct DatabaseHandlers {
    pub(crate) database: Arc<PostgresDatabase>,
    pub(crate) name: Arc<str>,
    pub(crate) options: HandlerOptions,
    pub(crate) call_log: CallLog,
}

/// All handlers of a database.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HandlerCatalog {
    /// Increases with each change of the handlers.
    pub revision: i64,
    /// The handlers without duplicates, by kind and name.
    pub handlers: Vec<Arc<HandlerRecord>>,
    /// The problems of handlers that are left out.
    pub problems: Vec<String>,
    /// The name of the server that the owner has set (`mcp.server_name`).
    pub server_name: Option<String>,
    /// The version of the server that the owner has set (`mcp.server_version`).
    pub server_version: Option<String>,
    pub(crate) records_calls: bool,
    /// Whether the owner has set an identity check.
    pub(crate) checks_identity: bool,
}

impl DatabaseHandlers {
    /// The handlers of `database`, whose name is `name`.
    pub fn new(name: &str, database: Arc<PostgresDatabase>, options: HandlerOptions) -> Arc<Self> {
        let name: Arc<str> = name.into();
        let call_log = CallLog::new(database.clone(), name.clone(), &options.schema);
        Arc::new(Self { database, name, options, call_log })
    }

    /// The code of JSON-RPC for names without a handler; `None` for that of the revision.
    pub fn absent_entry_code(&self) -> Option<i64> {
        (self.options.compatibility == Compatibility::Pgmi).then_some(METHOD_NOT_FOUND_CODE)
    }

    /// The handlers that are visible to the roles of calls.
    ///
    /// # Errors
    /// `Unavailable` if the server cannot be reached, `NotFound` if the schema does not exist, `Forbidden` if none of
    /// the roles has access to it.
    pub async fn list(&self) -> Result<HandlerCatalog, Error> {
        let mut catalogs = Vec::new();
        let mut refused = None;
        for role in self.database.roles() {
            match self.list_for_role(role).await {
                Ok(catalog) => catalogs.push(catalog),
                // One role may have access while another has none.
                Err(error) if error.kind() == ErrorKind::Forbidden => refused = Some(error),
                Err(error) => return Err(error),
            }
        }
        match refused {
            Some(error) if catalogs.is_empty() => Err(error),
            _ => Ok(merge_catalogs(catalogs)),
        }
    }

    async fn list_for_role(&self, role: Option<String>) -> Result<HandlerCatalog, Error> {
        let identity = self.database.identity_for_role(role);
        let mut transaction = self.database.begin(&Transaction::default(), &identity).await?;
        let role = identity.role.as_deref();
        let catalog = read_catalog(&mut transaction, &self.options, role).await;
        let catalog = catalog.map_err(|error| read_error(&error, &self.name, &self.options, role))?;
        transaction.roll_back().await;
        Ok(catalog)
    }
}

async fn read_catalog(
    transaction: &mut CallTransaction,
    options: &HandlerOptions,
    role: Option<&str>,
) -> Result<HandlerCatalog, tokio_postgres::Error> {
    let schema = options.schema.as_str();
    let registry = format!(
        "SELECT revision, logs_exchanges, identity_check IS NOT NULL, {}, {} FROM {schema}.registry",
        setting_sql(schema, "server_name"),
        setting_sql(schema, "server_version")
    );
    let mut catalog = HandlerCatalog::default();
    if let Some(row) = transaction.query(&registry, &[]).await?.first() {
        catalog.revision = row.try_get(0)?;
        catalog.records_calls = options.records_calls || row.try_get(1)?;
        catalog.checks_identity = row.try_get(2)?;
        catalog.server_name = row.try_get(3)?;
        catalog.server_version = row.try_get(4)?;
    }
    let handlers = HANDLERS_SQL.replace("{schema}", schema);
    let rows = transaction.query(&format!("{handlers} LIMIT {HANDLERS_MAX}"), &[]).await?;
    if rows.len() == HANDLERS_MAX {
        let problem = format!("there are more than {HANDLERS_MAX} handlers; only the first {HANDLERS_MAX} are served");
        catalog.problems.push(problem);
    }
    for row in &rows {
        match HandlerRecord::from_row(row, options, role) {
            Ok(record) => catalog.handlers.push(Arc::new(record)),
            Err(RecordError::Row(error)) => return Err(error),
            Err(RecordError::Invalid(reason)) => {
                let (kind, name): (&str, &str) = (row.try_get(0)?, row.try_get(1)?);
                catalog.problems.push(format!("the {kind} {name:?} is left out: {reason}"));
            }
        }
    }
    Ok(catalog)
}

/// The value of a column of the registry, bounded, unless a setting `mcp.{column}` of the database or the role replaces
/// it. The stored setting is read, because a connection of the pool keeps the value with which it began.
fn setting_sql(schema: &str, column: &str) -> String {
    format!("pg_catalog.left(COALESCE({schema}.stored_setting('mcp.{column}'), {column}), {SETTING_CHARACTERS_MAX})")
}

fn read_error(error: &tokio_postgres::Error, database: &str, options: &HandlerOptions, role: Option<&str>) -> Error {
    let schema = &options.schema;
    let (kind, message, hint) = match error.code() {
        Some(&SqlState::INSUFFICIENT_PRIVILEGE) => (
            ErrorKind::Forbidden,
            format!(
                "the role {} has no access to the handlers of the database {database}",
                role.unwrap_or("the login role")
            ),
            format!("The owner of the schema can run SELECT {schema}.grant_mcp_access('ROLE')."),
        ),
        Some(&(SqlState::UNDEFINED_TABLE | SqlState::UNDEFINED_SCHEMA)) => (
            ErrorKind::NotFound,
            format!("the database {database} has no handlers in the schema {schema}"),
            "Create it with tidegate pg install.".to_owned(),
        ),
        Some(&(SqlState::UNDEFINED_COLUMN | SqlState::UNDEFINED_FUNCTION)) => (
            ErrorKind::NotFound,
            format!("the handlers in the schema {schema} of the database {database} have another version"),
            HandlerSchemaScripts::OTHER_VERSION_HINT.to_owned(),
        ),
        _ => return internal_statement_error(error, database),
    };
    Error::new(kind, message).with_hint(hint)
}

fn merge_catalogs(catalogs: Vec<HandlerCatalog>) -> HandlerCatalog {
    // The oldest revision: changes in between are read again.
    let revision = catalogs.iter().map(|catalog| catalog.revision).min().unwrap_or_default();
    let mut merged = HandlerCatalog { revision, ..HandlerCatalog::default() };
    let mut handlers: BTreeMap<(HandlerKind, String), HandlerRecord> = BTreeMap::new();
    for catalog in catalogs {
        merged.records_calls = catalog.records_calls;
        merged.checks_identity = catalog.checks_identity;
        merged.server_name = merged.server_name.or(catalog.server_name);
        merged.server_version = merged.server_version.or(catalog.server_version);
        for problem in catalog.problems {
            if !merged.problems.contains(&problem) {
                merged.problems.push(problem);
            }
        }
        for record in catalog.handlers {
            let roles = record.roles.clone();
            let merged_record = handlers.entry((record.kind, record.name.clone()));
            merged_record.or_insert_with(|| Arc::unwrap_or_clone(record)).roles.extend(roles);
        }
    }
    merged.handlers = handlers.into_values().map(Arc::new).collect();
    merged
}

/// Changes within this time are read together.
const DEBOUNCE: Duration = Duration::from_millis(50);
/// The interval of reading without notifications.
const RECHECK_INTERVAL: Duration = Duration::from_secs(30);
/// The interval where notifications are not available: behind a pooler in transaction mode, and on a standby.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// The first delay before the next attempt after an error.
const DELAY_MIN: Duration = Duration::from_millis(100);
const DELAY_MAX: Duration = Duration::from_secs(5);

/// Watches the handlers of one database.
pub struct HandlerWatcher {
    handlers: Arc<DatabaseHandlers>,
    last_catalog: Option<HandlerCatalog>,
    listen_state: ListenState,
    /// Whether the last read failed, so that the next one does not wait for a change.
    must_read_again: bool,
    backoff: Backoff,
    /// Whether the current outage was logged.
    has_logged_error: bool,
}

/// How changes are detected.
enum ListenState {
    /// Not connected yet.
    Disconnected,
    /// The server sends notifications on this connection.
    Listening(Box<OpenConnection>),
    /// Without notifications; the handlers are read frequently.
    Polling,
}

impl DatabaseHandlers {
    /// Watches for changes since `last_catalog`.
    pub fn watch(self: &Arc<Self>, last_catalog: Option<HandlerCatalog>) -> HandlerWatcher {
        HandlerWatcher {
            handlers: self.clone(),
            last_catalog,
            listen_state: ListenState::Disconnected,
            must_read_again: false,
            backoff: Backoff::new(DELAY_MIN, DELAY_MAX),
            has_logged_error: false,
        }
    }
}

impl HandlerWatcher {
    /// The handlers, as soon as they differ from the last returned ones, or from those that the watch began with. Waits
    /// for the server without a time limit. The method is cancel safe.
    pub async fn next_change(&mut self) -> HandlerCatalog {
        loop {
            if let Err(error) = self.wait_for_change().await {
                self.back_off(&error).await;
                continue;
            }
            match self.handlers.list().await {
                Ok(catalog) => {
                    self.backoff.reset();
                    self.has_logged_error = false;
                    if self.last_catalog.as_ref() != Some(&catalog) {
                        self.last_catalog = Some(catalog.clone());
                        return catalog;
                    }
                }
                // The schema was removed, or the roles lost access: then there are no handlers.
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Forbidden) => {
                    let empty = HandlerCatalog::default();
                    if self.last_catalog.as_ref() != Some(&empty) {
                        tracing::warn!(database = %self.handlers.name, "{error}");
                        self.last_catalog = Some(empty.clone());
                        return empty;
                    }
                }
                Err(error) => {
                    self.must_read_again = true;
                    self.back_off(&error).await;
                }
            }
        }
    }

    /// Waits for a reason to read; the first call returns at once.
    async fn wait_for_change(&mut self) -> Result<(), Error> {
        let must_read_again = std::mem::take(&mut self.must_read_again);
        match &mut self.listen_state {
            ListenState::Disconnected => self.listen_state = self.listen().await?,
            _ if must_read_again => {}
            ListenState::Polling => sleep(POLL_INTERVAL).await,
            ListenState::Listening(connection) => {
                tokio::select! {
                    is_notified = connection.wait_for_notification() => match is_notified {
                        true => sleep(DEBOUNCE).await,
                        false => self.listen_state = ListenState::Disconnected,
                    },
                    () = sleep(RECHECK_INTERVAL) => {}
                }
            }
        }
        Ok(())
    }

    async fn listen(&self) -> Result<ListenState, Error> {
        let DatabaseHandlers { database, name, options, .. } = &*self.handlers;
        if database.is_behind_pooler() {
            return Ok(ListenState::Polling);
        }
        let connection = database.connect(&format!("tidegate/{name} listens")).await?;
        match connection.client().batch_execute(&format!("LISTEN {}", options.schema.channel())).await {
            Ok(()) => Ok(ListenState::Listening(Box::new(connection))),
            Err(error) if error.as_db_error().is_some() => {
                tracing::warn!(database = %name, "LISTEN failed; polling for changes of handlers: {error}");
                Ok(ListenState::Polling)
            }
            Err(error) => Err(internal_statement_error(&error, name)),
        }
    }

    /// Waits before the next attempt.
    async fn back_off(&mut self, error: &Error) {
        if !std::mem::replace(&mut self.has_logged_error, true) {
            let detail = error.detail().unwrap_or_default();
            tracing::warn!(database = %self.handlers.name, detail, "cannot read the handlers: {error}");
        }
        sleep(self.backoff.next_delay()).await;
    }
}
