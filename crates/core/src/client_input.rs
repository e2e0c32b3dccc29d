//! Input requests of handlers. If the client can answer while the call runs, the handler waits. Otherwise the call ends
//! with its requests, and the handler runs again with the answers.
//!
//! Because of the second way, a handler requests input before it does anything that must not be done twice.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::call::Call;
use crate::error::{Error, ErrorKind};
use crate::input::{ClientCapabilities, InputAnswer, InputAnswers, InputRequest, ProvidedAnswer};
use crate::job::Job;
use crate::limits::{Limits, PermitQueues, RunPermits};
use crate::reply::{ReplyMessage, ReplySender};

/// The maximum number of inputs that a call can request at once.
const INPUT_REQUESTS_MAX: usize = 20;

/// A pending input request. Dropping it reports to the handler that there is no answer.
#[derive(Debug)]
pub struct PendingInputRequest {
    /// The key of the request within its call.
    pub key: String,
    /// The requested input.
    pub request: InputRequest,
    /// The channel for the answer.
    pub answer_sender: oneshot::Sender<InputAnswer>,
}

/// A request that waits for its answer, with its key.
type AwaitedAnswer = (String, InputRequest, oneshot::Receiver<InputAnswer>);

impl ReplySender {
    /// Requests input from the person or the client behind the call and returns an answer for each key. An answer
    /// counts only for the request that it was given to, so a handler that runs again must send the same requests.
    ///
    /// # Errors
    /// `MissingClientCapability` if the client cannot answer one of `requests`. `InputRequired` if the handler will run
    /// again with the answers: return it with `?`. `Cancelled`, `TimedOut` and `InvalidArguments` while it waits for
    /// answers.
    pub async fn request_inputs(
        &self,
        requests: impl IntoIterator<Item = (&str, InputRequest)>,
    ) -> Result<InputAnswers, Error> {
        let requests: Vec<(String, InputRequest)> =
            requests.into_iter().map(|(key, request)| (key.to_owned(), request)).collect();
        if requests.len() > INPUT_REQUESTS_MAX {
            return Err(Error::internal(format!("a handler requested more than {INPUT_REQUESTS_MAX} inputs at once")));
        }
        let needed = requests
            .iter()
            .fold(ClientCapabilities::default(), |needed, (_, request)| needed.or(request.required_capabilities()));
        self.job().require_capabilities(needed)?;
        let mut answers = InputAnswers::new();
        let mut missing = Vec::new();
        for (key, request) in requests {
            match self.job().provided_answer(&key).map(|given| validate_answer(&request, given)) {
                Some(Ok(answer)) => drop(answers.insert(key, answer)),
                Some(Err(wrong)) => missing.push((key, request.with_previous_error(wrong))),
                None => missing.push((key, request)),
            }
        }
        if missing.is_empty() {
            return Ok(answers);
        }
        if !self.job().supports_live_input() {
            return Err(Error::input_required(missing));
        }
        answers.extend(self.request_inputs_live(missing).await?);
        Ok(answers)
    }

    /// Requests one input.
    ///
    /// # Errors
    /// As [`ReplySender::request_inputs`].
    pub async fn request_input(&self, key: &str, request: InputRequest) -> Result<InputAnswer, Error> {
        let answer = self.request_inputs([(key, request)]).await?.remove(key);
        answer.ok_or_else(|| Error::internal("an input request has no answer"))
    }

    /// Requests that the call continues as a task. Returns whether the client supports tasks. If it does, input
    /// requests wait for their answers from then on, and the time limit is that of tasks.
    pub fn request_task(&self) -> bool {
        self.job().request_task()
    }

    /// Forwards an input request of a call that is made on behalf of this one.
    ///
    /// # Errors
    /// `Cancelled` if nobody reads the reply any more.
    pub async fn forward_input_request(&self, pending_input_request: PendingInputRequest) -> Result<(), Error> {
        self.push(ReplyMessage::InputRequest(pending_input_request)).await
    }

    /// Waits for answers. The call holds no run permit meanwhile, and its timer is paused.
    async fn request_inputs_live(&self, requests: Vec<(String, InputRequest)>) -> Result<InputAnswers, Error> {
        let mut waiting = Vec::with_capacity(requests.len());
        for (key, request) in requests {
            let (answer, answered) = oneshot::channel();
            let pending_input_request =
                PendingInputRequest { key: key.clone(), request: request.clone(), answer_sender: answer };
            self.push(ReplyMessage::InputRequest(pending_input_request)).await?;
            waiting.push((key, request, answered));
        }
        let pause = self.job().pause_for_input();
        let answers = self.await_answers(waiting).await;
        // Also on failure: a handler that continues without the answers needs a permit.
        pause.end().await?;
        answers
    }

