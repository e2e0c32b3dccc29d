//! The cancellation of a query. Functions find it in the settings of their session.

use std::any::Any;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use datafusion::catalog::Session;
use datafusion::common::{DataFusionError, Result};
use datafusion::config::{ConfigEntry, ConfigExtension, ExtensionOptions};
use datafusion::execution::SessionState;
use datafusion::logical_expr::ScalarFunctionArgs;
use tidegate_core::{Error, ErrorKind};
use tidegate_runtime::Job;
use tokio_util::sync::CancellationToken;

use super::decode_budget::ReaderPause;
use super::engine::shutdown_error;

/// Cancellation of a query, whether rows of it were sent, and whether its reader pauses.
#[derive(Debug, Clone)]
pub(crate) struct QueryCancellation {
    /// Is cancelled when the engine shuts down.
    closing: CancellationToken,
    /// Is cancelled when the query's rows are dropped, when the query ends, and when the engine shuts down.
    token: CancellationToken,
    /// The job of the query, once it runs. It is checked directly: a task that forwards its cancellation would not be
    /// scheduled while all threads compute.
    job: Arc<OnceLock<Arc<Job>>>,
    rows_sent: Arc<AtomicBool>,
    reader: Arc<ReaderPause>,
}

impl QueryCancellation {
    /// Not cancelled until `closing` is, which happens when the engine shuts down.
    pub(crate) fn new(closing: &CancellationToken) -> Self {
        Self {
            closing: closing.clone(),
            token: closing.child_token(),
            job: Arc::default(),
            rows_sent: Arc::default(),
            reader: Arc::default(),
        }
    }

    pub(crate) fn set_job(&self, job: Arc<Job>) {
        // A plan runs once.
        let _ = self.job.set(job);
    }

    pub(crate) fn job(&self) -> Option<&Arc<Job>> {
        self.job.get()
    }

    pub(crate) fn token(&self) -> &CancellationToken {
        &self.token
    }

    pub(super) fn reader(&self) -> &Arc<ReaderPause> {
        &self.reader
    }

    pub(super) fn mark_rows_sent(&self) {
        self.rows_sent.store(true, Ordering::Release);
    }

    pub(super) fn has_sent_rows(&self) -> bool {
        self.rows_sent.load(Ordering::Acquire)
    }

    pub(super) fn check_cancelled(&self) -> Result<()> {
        if !self.token.is_cancelled() && !self.job.get().is_some_and(|job| job.is_cancelled()) {
            return Ok(());
        }
        let error = match self.closing.is_cancelled() {
            true => shutdown_error(),
            false => Error::new(ErrorKind::Cancelled, "the query was cancelled"),
        };
        Err(DataFusionError::External(Box::new(error)))
    }
}

/// Functions that check for cancellation are equal if they belong to the same query.
impl PartialEq for QueryCancellation {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.job, &other.job)
    }
}

impl Eq for QueryCancellation {}

impl Hash for QueryCancellation {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.job).hash(state);
    }
}

/// The reader of the query of `session`. `None` if a statement is only described.
pub(crate) fn session_reader(session: &dyn Session) -> Option<Arc<ReaderPause>> {
    session.config_options().extensions.get::<CancellationExtension>().map(|watch| watch.0.reader.clone())
}

/// The cancellation of the query of `session`. `None` if a statement is only described.
pub(super) fn session_cancellation(session: &SessionState) -> Option<QueryCancellation> {
    session.config_options().extensions.get::<CancellationExtension>().map(|watch| watch.0.clone())
}

pub(super) fn check_function_cancelled(args: &ScalarFunctionArgs) -> Result<()> {
    args.config_options.extensions.get::<CancellationExtension>().map_or(Ok(()), |watch| watch.0.check_cancelled())
}

#[derive(Debug)]
pub(super) struct CancellationExtension(pub(super) QueryCancellation);

impl ConfigExtension for CancellationExtension {
    const PREFIX: &'static str = "watch";
}

impl ExtensionOptions for CancellationExtension {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(Self(self.0.clone()))
    }

    fn set(&mut self, _: &str, _: &str) -> Result<()> {
        Ok(())
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        Vec::new()
    }
}
