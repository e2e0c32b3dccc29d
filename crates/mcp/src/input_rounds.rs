//! Multi round-trip requests: a call that needs input ends with its input requests, and the client sends it again with
//! the answers.
//!
//! The server stores nothing between the rounds: earlier answers are in `requestState`, signed and stored by the client. The
//! client may be an attacker: a state is valid for one caller, one request, one use and ten minutes, and only this process
//! has the key.
//!
//! [MCP 2026-07-28, Multi Round-Trip Requests](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr),
//! [Server Requirements](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr#server-requirements-basic-workflow)

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tidegate_core::{
    Caller, CallerIdentity, Error, HmacSigner, LimitLevel, ProvidedAnswer, SIGNATURE_BYTES, ShareCounter,
};
use tidegate_runtime::AnswerMeta;
use tokio::time::Instant;
use uuid::Uuid;

use crate::encode::{ResponseEnvelope, ResultType};
use crate::jsonrpc::RpcError;
use crate::messages::{encode_input_requests, parse_input_answer};
use crate::service::InFlightRequest;

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

/// The time that a person has for an answer.
const LIFETIME: Duration = Duration::from_secs(10 * 60);
/// The maximum length of states in bytes; they contain the answers of all rounds.
const STATE_BYTES_MAX: usize = 256 * 1024;
/// Used states that have not expired: of one principal, and of all. Those of one tenant can have half of these.
const USED_PER_PRINCIPAL_MAX: usize = 2_000;
const USED_MAX: usize = 100_000;
const EXPIRY_INTERVAL_MS: u64 = 1_000;
const PURPOSE: &str = "request state";

#[derive(Debug)]
pub(crate) struct RequestStateStore {
    signer: HmacSigner,
    /// The start of the monotonic clock that measures expiry.
    started: Instant,
    used: Mutex<UsedStates>,
}

#[derive(Debug, Default)]
struct UsedStates {
    until_ms: HashMap<Uuid, (u64, CallerIdentity)>,
    shares: ShareCounter,
    /// The time of the next removal of expired states. Checking all states for each new one would be slow.
    next_expiry_ms: u64,
}

/// The state of one round: its input requests, and the answers of earlier rounds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct InputRoundState {
    pub(crate) requested: BTreeMap<String, String>,
    pub(crate) answers: BTreeMap<String, ReceivedAnswer>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ReceivedAnswer {
    pub(crate) result: Value,
    /// The fingerprint of the input request that it answers; `None` if it was not requested.
    pub(crate) requested: Option<String>,
}

/// A valid state that has not been used.
pub(crate) struct VerifiedState {
    pub(crate) round: InputRoundState,
    holder: CallerIdentity,
    expires_ms: u64,
    nonce: Uuid,
}

#[derive(Serialize, Deserialize)]
struct SignedState {
    round: InputRoundState,
    owner: String,
    request: String,
    expires_ms: u64,
    nonce: Uuid,
}

impl RequestStateStore {
    pub(crate) fn new() -> Self {
        Self { signer: HmacSigner::with_random_key(), started: Instant::now(), used: Mutex::default() }
    }

    fn issue(&self, round: InputRoundState, request: String, caller: &Caller) -> Result<String, RpcError> {
        let state = SignedState {
            round,
            owner: CallerIdentity::from_caller(caller).to_text(),
            request,
            expires_ms: self.now_ms() + LIFETIME.as_millis() as u64,
            nonce: Uuid::new_v4(),
        };
        // Serializing text, numbers and JSON cannot fail.
        let payload = serde_json::to_vec(&state).unwrap_or_default();
        if payload.len() > STATE_BYTES_MAX {
            return Err(RpcError::invalid_params(format!("the answers are longer than {STATE_BYTES_MAX} bytes")));
        }
        let signature = self.signer.sign(PURPOSE, &[&payload]);
        Ok(URL_SAFE_NO_PAD.encode([&signature[..], &payload].concat()))
    }