    async fn await_answers(&self, waiting: Vec<AwaitedAnswer>) -> Result<InputAnswers, Error> {
        let mut answers = InputAnswers::new();
        for (key, request, answered) in waiting {
            let answer = tokio::select! {
                biased;
                () = self.job().cancelled() => return Err(Error::new(ErrorKind::Cancelled, "the call was cancelled")),
                answer = answered => answer.map_err(|_| no_answer_error(&key))?,
            };
            request.check(&answer).map_err(|wrong| invalid_answer_error(&key, &wrong))?;
            answers.insert(key, answer);
        }
        Ok(answers)
    }
}

/// The answer, if it is valid.
fn validate_answer(request: &InputRequest, given: ProvidedAnswer) -> Result<InputAnswer, String> {
    match &given.request_fingerprint {
        None if !request.accepts_unsolicited => return Err("it was sent before it was requested".to_owned()),
        Some(mark) if *mark != request.fingerprint() => return Err("it answers a different request".to_owned()),
        _ => {}
    }
    request.check(&given.value).map(|()| given.value)
}

fn no_answer_error(key: &str) -> Error {
    let message = format!("the client did not answer the input request {key:?}");
    Error::new(ErrorKind::Unavailable, message)
}

fn invalid_answer_error(key: &str, wrong: &str) -> Error {
    Error::new(ErrorKind::InvalidArguments, format!("invalid answer to {key:?}: {wrong}"))
}

/// The state of a job's input requests.
#[derive(Debug)]
pub(crate) struct InteractionState {
    client_capabilities: ClientCapabilities,
    input_answers: BTreeMap<String, ProvidedAnswer>,
    supports_live_input: AtomicBool,
    /// The call on whose behalf this one is made.
    on_behalf_of: Option<Arc<Job>>,
    /// Fires when the handler requests that the call continues as a task.
    task_requested: CancellationToken,
    /// Fires when the call continues as a task.
    task_started: CancellationToken,
    input_timeout: Duration,
    task_after: Duration,
    /// The minimum run time as a task. An entry with a time limit of its own keeps that limit.
    task_timeout: Duration,
    permit_queues: OnceLock<PermitQueues>,
    held_permits: Mutex<Option<RunPermits>>,
    reacquire_lock: tokio::sync::Mutex<()>,
}

impl InteractionState {
    pub(crate) fn new(call: &Call, limits: &Limits) -> Self {
        Self {
            client_capabilities: call.client_capabilities,
            input_answers: call.input_answers.clone(),
            supports_live_input: AtomicBool::new(call.supports_live_input),
            on_behalf_of: call.on_behalf_of.clone(),
            task_requested: CancellationToken::new(),
            task_started: CancellationToken::new(),
            input_timeout: limits.input_timeout,
            task_after: limits.task_after,
            task_timeout: limits.task_timeout,
            permit_queues: OnceLock::new(),
            held_permits: Mutex::default(),
            reacquire_lock: tokio::sync::Mutex::default(),
        }
    }
}

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

    pub(crate) fn request_task(&self) -> bool {
        if !self.interaction.client_capabilities.tasks {
            return false;
        }
        for job in self.ancestors() {
            job.interaction.supports_live_input.store(true, Ordering::Release);
            job.interaction.task_requested.cancel();
        }
        true
    }

    fn provided_answer(&self, key: &str) -> Option<ProvidedAnswer> {
        self.interaction.input_answers.get(key).cloned()
    }

    /// # Errors
    /// `MissingClientCapability` with the missing capabilities.
    fn require_capabilities(&self, needed: ClientCapabilities) -> Result<(), Error> {
        if self.client_capabilities().includes(needed) { Ok(()) } else { Err(Error::missing_client_capability(needed)) }
    }

    /// Waits for a run permit and holds it until the job has ended or waits for input.
    pub(crate) async fn acquire_permits(&self, permit_queues: &PermitQueues) -> Result<(), Error> {
        let place = permit_queues.acquire().await?;
        let _ = self.interaction.permit_queues.set(permit_queues.clone());
        *self.interaction.held_permits.lock() = Some(place);
        Ok(())
    }

    pub(crate) fn release_permits(&self) {
        self.interaction.held_permits.lock().take();
    }

    /// This job, then the one on whose behalf it is made, and so on.
    pub(crate) fn ancestors(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |job| job.interaction.on_behalf_of.as_deref())
    }

    /// Pauses the timer and releases the run permits until the input arrives. A call on behalf of another one uses the
    /// permits and the time of that call.
    fn pause_for_input(&self) -> InputPause<'_> {
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
struct InputPause<'a>(&'a Job);

impl InputPause<'_> {
    /// Resumes the timer and waits for a run permit again.
    async fn end(self) -> Result<(), Error> {
        let caller = self.0;
        drop(self);
        for job in caller.ancestors() {
            tokio::select! {
                biased;
                () = caller.cancelled() => return Err(Error::new(ErrorKind::Cancelled, "the call was cancelled")),
                regained = job.reacquire_permits() => regained?,
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
