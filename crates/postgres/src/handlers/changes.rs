//! Following the handlers of a database: a connection of its own listens, and what was missed is caught up with.
//!
//! What the server tells only wakes us: what counts is what the database lists. It is read after listening has begun,
//! so that nothing between is lost; also now and then without being told, since grants change without a word.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::{Error, ErrorKind};
use tokio::time::sleep;

use super::catalog::HandlerCatalog;
use super::options::HandlerOptions;
use crate::connect::{Connected, Startup};
use crate::server::Server;

/// Changes that come so close together are read as one.
const SETTLE: Duration = Duration::from_millis(50);
/// How often the handlers are looked at though nothing was told.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// The same where nothing can be told: behind a pooler in transaction mode, and on a standby.
const POLL_EVERY: Duration = Duration::from_millis(500);
/// The first wait before a lost server is tried again; it doubles.
const RETRY_AFTER: Duration = Duration::from_millis(100);
/// The longest such wait.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(5);

/// Follows the handlers of one database.
pub struct HandlerChanges {
    server: Arc<Server>,
    options: HandlerOptions,
    known: Option<HandlerCatalog>,
    ear: Ear,
    /// Whether the last look found nothing, so that the next one waits for no reason.
    owes_look: bool,
    /// Tries in a row that found no server.
    failures: u32,
}

/// How changes are heard of.
enum Ear {
    /// Not yet.
    Deaf,
    /// The server tells on this connection.
    Listening(Box<Connected>),
    /// Nobody tells; it is looked at often.
    Polling,
}

impl HandlerChanges {
    pub(crate) fn new(server: Arc<Server>, options: HandlerOptions, known: Option<HandlerCatalog>) -> Self {
        Self { server, options, known, ear: Ear::Deaf, owes_look: false, failures: 0 }
    }

    /// The handlers, as soon as they are other ones than those that were known or given last. Waits for the server as
    /// long as it takes. What was begun is not lost when the wait is given up.
    pub async fn changed(&mut self) -> HandlerCatalog {
        loop {
            if let Err(error) = self.hear().await {
                self.rest(&error).await;
                continue;
            }
            match self.server.handlers(&self.options).await {
                Ok(catalog) => {
                    self.failures = 0;
                    if self.known.as_ref() != Some(&catalog) {
                        self.known = Some(catalog.clone());
                        return catalog;
                    }
                }
                // The schema is gone, or this node was shut out: then there are none.
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Forbidden) => {
                    let nothing = HandlerCatalog::default();
                    if self.known.as_ref() != Some(&nothing) {
                        tracing::warn!(database = %self.server.database, "{error}");
                        self.known = Some(nothing.clone());
                        return nothing;
                    }
                }
                Err(error) => {
                    self.owes_look = true;
                    self.rest(&error).await;
                }
            }
        }
    }

    /// Waits for a reason to look; the beginning is one.
    async fn hear(&mut self) -> Result<(), Error> {
        let owes_look = std::mem::take(&mut self.owes_look);
        match &mut self.ear {
            Ear::Deaf => self.ear = self.listen().await?,
            _ if owes_look => {}
            Ear::Polling => sleep(POLL_EVERY).await,
            Ear::Listening(connected) => {
                tokio::select! {
                    is_told = connected.notified() => match is_told {
                        true => sleep(SETTLE).await,
                        false => self.ear = Ear::Deaf,
                    },
                    () = sleep(LOOK_EVERY) => {}
                }
            }
        }
        Ok(())
    }

    async fn listen(&self) -> Result<Ear, Error> {
        if self.server.options.pooler {
            return Ok(Ear::Polling);
        }
        let application_name = format!("tidegate/{} listens", self.server.database);
        let startup = Startup { application_name: &application_name, settings: &[] };
        let connected = self.server.pool.target().connect(&startup).await;
        let connected = connected.map_err(|error| {
            Error::new(ErrorKind::Unavailable, error.for_caller(&self.server.database)).with_detail(error.for_owner())
        })?;
        match connected.client().batch_execute(&format!("LISTEN {}", self.options.schema.channel())).await {
            Ok(()) => Ok(Ear::Listening(Box::new(connected))),
            Err(error) if error.as_db_error().is_some() => {
                tracing::warn!(database = %self.server.database, "changes of handlers are looked for instead of told: {error}");
                Ok(Ear::Polling)
            }
            Err(error) => Err(crate::error::of_own(&error, &self.server.database)),
        }
    }

    /// Waits before the server is tried again.
    async fn rest(&mut self, error: &Error) {
        if self.failures == 0 {
            let detail = error.detail().unwrap_or_default();
            tracing::warn!(database = %self.server.database, detail, "the handlers cannot be read now: {error}");
        }
        let wait = RETRY_AFTER * 2_u32.saturating_pow(self.failures.min(6));
        self.failures = self.failures.saturating_add(1);
        sleep(wait.min(RETRY_AFTER_MAX)).await;
    }
}