    /// The state in `text`, if this process signed it for `caller` and `request` and it has not expired; else `-32602`.
    fn verify(&self, text: &str, request: &str, caller: &Caller) -> Result<VerifiedState, RpcError> {
        // One error for everything that was never issued to this caller for this request, so that it learns nothing
        // about other states.
        let foreign =
            || RpcError::invalid_params("the requestState is not valid for this request; call again without it");
        let bytes = (text.len() <= STATE_BYTES_MAX * 2).then(|| URL_SAFE_NO_PAD.decode(text).ok()).flatten();
        let bytes = bytes.filter(|bytes| bytes.len() > SIGNATURE_BYTES).ok_or_else(foreign)?;
        let (signature, payload) = bytes.split_at(SIGNATURE_BYTES);
        if !self.signer.verify(PURPOSE, &[payload], signature) {
            return Err(foreign());
        }
        let SignedState { round, owner, request: of_request, expires_ms, nonce } =
            serde_json::from_slice(payload).map_err(|_| foreign())?;
        if owner != CallerIdentity::from_caller(caller).to_text() || of_request != request {
            return Err(foreign());
        }
        if expires_ms <= self.now_ms() {
            return Err(RpcError::invalid_params("the requestState has expired; call again without it"));
        }
        Ok(VerifiedState { round, holder: CallerIdentity::for_quota(caller), expires_ms, nonce })
    }

    /// Marks a state as used: `-32602` if it already was, `-31000` if too many states were used recently.
    pub(crate) fn consume(&self, state: VerifiedState) -> Result<InputRoundState, RpcError> {
        let VerifiedState { round, holder, expires_ms, nonce } = state;
        self.used.lock().add(nonce, expires_ms, holder, self.now_ms())?;
        Ok(round)
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl UsedStates {
    fn add(&mut self, nonce: Uuid, until_ms: u64, holder: CallerIdentity, now_ms: u64) -> Result<(), RpcError> {
        if self.until_ms.contains_key(&nonce) {
            return Err(RpcError::invalid_params("the requestState was used already; call again without it"));
        }
        self.acquire_share(&holder)
            .or_else(|_| {
                self.remove_expired(now_ms);
                self.acquire_share(&holder)
            })
            .map_err(used_limit_error)?;
        self.until_ms.insert(nonce, (until_ms, holder));
        Ok(())
    }

    fn acquire_share(&mut self, holder: &CallerIdentity) -> Result<(), LimitLevel> {
        self.shares.acquire(holder, USED_MAX, Some(USED_PER_PRINCIPAL_MAX))
    }

    /// Removes expired states; their expiry already makes them invalid.
    fn remove_expired(&mut self, now_ms: u64) {
        if now_ms < self.next_expiry_ms {
            return;
        }
        self.next_expiry_ms = now_ms + EXPIRY_INTERVAL_MS;
        for (_, (_, holder)) in self.until_ms.extract_if(|_, (until_ms, _)| *until_ms <= now_ms) {
            self.shares.release(&holder);
        }
    }
}

fn used_limit_error(level: LimitLevel) -> RpcError {
    let by_whom = match level {
        LimitLevel::Principal => " by you",
        LimitLevel::Tenant => " by your tenant",
        LimitLevel::Tool | LimitLevel::Node => "",
    };
    let message = format!("too many input requests were answered{by_whom} recently; try again in a few minutes");
    RpcError::new(RpcError::REFUSED, message)
}

/// Identifies a request by its target and its arguments, in any order of their members.
fn request_fingerprint(method: &str, target: &str, arguments: &Map<String, Value>) -> String {
    let mut arguments = Value::Object(arguments.clone());
    arguments.sort_all_objects();
    URL_SAFE_NO_PAD.encode(Sha256::digest(format!("{method}\n{target}\n{arguments}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(name: &str, tenant: &str) -> CallerIdentity {
        CallerIdentity {
            auth_method: "token".into(),
            subject: name.to_owned(),
            tenant: Some(tenant.to_owned()),
            address: None,
        }
    }

    #[test]
    fn limits_used_states_per_principal_and_tenant() {
        let (mut used, until_ms) = (UsedStates::default(), EXPIRY_INTERVAL_MS);
        let mut add = |holder: &CallerIdentity, now_ms| {
            used.add(Uuid::new_v4(), until_ms, holder.clone(), now_ms).map_err(|error| error.message)
        };
        for number in 0..25 {
            let of_north = owner(&format!("user{number}"), "north");
            (0..USED_PER_PRINCIPAL_MAX).for_each(|_| add(&of_north, 0).unwrap());
        }
        let refused = |by_whom| {
            Err(format!("too many input requests were answered by {by_whom} recently; try again in a few minutes"))
        };
        assert_eq!(add(&owner("user0", "north"), 0), refused("you"));
        assert_eq!(add(&owner("more", "north"), 0), refused("your tenant"));
        assert_eq!(add(&owner("user0", "south"), 0), Ok(()));
        // Expired states no longer count.
        assert_eq!(add(&owner("more", "north"), until_ms), Ok(()));
    }
}
