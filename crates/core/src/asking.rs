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
use crate::input::{Abilities, GivenAnswer, InputAnswer, InputAnswers, InputRequest};
use crate::job::Job;
use crate::limits::{HeldPlaces, Limits, Places};
use crate::reply::{ReplySender, Said};

/// Things that one call may ask for at once.
const REQUESTS_MAX: usize = 20;

/// A question that waits for its answer. Dropping it tells the handler that there will be none.
#[derive(Debug)]
pub struct Asked {
    /// Names it among the questions of its call.
    pub key: String,
    /// What is wanted.
    pub request: InputRequest,
    /// Where the answer goes.
    pub answer: oneshot::Sender<InputAnswer>,
}

/// A question whose answer is waited for, under its key.
type Waiting = (String, InputRequest, oneshot::Receiver<InputAnswer>);

impl ReplySender {
    /// Asks the person or the client behind the call, and gives an answer for each key. An answer counts for the very
    /// question that it was given to: what is asked must be the same when the handler is run again.
    ///
    /// # Errors
    /// `Incapable` when the client cannot answer one of `requests`; `InputRequired` when the handler is to be run again with
    /// the answers: hand it on with `?`. `Cancelled`, `TimedOut` and `InvalidArguments` where the answer was waited for.
    pub async fn ask(&self, requests: impl IntoIterator<Item = (&str, InputRequest)>) -> Result<InputAnswers, Error> {
        let requests: Vec<(String, InputRequest)> =
            requests.into_iter().map(|(key, request)| (key.to_owned(), request)).collect();
        if requests.len() > REQUESTS_MAX {
            return Err(Error::internal(format!("a handler asks for more than {REQUESTS_MAX} things at once")));
        }
        let needed = requests.iter().fold(Abilities::default(), |needed, (_, request)| needed.or(request.needs()));
        self.job().must_be_able(needed)?;
        let mut answers = InputAnswers::new();
        let mut missing = Vec::new();
        for (key, request) in requests {
            match self.job().given(&key).map(|given| usable(&request, given)) {
                Some(Ok(answer)) => drop(answers.insert(key, answer)),
                Some(Err(wrong)) => missing.push((key, request.again(wrong))),
                None => missing.push((key, request)),
            }
        }
        if missing.is_empty() {
            return Ok(answers);
        }
        if !self.job().is_asked_live() {
            return Err(Error::input_required(missing));
        }
        answers.extend(self.ask_live(missing).await?);
        Ok(answers)
    }

    /// Asks one thing.
    ///
    /// # Errors
    /// As [`ReplySender::ask`].
    pub async fn ask_for(&self, key: &str, request: InputRequest) -> Result<InputAnswer, Error> {
        let answer = self.ask([(key, request)]).await?.remove(key);
        answer.ok_or_else(|| Error::internal("a question was left without an answer"))
    }

    /// Lets the call go on as a task, if its client can come back for the result: whether it does. From then on its questions
    /// are waited for, and its time limit is that of tasks.
    pub fn become_task(&self) -> bool {
        self.job().become_task()
    }

    /// Hands on a question of a call that is made on behalf of this one.
    ///
    /// # Errors
    /// `Cancelled` when nobody listens any more.
    pub async fn hand_on(&self, asked: Asked) -> Result<(), Error> {
        self.say(Said::Asked(asked)).await
    }

    /// Waits for answers, without a place among the running calls, and without using up the call's time.
    async fn ask_live(&self, requests: Vec<(String, InputRequest)>) -> Result<InputAnswers, Error> {
        let mut waiting = Vec::with_capacity(requests.len());
        for (key, request) in requests {
            let (answer, answered) = oneshot::channel();
            let asked = Asked { key: key.clone(), request: request.clone(), answer };
            self.say(Said::Asked(asked)).await?;
            waiting.push((key, request, answered));
        }
        let pause = self.job().pause();
        let answers = self.answers_to(waiting).await;
        // Also when there are none: whoever goes on without them needs a place.
        pause.end().await?;
        answers
    }

    async fn answers_to(&self, waiting: Vec<Waiting>) -> Result<InputAnswers, Error> {
        let mut answers = InputAnswers::new();
        for (key, request, answered) in waiting {
            let answer = tokio::select! {
                biased;
                () = self.job().cancelled() => return Err(Error::new(ErrorKind::Cancelled, "the call was cancelled")),
                answer = answered => answer.map_err(|_| unanswered(&key))?,
            };
            request.check(&answer).map_err(|wrong| misfit(&key, &wrong))?;
            answers.insert(key, answer);
        }
        Ok(answers)
    }
}

/// The answer, if it counts.
fn usable(request: &InputRequest, given: GivenAnswer) -> Result<InputAnswer, String> {
    match &given.asked {
        None if !request.may_come_unasked => return Err("it came before it was asked for".to_owned()),
        Some(mark) if *mark != request.mark() => return Err("it was given to another question".to_owned()),
        _ => {}
    }
    request.check(&given.answer).map(|()| given.answer)
}

fn unanswered(key: &str) -> Error {
    let message = format!("the client was asked for {key:?} and gave no answer");
    Error::new(ErrorKind::Unavailable, message)
}

fn misfit(key: &str, wrong: &str) -> Error {
    Error::new(ErrorKind::InvalidArguments, format!("the answer to {key:?} does not fit: {wrong}"))
}

