//! Opens connections in tasks of their own, for whichever call needs one next.
//!
//! To open a connection takes round trips, and to check its TLS and its password takes processor time of both sides. If it
//! belonged to the call that needs it, a storm of clients that leave would make the server open connections that nobody
//! uses, and the next call would begin again.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tidegate_core::{Backoff, Error};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::connect::ConnectTarget;
use crate::error;
use crate::options::PostgresOptions;
use crate::pooler::{PoolerSession, SeenTypes};
use crate::session::PostgresSession;

/// How long a connect error is returned to further calls without another attempt. Otherwise a thousand declared tools
/// that start together would each wait for the connect timeout.
const CONNECT_ERROR_MAX_AGE: Duration = Duration::from_secs(1);
/// The delays between the attempts to replace a lost connection before a call needs it.
const REFILL_DELAYS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));
/// The number of these attempts. Later ones are made by calls.
const REFILL_ATTEMPTS: u32 = 8;

pub(crate) struct Opener {
    pub(crate) target: ConnectTarget,
    options: Arc<PostgresOptions>,
    application_name: String,
    database: Arc<str>,
    last_error: Mutex<Option<(Instant, Error)>>,
    pub(crate) seen_types: Arc<SeenTypes>,
    state: Mutex<OpenerState>,
    /// Each session has a clone.
    sessions: Arc<()>,
    closing: CancellationToken,
}

#[derive(Default)]
struct OpenerState {
    /// The number of connections that are being opened.
    opening: usize,
    /// Calls that wait for one, the first first.
    waiting: VecDeque<oneshot::Sender<Result<PostgresSession, Error>>>,
    /// Open connections whose calls left. No more than calls waited at once, and so than the pool may have.
    spare: Vec<PostgresSession>,
    is_refilling: bool,
}

impl Opener {
    pub(crate) fn new(
        database: Arc<str>,
        target: ConnectTarget,
        options: Arc<PostgresOptions>,
        closing: CancellationToken,
    ) -> Self {
        Self {
            target,
            options,
            application_name: format!("tidegate/{database}"),
            database,
            last_error: Mutex::default(),
            seen_types: Arc::default(),
            state: Mutex::default(),
            sessions: Arc::default(),
            closing,
        }
    }

    /// An open connection that no call has: a spare one, or the next that is opened.
    pub(crate) async fn next_session(self: &Arc<Self>) -> Result<PostgresSession, Error> {
        let opened = {
            let mut state = self.state.lock();
            state.spare.retain(|session| !session.connection().is_closed());
            if let Some(session) = state.spare.pop() {
                return Ok(session);
            }
            state.waiting.retain(|waiting| !waiting.is_closed());
            let (sender, opened) = oneshot::channel();
            state.waiting.push_back(sender);
            if state.opening < state.waiting.len() {
                state.opening += 1;
                tokio::spawn(self.clone().open_next());
            }
            opened
        };
        opened.await.unwrap_or_else(|_| Err(Error::internal("a connection was not opened")))
    }

    /// Opens a connection for the first call that waits. Returns whether it is open.
    async fn open_next(self: Arc<Self>) -> bool {
        let mut outcome = tokio::select! {
            outcome = self.open(false) => outcome,
            () = self.closing.cancelled() => Err(error::closed_error(&self.database)),
        };
        let mut state = self.state.lock();
        state.opening -= 1;
        let is_open = outcome.is_ok();
        while let Some(waiting) = state.waiting.pop_front() {
            outcome = match waiting.send(outcome) {
                Ok(()) => return is_open,
                Err(unsent) => unsent,
            };
        }
        if let Ok(session) = outcome
            && self.open_sessions() <= self.options.connections_max.max(1)
        {
            state.spare.push(session);
        }
        is_open
    }

    fn open_sessions(&self) -> usize {
        Arc::strong_count(&self.sessions) - 1
    }

    /// Records that a connection is being opened that no call waits for, unless there are enough.
    fn begin_refill(&self) -> bool {
        let mut state = self.state.lock();
        let is_needed = state.opening == 0 && state.spare.is_empty();
        let is_possible = self.open_sessions() < self.options.connections_max.max(1);
        state.opening += usize::from(is_needed && is_possible);
        is_needed && is_possible
    }

    /// Opens a connection before a call needs it, after one was lost. Tries several times, in the background.
    pub(crate) fn refill(self: &Arc<Self>) {
        if std::mem::replace(&mut self.state.lock().is_refilling, true) {
            return;
        }
        let opener = self.clone();
        tokio::spawn(async move {
            let mut backoff = Backoff::new(REFILL_DELAYS.0, REFILL_DELAYS.1);
            for _ in 0..REFILL_ATTEMPTS {
                if !opener.begin_refill() || opener.clone().open_next().await {
                    break;
                }
                tokio::select! {
                    () = tokio::time::sleep(backoff.next_delay()) => {}
                    () = opener.closing.cancelled() => break,
                }
            }
            opener.state.lock().is_refilling = false;
        });
    }

    /// Closes the connections that no call has.
    pub(crate) fn close(&self) {
        self.state.lock().spare.clear();
    }

    pub(crate) async fn open(&self, is_replacement: bool) -> Result<PostgresSession, Error> {
        if let Some(error) = recent_error(&self.last_error, Instant::now()) {
            return Err(error);
        }
        let connection = self.target.connect(&self.application_name).await.map_err(|error| {
            tracing::warn!(database = %self.database, "{error}");
            let error = error.into_error(&self.database);
            *self.last_error.lock() = Some((Instant::now(), error.clone()));
            error
        })?;
        let session = async {
            let pooler = match self.options.is_behind_pooler {
                true => {
                    Some(PoolerSession::detect(connection.client(), self.seen_types.clone(), is_replacement).await?)
                }
                false => None,
            };
            PostgresSession::open(connection, &self.options, pooler, self.sessions.clone()).await
        };
        session.await.map_err(|error| error::internal_statement_error(&error, &self.database))
    }
}

/// The last connect error, unless it is too old at the time `now`.
fn recent_error(last_error: &Mutex<Option<(Instant, Error)>>, now: Instant) -> Option<Error> {
    let last_error = last_error.lock();
    let (time, error) = last_error.as_ref()?;
    (now.saturating_duration_since(*time) < CONNECT_ERROR_MAX_AGE).then(|| error.clone())
}

#[cfg(test)]
mod tests {
    use tidegate_core::ErrorKind;

    use super::*;

    #[test]
    fn connect_error_is_reused_for_one_second() {
        let now = Instant::now();
        let recent = |error: Option<Error>, at| {
            recent_error(&Mutex::new(error.map(|error| (now, error))), at).map(|error| error.to_string())
        };
        let refused = || Some(Error::new(ErrorKind::Unavailable, "refused"));
        assert_eq!(recent(None, now), None);
        assert_eq!(recent(refused(), now).as_deref(), Some("refused"));
        assert_eq!(recent(refused(), now + CONNECT_ERROR_MAX_AGE), None);
    }
}
