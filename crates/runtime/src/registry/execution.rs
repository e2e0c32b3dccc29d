//! Executes one admitted call, from top to bottom of this file:
//!
//! 1. deadline: `execute_within_limits` ends the steps below at the time limit, when the call is cancelled, and after a
//!    panic;
//! 2. audit: `execute` reserves the audit line;
//! 3. permits: `execute` waits until the call may run;
//! 4. run: `run_handler` runs the handler and sends its answer, while the run time is charged;
//! 5. end: `run` releases what the call holds and writes the audit line; only then the client receives the end.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use parking_lot::Mutex;
use tidegate_core::{Error, ErrorKind};

use super::route::RouteHandler;
use crate::event::{AuditReservation, Event, EventDispatcher};
use crate::handler::panic_to_error;
use crate::job::{Job, JobState, Jobs};
use crate::limits::{AdmissionGuard, PermitQueues, ReachedLimit};
use crate::reply::{AnswerMeta, ReplySender};

pub(crate) struct Execution {
    pub(crate) job: Arc<Job>,
    pub(crate) sender: ReplySender,
    pub(crate) handler: RouteHandler,
    /// The queues for run permits; `None` for a call on behalf of one that already holds permits.
    pub(crate) permit_queues: Option<PermitQueues>,
    pub(crate) admission: Option<AdmissionGuard>,
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) events: EventDispatcher,
    pub(crate) audit_reservation: Mutex<Option<Box<dyn AuditReservation>>>,
    pub(crate) cancel_grace: Duration,
}

impl Execution {
    pub(crate) async fn run(mut self) {
        self.events.emit(Event::CallStarted { job: &self.job });
        // deadline, audit, permits, run
        let outcome = match self.execute_within_limits().await {
            Ok(metadata) => Ok(self.job.with_missing_nodes(metadata)),
            Err(error) => {
                let error = self.job.explain_with_missing_nodes(error);
                self.events.emit_error_detail(&error, self.job.id().0);
                Err(self.job.redact_error(error))
            }
        };
        let state = match &outcome {
            Ok(_) => JobState::Done,
            Err(error) => JobState::Failed(error.kind()),
        };
        // end
        self.job.set_state(state);
        self.jobs.close(&self.job);
        self.job.release_permits();
        self.admission = None;
        self.events.emit(Event::CallEnded { job: &self.job, outcome: state.name() });
        self.write_audit_record(state.name());
        if !self.job.is_in_background() {
            self.sender.end(outcome).await;
        }
    }

    async fn execute_within_limits(&self) -> Result<AnswerMeta, Error> {
        let job = &self.job;
        let dropped_after_grace = async {
            job.cancelled().await;
            tokio::time::sleep(self.cancel_grace).await;
        };
        let result = tokio::select! {
            biased;
            result = AssertUnwindSafe(self.execute()).catch_unwind() =>
                result.unwrap_or_else(|panic| Err(panic_to_error(&*panic))),
            () = dropped_after_grace => Err(cancelled()),
            () = job.watch_client_cancellation() => Err(cancelled()),
            () = job.watch_deadline() => Err(Error::new(ErrorKind::TimedOut, "the call ran too long")),
        };
        // Emitted even if the answer was complete: the next call is refused.
        if let Some(ReachedLimit { level, measure, .. }) = job.exceeded_limit() {
            self.events.emit(Event::LimitReached { caller: job.caller(), level, measure });
        }
        match result {
            Err(error) if job.is_cancelled() && error.kind() != ErrorKind::Internal => Err(self.cancellation_error()),
            result => result,
        }
    }

    async fn execute(&self) -> Result<AnswerMeta, Error> {
        // audit
        if let Some(auditor) = self.events.auditor() {
            let line = tokio::select! {
                biased;
                () = self.job.cancelled() => return Err(self.cancellation_error()),
                line = auditor.reserve() => line?,
            };
            *self.audit_reservation.lock() = Some(line);
        }
        // permits
        if let Some(permit_queues) = &self.permit_queues {
            tokio::select! {
                biased;
                () = self.job.cancelled() => return Err(self.cancellation_error()),
                acquired = self.job.acquire_permits(permit_queues) => acquired?,
                // Runs only if no permit is free at once.
                () = self.report_waiting() => return Err(self.cancellation_error()),
            }
        }
        // run
        self.job.set_state(JobState::Running);
        tokio::select! {
            biased;
            result = self.run_handler() => result,
            () = self.job.charge_time() => Err(cancelled()),
        }
    }

    async fn run_handler(&self) -> Result<AnswerMeta, Error> {
        match &self.handler {
            RouteHandler::Handler(handler) => {
                let answer = handler.handle(self.sender.call().clone()).await?;
                let metadata = answer.send(&self.sender).await?;
                if !self.job.is_in_background() {
                    self.sender.send_missing_nodes_note().await?;
                }
                Ok(metadata)
            }
            RouteHandler::Completer(completer, request) => {
                let completion = match completer {
                    Some(completer) => completer.complete(request, self.job.clone()).await?,
                    None => tidegate_core::Completion::default(),
                };
                self.sender.send_completion(completion).await?;
                Ok(AnswerMeta::default())
            }
        }
    }

    /// Reports as progress why the call does not run yet; never resolves.
    async fn report_waiting(&self) {
        self.events.emit(Event::CallWaiting { job: &self.job });
        // A client that no longer reads has dropped the reply, which cancels the job.
        let _ = self.sender.call().progress(0.0, None, Some("waiting for other calls to end".to_owned())).await;
        std::future::pending().await
    }

    /// Writes the audit record of the call before its end becomes visible to the client.
    fn write_audit_record(&self, outcome: &'static str) {
        let Some(auditor) = self.events.auditor() else { return };
        match self.audit_reservation.lock().take() {
            Some(line) => line.write(&self.job, outcome),
            None => auditor.record_unreserved(&self.job, outcome),
        }
    }

    fn cancellation_error(&self) -> Error {
        if let Some(exceeded) = self.job.exceeded_limit() {
            return exceeded.to_error();
        }
        self.job.timeout_error().cloned().unwrap_or_else(cancelled)
    }
}

fn cancelled() -> Error {
    Error::new(ErrorKind::Cancelled, "the call was cancelled")
}
