//! Multi round-trip requests: a call that needs input ends with its input requests, and the client sends it again with
//! the answers.
//!
//! The server stores nothing between the rounds: earlier answers are in the signed `requestState`.
//!
//! [MCP 2026-07-28, Multi Round-Trip Requests](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr)

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tidegate_core::{Caller, Error, ProvidedAnswer};
use tidegate_runtime::AnswerMeta;

use crate::encode::{ResponseEnvelope, ResultType};
use crate::jsonrpc::RpcError;
use crate::messages::{encode_input_requests, parse_input_answer};
use crate::request::InFlightRequest;
use crate::request_state::{InputRoundState, ReceivedAnswer, RequestStateStore, request_fingerprint};

const ANSWERS_MAX: usize = 100;

#[derive(Deserialize)]
struct InputParams {
    #[serde(rename = "inputResponses", default)]
    responses: Option<Map<String, Value>>,
    #[serde(rename = "requestState", default)]
    state: Option<String>,
}

/// One round of a request: the answers received so far, and the data for the next round.
pub(crate) struct InputRound {
    states: Arc<RequestStateStore>,
    caller: Caller,
    method: &'static str,
    received_answers: BTreeMap<String, ReceivedAnswer>,
}

impl InputRound {
    /// Reads the answers of `request` to earlier rounds; `target` is the entry that it calls.
    pub(crate) fn read(
        states: &Arc<RequestStateStore>,
        request: &InFlightRequest<'_>,
        method: &'static str,
        target: &str,
        arguments: &Map<String, Value>,
    ) -> Result<Self, RpcError> {
        let caller = request.caller();
        let mut params = InputParams { responses: None, state: None };
        // Most requests contain neither, and need not be parsed again.
        if request.rpc.may_contain_member("inputResponses") || request.rpc.may_contain_member("requestState") {
            params = request.rpc.params()?;
        }
        let state = match &params.state {
            Some(state) => Some(states.verify(state, &request_fingerprint(method, target, arguments), caller)?),
            None => None,
        };
        let requested = state.as_ref().map(|state| &state.round.requested);
        let received = read_answers(params.responses.unwrap_or_default(), requested)?;
        // Only after the answers were read, so that a client with an invalid answer can send another one.
        let mut answers = match state {
            Some(state) => states.consume(state)?.answers,
            None => BTreeMap::new(),
        };
        for (key, received_answer) in received {
            // An answer to a request is never replaced by an unrequested one.
            if received_answer.requested.is_some()
                || answers.get(&key).is_none_or(|earlier| earlier.requested.is_none())
            {
                answers.insert(key, received_answer);
            }
        }
        Ok(Self { states: states.clone(), caller: caller.clone(), method, received_answers: answers })
    }

    pub(crate) fn provided_answers(&self) -> BTreeMap<String, ProvidedAnswer> {
        let provided = self.received_answers.iter().filter_map(|(key, received_answer)| {
            let value = parse_input_answer(&received_answer.result).ok()?;
            Some((key.clone(), ProvidedAnswer { value, request_fingerprint: received_answer.requested.clone() }))
        });
        provided.collect()
    }

    pub(crate) fn encode_input_required(
        self,
        envelope: ResponseEnvelope,
        expected: &Error,
        target: &str,
        arguments: &Map<String, Value>,
    ) -> Result<Bytes, RpcError> {
        let requests = expected.input_requests().iter().map(|(key, request)| (key.as_str(), request));
        let requested = requests.clone().map(|(key, request)| (key.to_owned(), request.fingerprint())).collect();
        let round = InputRoundState { requested, answers: self.received_answers };
        let state = self.states.issue(round, request_fingerprint(self.method, target, arguments), &self.caller)?;
        let members =
            format!("\"inputRequests\":{},\"requestState\":{}", encode_input_requests(requests), json!(state));
        Ok(envelope.with_result_type(ResultType::InputRequired).encode_response(&members, &AnswerMeta::default(), None))
    }
}

/// Reads the answers of one request. `requested` contains the fingerprints of the input requests, by key.
fn read_answers(
    responses: Map<String, Value>,
    requested: Option<&BTreeMap<String, String>>,
) -> Result<BTreeMap<String, ReceivedAnswer>, RpcError> {
    if responses.len() > ANSWERS_MAX {
        return Err(RpcError::invalid_params(format!("inputResponses holds more than {ANSWERS_MAX} answers")));
    }
    let mut answers = BTreeMap::new();
    for (key, result) in responses {
        let requested = requested.and_then(|requested| requested.get(&key)).cloned();
        match parse_input_answer(&result) {
            Ok(_) => drop(answers.insert(key, ReceivedAnswer { result, requested })),
            Err(problem) if requested.is_some() => {
                return Err(RpcError::invalid_params(format!("inputResponses[{key:?}] is wrong: {problem}")));
            }
            // Invalid answers that were not requested are ignored.
            Err(_) => {}
        }
    }
    Ok(answers)
}
