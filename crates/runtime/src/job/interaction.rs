//! How a job waits for input: its permits and its time limit meanwhile, and its continuation as a task.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tidegate_core::{ClientCapabilities, Error, ErrorKind, ProvidedAnswer};

use super::Job;
use crate::limits::PermitQueues;

impl Job {
    /// The capabilities that the client behind the call declared.
    pub fn client_capabilities(&self) -> ClientCapabilities {
        self.interaction.client_capabilities
    }

    /// The answers that came with the call, to be passed to a call on behalf of this one.
    pub fn input_answers(&self) -> &BTreeMap<String, ProvidedAnswer> {
        &self.interaction.input_answers
    }

    /// Whether the client answers input requests while the handler runs.
    pub fn supports_live_input(&self) -> bool {
        self.ancestors().any(|job| job.interaction.supports_live_input.load(Ordering::Acquire))
    }

    /// Whether the call continues as a task. Its request has been answered then, and only the list of jobs can end it.
    pub fn is_task(&self) -> bool {
        self.interaction.task_started.is_cancelled()
    }

    /// The time without output after which the call becomes a task, if the client supports tasks.
    pub fn task_after(&self) -> Duration {
        self.interaction.task_after
    }

    /// Resolves when the handler requests that the call continues as a task.
    pub async fn task_requested(&self) {
        self.interaction.task_requested.cancelled().await;
    }

    /// Continues the call as a task, with the time limit of tasks. Input requests wait for their answers from then on.
    pub fn continue_as_task(&self) {
        self.interaction.supports_live_input.store(true, Ordering::Release);
        self.interaction.task_started.cancel();
        self.extend(self.interaction.task_timeout);
    }

    /// Extends the time limit when the call on whose behalf this one is made becomes a task. Never resolves.
    pub(crate) async fn watch_parent_task(&self) {
        if let Some(job) = self.ancestors().last().filter(|job| !std::ptr::eq(*job, self)) {
            job.interaction.task_started.cancelled().await;
            self.extend(self.interaction.task_timeout);
        }
        std::future::pending::<()>().await;
    }

    /// Requests that the call continues as a task. Returns whether the client supports tasks. If it does, input requests
    /// wait for their answers from then on, and the time limit is that of tasks.
    pub fn request_task(&self) -> bool {
        if !self.interaction.client_capabilities.tasks {
            return false;
        }
        for job in self.ancestors() {
            job.interaction.supports_live_input.store(true, Ordering::Release);
            job.interaction.task_requested.cancel();
        }
        true
    }

    pub(crate) fn provided_answer(&self, key: &str) -> Option<ProvidedAnswer> {
        self.interaction.input_answers.get(key).cloned()
    }

    pub(crate) fn require_capabilities(&self, needed: ClientCapabilities) -> Result<(), Error> {
        if self.client_capabilities().includes(needed) { Ok(()) } else { Err(Error::missing_client_capability(needed)) }
    }

    /// Waits for a run permit and holds it until the job has ended or waits for input.
    pub(crate) async fn acquire_permits(&self, permit_queues: &PermitQueues) -> Result<(), Error> {
        let permits = permit_queues.acquire().await?;
        let _ = self.interaction.permit_queues.set(permit_queues.clone());
        *self.interaction.held_permits.lock() = Some(permits);
        Ok(())
    }

    pub(crate) fn release_permits(&self) {
        self.interaction.held_permits.lock().take();
    }

    /// This job, then the one on whose behalf it is made, and so on.
    pub(crate) fn ancestors(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |job| job.interaction.on_behalf_of.as_deref())
    }

    /// Releases the run permits until the input arrives. A call on behalf of another one uses that call's permits.
    pub(crate) fn pause_for_input(&self) -> InputPause<'_> {
        for job in self.ancestors() {
            job.timer.pause(self.interaction.input_timeout);
            job.release_permits();
        }
        InputPause(self)
    }

    /// Waits for a run permit again, unless the job needs none or holds one.
    async fn reacquire_permits(&self) -> Result<(), Error> {
        let Some(permit_queues) = self.interaction.permit_queues.get() else { return Ok(()) };
        // If several input requests end at the same time, one of them acquires the permit for all.
        let _turn = self.interaction.reacquire_lock.lock().await;
        if self.interaction.held_permits.lock().is_some() {
            return Ok(());
        }
        self.acquire_permits(permit_queues).await
    }
}

/// A call that waits for input. Dropping this resumes its timer.
pub(crate) struct InputPause<'a>(&'a Job);

impl InputPause<'_> {
    pub(crate) async fn end(self) -> Result<(), Error> {
        let caller = self.0;
        drop(self);
        for job in caller.ancestors() {
            tokio::select! {
                biased;
                () = caller.cancelled() => return Err(Error::new(ErrorKind::Cancelled, "the call was cancelled")),
                reacquired = job.reacquire_permits() => reacquired?,
            }
        }
        Ok(())
    }
}

impl Drop for InputPause<'_> {
    fn drop(&mut self) {
        for job in self.0.ancestors() {
            job.timer.resume();
        }
    }
}