/// What a job knows of the ways to ask.
#[derive(Debug)]
pub(crate) struct AskingState {
    abilities: Abilities,
    answers: BTreeMap<String, GivenAnswer>,
    is_live: AtomicBool,
    /// The call on whose behalf this one is made.
    on_behalf_of: Option<Arc<Job>>,
    /// Fires when the handler lets its call go on as a task.
    wants_to_be_task: CancellationToken,
    /// Fires when the call goes on as a task.
    is_task: CancellationToken,
    answer_within: Duration,
    task_after: Duration,
    /// How long it may go on as a task at least; an entry with a time limit of its own keeps that.
    task_timeout: Duration,
    places: OnceLock<Places>,
    place: Mutex<Option<HeldPlaces>>,
    regaining: tokio::sync::Mutex<()>,
}

impl AskingState {
    pub(crate) fn new(call: &Call, limits: &Limits) -> Self {
        Self {
            abilities: call.abilities,
            answers: call.answers.clone(),
            is_live: AtomicBool::new(call.is_asked_live),
            on_behalf_of: call.on_behalf_of.clone(),
            wants_to_be_task: CancellationToken::new(),
            is_task: CancellationToken::new(),
            answer_within: limits.answer_within,
            task_after: limits.task_after,
            task_timeout: limits.task_timeout,
            places: OnceLock::new(),
            place: Mutex::default(),
            regaining: tokio::sync::Mutex::default(),
        }
    }
}

impl Job {
    /// What the client behind the call can do.
    pub fn abilities(&self) -> Abilities {
        self.asking.abilities
    }

    /// The answers that came with the call, to hand on to a call that is made on behalf of this one.
    pub fn answers(&self) -> &BTreeMap<String, GivenAnswer> {
        &self.asking.answers
    }

    /// Whether somebody waits for the handler's questions while it runs.
    pub fn is_asked_live(&self) -> bool {
        self.chain().any(|job| job.asking.is_live.load(Ordering::Acquire))
    }

    /// Whether the call goes on as a task: its request is answered, and only the list of jobs ends it.
    pub fn is_task(&self) -> bool {
        self.asking.is_task.is_cancelled()
    }

    /// After how long without a word the call becomes a task, if its client can come back for it.
    pub fn task_after(&self) -> Duration {
        self.asking.task_after
    }

    /// Resolves when the handler lets its call go on as a task.
    pub async fn wants_to_be_task(&self) {
        self.asking.wants_to_be_task.cancelled().await;
    }

    /// Says that the call goes on as a task from now on, for as long as tasks may. Its questions are waited for.
    pub fn go_on_as_task(&self) {
        self.asking.is_live.store(true, Ordering::Release);
        self.asking.is_task.cancel();
        self.extend(self.asking.task_timeout);
    }

    /// Takes the time of a task when the call becomes one on whose behalf this one is made; never resolves.
    pub(crate) async fn follow(&self) {
        if let Some(job) = self.chain().last().filter(|job| !std::ptr::eq(*job, self)) {
            job.asking.is_task.cancelled().await;
            self.extend(self.asking.task_timeout);
        }
        std::future::pending::<()>().await;
    }

    pub(crate) fn become_task(&self) -> bool {
        if !self.asking.abilities.tasks {
            return false;
        }
        for job in self.chain() {
            job.asking.is_live.store(true, Ordering::Release);
            job.asking.wants_to_be_task.cancel();
        }
        true
    }

    fn given(&self, key: &str) -> Option<GivenAnswer> {
        self.asking.answers.get(key).cloned()
    }

    /// # Errors
    /// `Incapable` with what the client lacks.
    fn must_be_able(&self, needed: Abilities) -> Result<(), Error> {
        if self.abilities().include(needed) { Ok(()) } else { Err(Error::incapable(needed)) }
    }

    /// Waits for a place among the running calls and keeps it until the job has ended or asks somebody.
    pub(crate) async fn take_place(&self, places: &Places) -> Result<(), Error> {
        let place = places.take().await?;
        let _ = self.asking.places.set(places.clone());
        *self.asking.place.lock() = Some(place);
        Ok(())
    }

    pub(crate) fn leave_place(&self) {
        self.asking.place.lock().take();
    }

    /// This job, the one on whose behalf it is made, and so on.
    pub(crate) fn chain(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |job| job.asking.on_behalf_of.as_deref())
    }

    /// Stops the clock and gives the place away, for as long as somebody may take to answer: a call on behalf of another
    /// uses the other one's place and time.
    fn pause(&self) -> Pause<'_> {
        for job in self.chain() {
            job.clock.pause(self.asking.answer_within);
            job.leave_place();
        }
        Pause(self)
    }

    /// Waits for a place again, unless it had none or has one.
    async fn regain_place(&self) -> Result<(), Error> {
        let Some(places) = self.asking.places.get() else { return Ok(()) };
        // Of questions that were asked side by side, one takes the place for all.
        let _turn = self.asking.regaining.lock().await;
        if self.asking.place.lock().is_some() {
            return Ok(());
        }
        self.take_place(places).await
    }
}

/// A call that waits for somebody. Its clock goes on when this is dropped.
struct Pause<'a>(&'a Job);

impl Pause<'_> {
    /// Lets the clock go on, and waits for a place again.
    async fn end(self) -> Result<(), Error> {
        let asker = self.0;
        drop(self);
        for job in asker.chain() {
            tokio::select! {
                biased;
                () = asker.cancelled() => return Err(Error::new(ErrorKind::Cancelled, "the call was cancelled")),
                regained = job.regain_place() => regained?,
            }
        }
        Ok(())
    }
}

impl Drop for Pause<'_> {
    fn drop(&mut self) {
        for job in self.0.chain() {
            job.clock.resume();
        }
    }
}
