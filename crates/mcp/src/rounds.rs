//! Multi round-trip requests: a call that must ask ends with its questions, and comes again with the answers.
//!
//! Nothing is kept here between the rounds: what earlier ones gave travels in the signed `requestState`.
//!
//! [MCP 2026-07-28, Multi Round-Trip Requests](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr)

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tidegate_core::{Caller, Error, GivenAnswer, Metadata};

use crate::encode::{Envelope, ResultType};
use crate::jsonrpc::{Request, RpcError};
use crate::request_state::{RequestStates, Round, Told, named};
use crate::wire::{input_answer, input_requests};

/// Answers that one request may bring.
const ANSWERS_MAX: usize = 100;

/// What a request brings beside its arguments when it comes again.
#[derive(Deserialize)]
struct InputParams {
    #[serde(rename = "inputResponses", default)]
    responses: Option<Map<String, Value>>,
    #[serde(rename = "requestState", default)]
    state: Option<String>,
}

/// One round of a request: what it was told so far, and how the next one is asked for.
pub(crate) struct ThisRound {
    states: Arc<RequestStates>,
    caller: Caller,
    method: &'static str,
    answers: BTreeMap<String, Told>,
}

impl ThisRound {
    /// What `request`, aimed at `target`, brings of earlier rounds.
    ///
    /// # Errors
    /// `-32602` for a state that does not hold, and for an answer that is none.
    pub(crate) fn read(
        states: &Arc<RequestStates>,
        caller: &Caller,
        request: &Request,
        method: &'static str,
        target: &str,
        arguments: &Map<String, Value>,
    ) -> Result<Self, RpcError> {
        let mut params = InputParams { responses: None, state: None };
        // Most requests bring neither, and need not be read again for it.
        if request.mentions("inputResponses") || request.mentions("requestState") {
            params = request.params()?;
        }
        let mut answers = BTreeMap::new();
        let mut asked = None;
        if let Some(state) = &params.state {
            let round = states.open(state, &named(method, target, arguments), caller)?;
            answers = round.answers;
            asked = Some(round.asked);
        }
        let responses = params.responses.unwrap_or_default();
        if responses.len() > ANSWERS_MAX {
            return Err(RpcError::invalid_params(format!("inputResponses holds more than {ANSWERS_MAX} answers")));
        }
        for (key, result) in responses {
            let was_asked = asked.as_ref().is_some_and(|asked| asked.contains(&key));
            match input_answer(&result) {
                Ok(_) => drop(answers.insert(key, Told { result, was_asked })),
                Err(wrong) if was_asked => {
                    return Err(RpcError::invalid_params(format!("inputResponses[{key:?}] is wrong: {wrong}")));
                }
                // What was not asked for is passed over.
                Err(_) => {}
            }
        }
        Ok(Self { states: states.clone(), caller: caller.clone(), method, answers })
    }

    /// The answers that it brings.
    pub(crate) fn given(&self) -> BTreeMap<String, GivenAnswer> {
        let given = self.answers.iter().filter_map(|(key, told)| {
            let answer = input_answer(&told.result).ok()?;
            Some((key.clone(), GivenAnswer { answer, was_asked: told.was_asked }))
        });
        given.collect()
    }

    /// The whole response that asks what `wanted` says, for a call of `target` with `arguments`.
    ///
    /// # Errors
    /// When the answers of all rounds are too long to travel.
    pub(crate) fn ask(
        self,
        envelope: Envelope,
        wanted: &Error,
        target: &str,
        arguments: &Map<String, Value>,
    ) -> Result<Bytes, RpcError> {
        let requests = wanted.requests().iter().map(|(key, request)| (key.as_str(), request));
        let asked = requests.clone().map(|(key, _)| key.to_owned()).collect();
        let round = Round { asked, answers: self.answers };
        let state = self.states.seal(round, named(self.method, target, arguments), &self.caller)?;
        let members = format!("\"inputRequests\":{},\"requestState\":{}", input_requests(requests), json!(state));
        Ok(envelope.of_type(ResultType::InputRequired).whole(&members, &Metadata::new(), None))
    }
}
