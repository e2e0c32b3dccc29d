//! How a handler asks: at once where somebody waits for its questions, else by ending and being run again with the answers.
//!
//! The second way is why a handler asks before it does anything that may not be done twice.

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

/// Things that one call may ask for at once.
const INPUT_REQUESTS_MAX: usize = 20;

/// A question that waits for its answer. Dropping it tells the handler that there will be none.
#[derive(Debug)]
pub struct PendingInputRequest {
    /// Names it among the questions of its call.
    pub key: String,
    /// What is wanted.
    pub request: InputRequest,
    /// Where the answer goes.
    pub answer_sender: oneshot::Sender<InputAnswer>,
}

/// A question whose answer is waited for, under its key.
type AwaitedAnswer = (String, InputRequest, oneshot::Receiver<InputAnswer>);

impl ReplySender {
    /// Asks the person or the client behind the call, and gives an answer for each key. An answer counts for the very
    /// question that it was given to: what is asked must be the same when the handler is run again.
    ///
    /// # Errors
    /// `MissingClientCapability` when the client cannot answer one of `requests`; `InputRequired` when the handler is to be run again with
    /// the answers: hand it on with `?`. `CancelJob`, `TimedOut` and `InvalidArguments` where the answer was waited for.
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

    /// Asks one thing.
    ///
    /// # Errors
    /// As [`ReplySender::request_inputs`].
    pub async fn request_input(&self, key: &str, request: InputRequest) -> Result<InputAnswer, Error> {
        let answer = self.request_inputs([(key, request)]).await?.remove(key);
        answer.ok_or_else(|| Error::internal("an input request has no answer"))
    }

    /// Lets the call go on as a task, if its client can come back for the result: whether it does. From then on its questions
    /// are waited for, and its time limit is that of tasks.
    pub fn request_task(&self) -> bool {
        self.job().request_task()
    }

    /// Hands on a question of a call that is made on behalf of this one.
    ///
    /// # Errors
    /// `CancelJob` when nobody listens any more.
    pub async fn forward_input_request(&self, pending_input_request: PendingInputRequest) -> Result<(), Error> {
        self.push(ReplyMessage::InputRequest(pending_input_request)).await
    }

    /// Waits for answers, without a place among the running calls, and without using up the call's time.
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
        // Also when there are none: whoever goes on without them needs a place.
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

/// The answer, if it counts.
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

/// What a job knows of the ways to ask.
#[derive(Debug)]
pub(crate) struct InteractionState {
    client_capabilities: ClientCapabilities,
    input_answers: BTreeMap<String, ProvidedAnswer>,
    supports_live_input: AtomicBool,
    /// The call on whose behalf this one is made.
    on_behalf_of: Option<Arc<Job>>,
    /// Fires when the handler lets its call go on as a task.
    task_requested: CancellationToken,
    /// Fires when the call goes on as a task.
    task_started: CancellationToken,
    input_timeout: Duration,
    task_after: Duration,
    /// How long it may go on as a task at least; an entry with a time limit of its own keeps that.
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
    /// What the client behind the call can do.
    pub fn client_capabilities(&self) -> ClientCapabilities {
        self.interaction.client_capabilities
    }

    /// The answers that came with the call, to hand on to a call that is made on behalf of this one.
    pub fn input_answers(&self) -> &BTreeMap<String, ProvidedAnswer> {
        &self.interaction.input_answers
    }

    /// Whether somebody waits for the handler's questions while it runs.
    pub fn supports_live_input(&self) -> bool {
        self.ancestors().any(|job| job.interaction.supports_live_input.load(Ordering::Acquire))
    }

    /// Whether the call goes on as a task: its request is answered, and only the list of jobs ends it.
    pub fn is_task(&self) -> bool {
        self.interaction.task_started.is_cancelled()
    }

    /// After how long without a word the call becomes a task, if its client can come back for it.
    pub fn task_after(&self) -> Duration {
        self.interaction.task_after
    }

    /// Resolves when the handler lets its call go on as a task.
    pub async fn task_requested(&self) {
        self.interaction.task_requested.cancelled().await;
    }

    /// Says that the call goes on as a task from now on, for as long as tasks may. Its questions are waited for.
    pub fn continue_as_task(&self) {
        self.interaction.supports_live_input.store(true, Ordering::Release);
        self.interaction.task_started.cancel();
        self.extend(self.interaction.task_timeout);
    }

    /// Takes the time of a task when the call becomes one on whose behalf this one is made; never resolves.
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
    /// `MissingClientCapability` with what the client lacks.
    fn require_capabilities(&self, needed: ClientCapabilities) -> Result<(), Error> {
        if self.client_capabilities().includes(needed) { Ok(()) } else { Err(Error::missing_client_capability(needed)) }
    }

    /// Waits for a place among the running calls and keeps it until the job has ended or asks somebody.
    pub(crate) async fn acquire_permits(&self, permit_queues: &PermitQueues) -> Result<(), Error> {
        let place = permit_queues.acquire().await?;
        let _ = self.interaction.permit_queues.set(permit_queues.clone());
        *self.interaction.held_permits.lock() = Some(place);
        Ok(())
    }

    pub(crate) fn release_permits(&self) {
        self.interaction.held_permits.lock().take();
    }

    /// This job, the one on whose behalf it is made, and so on.
    pub(crate) fn ancestors(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |job| job.interaction.on_behalf_of.as_deref())
    }

    /// Stops the clock and gives the place away, for as long as somebody may take to answer: a call on behalf of another
    /// uses the other one's place and time.
    fn pause_for_input(&self) -> InputPause<'_> {
        for job in self.ancestors() {
            job.timer.pause(self.interaction.input_timeout);
            job.release_permits();
        }
        InputPause(self)
    }

    /// Waits for a place again, unless it had none or has one.
    async fn reacquire_permits(&self) -> Result<(), Error> {
        let Some(permit_queues) = self.interaction.permit_queues.get() else { return Ok(()) };
        // Of questions that were asked side by side, one takes the place for all.
        let _turn = self.interaction.reacquire_lock.lock().await;
        if self.interaction.held_permits.lock().is_some() {
            return Ok(());
        }
        self.acquire_permits(permit_queues).await
    }
}

/// A call that waits for somebody. Its clock goes on when this is dropped.
struct InputPause<'a>(&'a Job);

impl InputPause<'_> {
    /// Lets the clock go on, and waits for a place again.
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
