//! Input requests of handlers. If the client can answer while the call runs, the handler waits. Otherwise the call ends
//! with its requests, and the handler runs again with the answers.
//!
//! Because of the second way, a handler requests input before it does anything that must not be done twice.

use tidegate_core::{ClientCapabilities, Error, ErrorKind, InputAnswer, InputAnswers, InputRequest, ProvidedAnswer};
use tokio::sync::oneshot;

use super::{PendingInputRequest, ReplyPart, RunningCall, cancelled_error};
use crate::job::Call;

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
                () = self.job().cancelled() => return Err(cancelled_error()),
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
