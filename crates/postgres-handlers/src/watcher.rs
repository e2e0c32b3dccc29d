//! Watches the handlers of a database: listens on its own connection and catches up with missed changes.
//!
//! A notification only triggers reading; the content of the database counts. It is read after listening has begun, so
//! that no change is lost. It is also read periodically, since changes of grants cause no notification.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::{Backoff, Error, ErrorKind};
use tidegate_postgres::connect::OpenConnection;
use tidegate_postgres::error::internal_statement_error;
use tokio::time::sleep;

use crate::database_handlers::{DatabaseHandlers, HandlerCatalog};

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
