//! `requestState`: the state of a call between its input rounds, signed and stored by the client.
//!
//! The client may be an attacker: a state is valid for one caller, one request, one use and ten minutes, and only this
//! process has the key.
//!
//! [MCP 2026-07-28, Server Requirements](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr#server-requirements-basic-workflow)

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use tidegate_core::{Caller, CallerIdentity, HmacSigner, LimitLevel, SIGNATURE_BYTES, ShareCounter};
use tokio::time::Instant;
use uuid::Uuid;

use crate::jsonrpc::RpcError;

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

    pub(crate) fn issue(&self, round: InputRoundState, request: String, caller: &Caller) -> Result<String, RpcError> {
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
    pub(crate) fn verify(&self, text: &str, request: &str, caller: &Caller) -> Result<VerifiedState, RpcError> {
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
pub(crate) fn request_fingerprint(method: &str, target: &str, arguments: &Map<String, Value>) -> String {
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
