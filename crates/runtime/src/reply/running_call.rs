//! A call while it runs, as its handler sees it: its progress, of which only a few notifications are sent per second,
//! and its requests for input.
//!
//! If the client can answer while the call runs, the handler waits. Otherwise the call ends with its requests, and the
//! handler runs again with the answers. Because of the second way, a handler requests input before it does anything
//! that must not be done twice.

use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use tidegate_core::{
    ClientCapabilities, Error, ErrorKind, InputAnswer, InputAnswers, InputRequest, LogLevel, ProvidedAnswer,
};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::{PendingInputRequest, ReplyNotification, ReplyPart};
use crate::job::{Call, Job};

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
            () = self.job.cancelled() => Err(Error::cancelled()),
            reserved = self.sender.reserve() => reserved.map_err(|_| Error::cancelled()),
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

const INPUT_REQUESTS_MAX: usize = 20;

/// A request that waits for its answer, with its key.
type AwaitedAnswer = (String, InputRequest, oneshot::Receiver<InputAnswer>);

impl RunningCall {
    /// Requests input from the person or the client behind the call and returns an answer for each key. An answer
    /// counts only for the request that it was given to, so a handler that runs again must send the same requests.
    ///
    /// # Errors
    /// `MissingClientCapability` if the client cannot answer one of `requests`. `InputRequired` if the handler will run
    /// again with the answers: return it with `?`. `Cancelled`, `TimedOut` and `InvalidArguments` while it waits for
    /// answers.
    pub async fn ask_all(
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
        let Call { client_capabilities, input_answers, .. } = self.job().request();
        if !client_capabilities.includes(needed) {
            return Err(Error::missing_client_capability(needed));
        }
        let mut answers = InputAnswers::new();
        let mut missing = Vec::new();
        for (key, request) in requests {
            match input_answers.get(&key).map(|answer| validate_answer(&request, answer)) {
                Some(Ok(answer)) => drop(answers.insert(key, answer)),
                Some(Err(error)) => missing.push((key, request.with_previous_error(error))),
                None => missing.push((key, request)),
            }
        }
        if missing.is_empty() {
            return Ok(answers);
        }
        if !self.job().supports_live_input() {
            return Err(Error::input_required(missing));
        }
        answers.extend(self.ask_live(missing).await?);
        Ok(answers)
    }

    /// Requests one input.
    ///
    /// # Errors
    /// As [`RunningCall::ask_all`].
    pub async fn ask(&self, key: &str, request: InputRequest) -> Result<InputAnswer, Error> {
        let answer = self.ask_all([(key, request)]).await?.remove(key);
        answer.ok_or_else(|| Error::internal("an input request has no answer"))
    }

    /// Waits for answers. The call holds no run permit meanwhile, and its timer is paused.
    async fn ask_live(&self, requests: Vec<(String, InputRequest)>) -> Result<InputAnswers, Error> {
        let mut waiting = Vec::with_capacity(requests.len());
        for (key, request) in requests {
            let (answer, answered) = oneshot::channel();
            let pending = PendingInputRequest { key: key.clone(), request: request.clone(), answer_sender: answer };
            self.send(ReplyPart::InputRequest(pending)).await?;
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
                () = self.job().cancelled() => return Err(Error::cancelled()),
                answer = answered => answer.map_err(|_| no_answer_error(&key))?,
            };
            request.check(&answer).map_err(|reason| invalid_answer_error(&key, &reason))?;
            answers.insert(key, answer);
        }
        Ok(answers)
    }
}

fn validate_answer(request: &InputRequest, answer: &ProvidedAnswer) -> Result<InputAnswer, String> {
    match &answer.request_fingerprint {
        None if !request.accepts_unsolicited => return Err("it was sent before it was requested".to_owned()),
        Some(fingerprint) if *fingerprint != request.fingerprint() => {
            return Err("it answers a different request".to_owned());
        }
        _ => {}
    }
    request.check(&answer.value).map(|()| answer.value.clone())
}

fn no_answer_error(key: &str) -> Error {
    let message = format!("the client did not answer the input request {key:?}");
    Error::new(ErrorKind::Unavailable, message)
}

fn invalid_answer_error(key: &str, reason: &str) -> Error {
    Error::new(ErrorKind::InvalidArguments, format!("invalid answer to {key:?}: {reason}"))
}

const SENT_MAX: usize = 4;
const WINDOW: Duration = Duration::from_secs(1);

/// Notifications that come too soon are dropped, not queued, because a later value replaces them.
#[derive(Debug, Default)]
struct ProgressThrottle {
    /// The times of the last notifications, oldest first; at most [`SENT_MAX`].
    sent_at: VecDeque<Instant>,
    last_progress: Option<f64>,
}

impl ProgressThrottle {
    /// Whether a notification is sent now: the value rises, and the window has room. If so, it counts as sent.
    fn admits(&mut self, done: f64) -> bool {
        if self.last_progress.is_some_and(|before| done <= before) {
            return false;
        }
        let now = Instant::now();
        if self.sent_at.len() >= SENT_MAX {
            if self.sent_at.front().is_some_and(|oldest| now.duration_since(*oldest) < WINDOW) {
                return false;
            }
            self.sent_at.pop_front();
        }
        self.sent_at.push_back(now);
        self.last_progress = Some(done);
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn admits_rising_values_four_times_a_second() {
        let mut throttle = ProgressThrottle::default();
        assert!(throttle.admits(0.0), "the first value is always sent");
        assert!(!throttle.admits(0.0) && !throttle.admits(-1.0));
        assert!(throttle.admits(0.5) && throttle.admits(1.0) && throttle.admits(2.0));
        assert!(!throttle.admits(3.0), "the fifth within one second");
        tokio::time::advance(Duration::from_millis(999)).await;
        assert!(!throttle.admits(4.0));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(throttle.admits(3.0), "a dropped value does not count as sent");
        assert!(throttle.admits(5.0));
    }

    proptest! {
        #[test]
        fn never_admits_more_than_four_a_second(steps in prop::collection::vec((0u64..700, -3i32..10), 1..80)) {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
            let sent = runtime.block_on(async {
                let (mut throttle, mut done, mut sent) = (ProgressThrottle::default(), 0.0, Vec::new());
                for (wait_ms, step) in steps {
                    tokio::time::advance(Duration::from_millis(wait_ms)).await;
                    done += f64::from(step);
                    if throttle.admits(done) {
                        sent.push((Instant::now(), done));
                    }
                }
                sent
            });
            prop_assert!(sent.windows(2).all(|pair| pair[0].1 < pair[1].1));
            prop_assert!(sent.windows(SENT_MAX + 1).all(|five| five[SENT_MAX].0 - five[0].0 >= WINDOW));
        }
    }
}
