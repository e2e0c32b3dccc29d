//! A call while it runs, as its handler sees it.

use std::ops::Deref;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tidegate_core::{Error, LogLevel};
use tokio::sync::mpsc;

use super::progress_throttle::ProgressThrottle;
use super::{ReplyNotification, ReplyPart, cancelled_error};
use crate::job::Job;

/// A call while it runs: its [`Job`], to which this dereferences, and what a handler says to the client beside the
/// answer: progress, log messages, and [requests for input](Self::ask). Cheap to clone.
#[derive(Debug, Clone)]
pub struct RunningCall {
    job: Arc<Job>,
    sender: mpsc::Sender<ReplyPart>,
    /// `None` if the caller requests no progress.
    progress_throttle: Option<Arc<Mutex<ProgressThrottle>>>,
}

impl RunningCall {
    pub(super) fn new(job: Arc<Job>, sender: mpsc::Sender<ReplyPart>) -> Self {
        let progress_throttle = job.request().wants_progress.then(Arc::default);
        Self { job, sender, progress_throttle }
    }

    /// The job of the call.
    pub fn job(&self) -> &Arc<Job> {
        &self.job
    }

    /// Reports progress, if the caller requests it. Values that are not finite, do not rise, or follow too soon are
    /// dropped.
    ///
    /// # Errors
    /// `Cancelled` if the reply is no longer read; this applies to every method.
    pub async fn progress(&self, done: f64, total: Option<f64>, message: Option<String>) -> Result<(), Error> {
        let Some(throttle) = &self.progress_throttle else { return Ok(()) };
        if !done.is_finite() || !throttle.lock().admits(done) {
            return Ok(());
        }
        let total = total.filter(|total| total.is_finite());
        self.send(ReplyPart::Notification(ReplyNotification::Progress { done, total, message })).await
    }

    /// Sends a log message, if the caller requests messages of this level.
    pub async fn log(&self, level: LogLevel, logger: Option<String>, data: Value) -> Result<(), Error> {
        if self.job.request().log_level.is_none_or(|log_level| level < log_level) {
            return Ok(());
        }
        self.send(ReplyPart::Notification(ReplyNotification::Log { level, logger, data })).await
    }

    pub(super) async fn send(&self, part: ReplyPart) -> Result<(), Error> {
        // Usually the channel has room.
        let reserved =
            if self.job.lifetime.cancellation.is_cancelled() { None } else { self.sender.try_reserve().ok() };
        let permit = match reserved {
            Some(permit) => permit,
            None => self.reserve().await?,
        };
        permit.send(part);
        Ok(())
    }

    /// Waits until the channel has room.
    async fn reserve(&self) -> Result<mpsc::Permit<'_, ReplyPart>, Error> {
        tokio::select! {
            biased;
            () = self.job.cancelled() => Err(cancelled_error()),
            reserved = self.sender.reserve() => reserved.map_err(|_| cancelled_error()),
        }
    }

    /// Ends the reply. Waits until the channel has room, unless the receiver is dropped.
    pub(super) async fn end(&self, end: ReplyPart) {
        // An error means that the receiver is dropped and needs no end.
        let _ = self.sender.send(end).await;
    }
}

impl Deref for RunningCall {
    type Target = Job;

    fn deref(&self) -> &Job {
        &self.job
    }
}
