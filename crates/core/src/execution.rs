//! The task of one job: waits for room and a place, runs the handler within its bounds, and tells of the end.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use parking_lot::Mutex;

use crate::auditor::AuditLine;
use crate::error::{Error, ErrorKind};
use crate::event::{Event, Events};
use crate::job::{Job, JobState};
use crate::jobs::Jobs;
use crate::limits::{Held, Places, Reached};
use crate::registry::{fault_of, tell_of_fault};
use crate::reply::{Metadata, Outcome, ReplySender};
use crate::route::Code;

/// The task of one job.
pub(crate) struct Execution {
    pub(crate) job: Arc<Job>,
    pub(crate) sender: ReplySender,
    pub(crate) code: Code,
    /// Where to wait for a place; none for a call on behalf of one that holds a place already.
    pub(crate) places: Option<Places>,
    /// What it holds until it has ended.
    pub(crate) held: Option<Held>,
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) events: Events,
    /// Room for what is written down of the call.
    pub(crate) line: Mutex<Option<Box<dyn AuditLine>>>,
    pub(crate) cancel_grace: Duration,
}

impl Execution {
    /// Runs the job to its end, and tells everybody who hears of that.
    pub(crate) async fn run(mut self) {
        self.events.tell(Event::CallStarted { job: &self.job });
        let outcome = match self.execute_within_bounds().await {
            Ok(metadata) => Outcome::Done(metadata),
            Err(error) => {
                tell_of_fault(&self.events, &error, self.job.id().0);
                Outcome::Failed(self.job.screened_error(error))
            }
        };
        let state = match &outcome {
            Outcome::Done(_) => JobState::Done,
            Outcome::Failed(error) => JobState::Failed(error.kind()),
        };
        self.job.enter(state);
        self.jobs.close(&self.job);
        self.job.leave_place();
        self.held = None;
        self.events.tell(Event::CallEnded { job: &self.job, outcome: state.name() });
        self.write_down(state.name());
        if !self.job.is_in_background() {
            self.sender.end(outcome).await;
        }
    }

    async fn execute_within_bounds(&self) -> Result<Metadata, Error> {
        let job = &self.job;
        let dropped_after_grace = async {
            job.cancelled().await;
            tokio::time::sleep(self.cancel_grace).await;
        };
        let result = tokio::select! {
            biased;
            result = AssertUnwindSafe(self.execute()).catch_unwind() => result.unwrap_or_else(|panic| Err(fault_of(&*panic))),
            () = dropped_after_grace => Err(Error::new(ErrorKind::Cancelled, "the call was cancelled")),
            () = job.obey() => Err(Error::new(ErrorKind::Cancelled, "the call was cancelled")),
            () = job.watch_deadline() => Err(Error::new(ErrorKind::TimedOut, "the call ran too long")),
        };
        // Told even if the answer was whole by then: the next call is refused.
        if let Some(Reached { level, measure, .. }) = job.exceeded() {
            self.events.tell(Event::LimitReached { caller: job.caller(), level, measure });
        }
        match result {
            Err(error) if job.is_cancelled() && error.kind() != ErrorKind::Internal => {
                Err(self.reason_of_cancellation())
            }
            result => result,
        }
    }

    /// Hands on what is to be written down of the call, before anybody hears of its end.
    fn write_down(&self, outcome: &'static str) {
        let Some(auditor) = self.events.auditor() else { return };
        match self.line.lock().take() {
            Some(line) => line.write(&self.job, outcome),
            None => auditor.ended_without_room(&self.job, outcome),
        }
    }

    async fn execute(&self) -> Result<Metadata, Error> {
        if let Some(auditor) = self.events.auditor() {
            let line = tokio::select! {
                biased;
                () = self.job.cancelled() => return Err(self.reason_of_cancellation()),
                line = auditor.reserve() => line?,
            };
            *self.line.lock() = Some(line);
        }
        if let Some(places) = &self.places {
            tokio::select! {
                biased;
                () = self.job.cancelled() => return Err(self.reason_of_cancellation()),
                taken = self.job.take_place(places) => taken?,
                // Asked only when there is no place at once.
                () = self.say_that_it_waits() => return Err(self.reason_of_cancellation()),
            }
        }
        self.job.enter(JobState::Running);
        tokio::select! {
            biased;
            result = self.run_code() => result,
            () = self.job.charge_time() => Err(Error::new(ErrorKind::Cancelled, "the call was cancelled")),
        }
    }

    async fn run_code(&self) -> Result<Metadata, Error> {
        match &self.code {
            Code::Handler(handler) => handler.handle(self.job.clone(), self.sender.clone()).await,
            Code::Completer(completer, request) => {
                let completion = match completer {
                    Some(completer) => completer.complete(request, self.job.clone()).await?,
                    None => crate::completion::Completion::default(),
                };
                self.sender.completion(completion).await?;
                Ok(Metadata::new())
            }
        }
    }

    /// Tells who wants to hear of progress why nothing happens; never resolves.
    async fn say_that_it_waits(&self) {
        // Whoever does not listen any more has dropped the reply, which cancels the job.
        let _ = self.sender.progress(0.0, None, Some("waiting for a place".to_owned())).await;
        std::future::pending().await
    }

    fn reason_of_cancellation(&self) -> Error {
        if let Some(exceeded) = self.job.exceeded() {
            return exceeded.error();
        }
        if self.job.was_unanswered() {
            return Error::new(ErrorKind::TimedOut, "the call asked for something, and nobody answered in time");
        }
        if self.job.has_timed_out() {
            let seconds = self.job.time_limit().as_secs_f64();
            return Error::new(ErrorKind::TimedOut, format!("the call was ended after {seconds:.1} s, its time limit"))
                .with_hint("Ask for less: filter, aggregate, or set a smaller limit.");
        }
        Error::new(ErrorKind::Cancelled, "the call was cancelled")
    }
}
