//! `requestState`: what a call that asks its client must know when it comes again, signed and handed to the client.
//!
//! It comes back from an attacker: it holds for one somebody, one request, one time and ten minutes, and nobody but this
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
use tidegate_core::{Caller, HmacSigner, LimitLevel, Owner, SIGNATURE_BYTES, ShareCounter};
use tokio::time::Instant;
use uuid::Uuid;

use crate::jsonrpc::RpcError;

/// How long a person may take to answer.
const LIFETIME: Duration = Duration::from_secs(10 * 60);
/// Longer states are refused, in bytes; they hold the answers of all rounds.
const STATE_BYTES_MAX: usize = 256 * 1024;
/// States that were used and are not over yet: of one somebody, and of all, of which the principals of one tenant have half.
const USED_PER_PRINCIPAL_MAX: usize = 2_000;
const USED_MAX: usize = 100_000;
/// How often those that are over are forgotten at most.
const EXPIRY_INTERVAL_MS: u64 = 1_000;
const PURPOSE: &str = "request state";

/// Signs states, and knows those that were used.
#[derive(Debug)]
pub(crate) struct RequestStateStore {
    signer: HmacSigner,
    /// What expiries are measured from: a clock that nobody sets.
    started: Instant,
    used: Mutex<UsedStates>,
}

#[derive(Debug, Default)]
struct UsedStates {
    until_ms: HashMap<Uuid, (u64, Owner)>,
    shares: ShareCounter,
    /// Before that none are forgotten again: to look at each for each new one would be much.
    next_expiry_ms: u64,
}

/// What one round of a call asked, and what it had been told before.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct InputRoundState {
    /// What was asked for: the mark of each question, by key.
    pub(crate) asked: BTreeMap<String, String>,
    /// Answers of earlier rounds, by key.
    pub(crate) answers: BTreeMap<String, ReceivedAnswer>,
}

/// An answer as it came.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ReceivedAnswer {
    pub(crate) result: Value,
    /// The mark of the question that it answers; none when it came unasked.
    pub(crate) asked: Option<String>,
}

/// A state that holds, and was not used until now.
pub(crate) struct VerifiedState {
    pub(crate) round: InputRoundState,
    /// Whom its use counts for.
    holder: Owner,
    expires_ms: u64,
    nonce: Uuid,
}

#[derive(Serialize, Deserialize)]
struct SignedState {
    round: InputRoundState,
    owner: String,
    /// Which request it belongs to.
    request: String,
    expires_ms: u64,
    nonce: Uuid,
}

impl RequestStateStore {
    pub(crate) fn new() -> Self {
        Self { signer: HmacSigner::with_random_key(), started: Instant::now(), used: Mutex::default() }
    }

    /// The state of `round` for the request `request` of `caller`.
    ///
    /// # Errors
    /// When the answers of all rounds are too long to travel.
    pub(crate) fn issue(&self, round: InputRoundState, request: String, caller: &Caller) -> Result<String, RpcError> {
        let state = SignedState {
            round,
            owner: Owner::from_caller(caller).to_text(),
            request,
            expires_ms: self.now_ms() + LIFETIME.as_millis() as u64,
            nonce: Uuid::new_v4(),
        };
        // Text, numbers and JSON always become JSON.
        let payload = serde_json::to_vec(&state).unwrap_or_default();
        if payload.len() > STATE_BYTES_MAX {
            return Err(RpcError::invalid_params(format!("the answers are longer than {STATE_BYTES_MAX} bytes")));
        }
        let signature = self.signer.sign(PURPOSE, &[&payload]);
        Ok(URL_SAFE_NO_PAD.encode([&signature[..], &payload].concat()))
    }

    /// The round that `text` stands for, if it was given to `caller` for `request`.
    ///
    /// # Errors
    /// `-32602` for one that is not signed by us, another's, of another request, or over.
    pub(crate) fn verify(&self, text: &str, request: &str, caller: &Caller) -> Result<VerifiedState, RpcError> {
        // One answer for all that was never given to this caller for this request: it learns nothing of others.
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
        if owner != Owner::from_caller(caller).to_text() || of_request != request {
            return Err(foreign());
        }
        if expires_ms <= self.now_ms() {
            return Err(RpcError::invalid_params("the requestState has expired; call again without it"));
        }
        Ok(VerifiedState { round, holder: Owner::for_quota(caller), expires_ms, nonce })
    }

    /// Uses a state up.
    ///
    /// # Errors
    /// `-32602` when it was used before, `-31000` when too many were used lately.
    pub(crate) fn consume(&self, opened: VerifiedState) -> Result<InputRoundState, RpcError> {
        let VerifiedState { round, holder, expires_ms, nonce } = opened;
        self.used.lock().add(nonce, expires_ms, holder, self.now_ms())?;
        Ok(round)
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl UsedStates {
    fn add(&mut self, nonce: Uuid, until_ms: u64, holder: Owner, now_ms: u64) -> Result<(), RpcError> {
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

    fn acquire_share(&mut self, holder: &Owner) -> Result<(), LimitLevel> {
        self.shares.acquire(holder, USED_MAX, Some(USED_PER_PRINCIPAL_MAX))
    }

    /// Forgets those that are over: they are refused for that.
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
    let owner_key = match level {
        LimitLevel::Principal => " by you",
        LimitLevel::Tenant => " by your tenant",
        LimitLevel::Tool | LimitLevel::Node => "",
    };
    let message = format!("too many input requests were answered{owner_key} recently; try again in a few minutes");
    RpcError::new(RpcError::REFUSED, message)
}

/// Names a request: what it is aimed at and its arguments, in whatever order they were written.
pub(crate) fn request_fingerprint(method: &str, target: &str, arguments: &Map<String, Value>) -> String {
    let mut text = format!("{method}\n{target}\n");
    write_canonical_json(&Value::Object(arguments.clone()), &mut text);
    URL_SAFE_NO_PAD.encode(Sha256::digest(text.as_bytes()))
}

fn write_canonical_json(value: &Value, text: &mut String) {
    match value {
        Value::Object(members) => {
            let sorted: BTreeMap<&String, &Value> = members.iter().collect();
            text.push('{');
            for (name, member) in sorted {
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                write_canonical_json(member, text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for item in items {
                write_canonical_json(item, text);
                text.push(',');
            }
            text.push(']');
        }
        other => text.push_str(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(name: &str, tenant: &str) -> Owner {
        Owner { proof: "token".into(), subject: name.to_owned(), tenant: Some(tenant.to_owned()), address: None }
    }

    #[test]
    fn limits_used_states_per_principal_and_tenant() {
        let (mut used, until_ms) = (UsedStates::default(), EXPIRY_INTERVAL_MS);
        let mut add = |holder: &Owner, now_ms| {
            used.add(Uuid::new_v4(), until_ms, holder.clone(), now_ms).map_err(|error| error.message)
        };
        for number in 0..25 {
            let of_north = owner(&format!("user{number}"), "north");
            (0..USED_PER_PRINCIPAL_MAX).for_each(|_| add(&of_north, 0).unwrap());
        }
        let told = |owner_key| {
            Err(format!("too many input requests were answered by {owner_key} recently; try again in a few minutes"))
        };
        assert_eq!(add(&owner("user0", "north"), 0), told("you"));
        assert_eq!(add(&owner("more", "north"), 0), told("your tenant"));
        assert_eq!(add(&owner("user0", "south"), 0), Ok(()));
        // Those that are over are nobody's any more.
        assert_eq!(add(&owner("more", "north"), until_ms), Ok(()));
    }
}
