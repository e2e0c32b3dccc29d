//! How a job waits for input, and its continuation as a task. Both apply to the jobs on whose behalf it is made, too.

use tidegate_core::{Error, ErrorKind};

use super::Job;

impl Job {
    /// Whether the client answers input requests while the handler runs.
    pub fn supports_live_input(&self) -> bool {
        // A task waits for its answers, whatever the request of the call supports.
        self.ancestors().any(|Self { request, lifetime, .. }| {
            let is_task = || lifetime.task_requested.is_cancelled() || lifetime.task_started.is_cancelled();
            request.supports_live_input || is_task()
        })
    }

    /// Resolves when the handler requests that the call continues as a task.
    pub async fn task_requested(&self) {
        self.lifetime.task_requested.cancelled().await;
    }

    /// Continues the call as a task, with the time limit of tasks. Input requests wait for their answers from then on.
    pub fn continue_as_task(&self) {
        self.lifetime.task_started.cancel();
        self.extend(self.limits().task_timeout);
    }

    /// Requests that the call continues as a task. Returns whether the client supports tasks. If it does, input requests
    /// wait for their answers from then on, and the time limit is that of tasks.
    pub fn request_task(&self) -> bool {
        let is_supported = self.request.client_capabilities.tasks;
        if is_supported {
            self.ancestors().for_each(|job| job.lifetime.task_requested.cancel());
        }
        is_supported
    }

    /// This job, then the one on whose behalf it is made, and so on.
    pub(super) fn ancestors(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |job| job.request.on_behalf_of.as_deref())
    }

    /// Releases the run permits until the input arrives. A call on behalf of another one uses that call's permits.
    pub(crate) fn pause_for_input(&self) -> InputPause<'_> {
        for job in self.ancestors() {
            job.timer.pause(self.limits().input_timeout);
            job.permits.release();
        }
        InputPause(self)
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
                reacquired = job.permits.acquire() => reacquired?,
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
