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
use tidegate_core::{Caller, Level, Owner, SIGNATURE_BYTES, Seal, Shares};
use tokio::time::Instant;
use uuid::Uuid;

use crate::jsonrpc::RpcError;

/// How long a person may take to answer.
const LIFETIME: Duration = Duration::from_secs(10 * 60);
/// Longer states are refused, in bytes; they hold the answers of all rounds.
const STATE_BYTES_MAX: usize = 256 * 1024;
/// States that were used and are not over yet: of one somebody, and of all, of which the principals of one tenant have half.
const USED_OF_ONE_MAX: usize = 2_000;
const USED_MAX: usize = 100_000;
/// How often those that are over are forgotten at most.
const FORGET_EVERY_MS: u64 = 1_000;
const PURPOSE: &str = "request state";

/// Signs states, and knows those that were used.
#[derive(Debug)]
pub(crate) struct RequestStates {
    seal: Seal,
    /// What expiries are measured from: a clock that nobody sets.
    began: Instant,
    used: Mutex<Used>,
}

#[derive(Debug, Default)]
struct Used {
    until_ms: HashMap<Uuid, (u64, Owner)>,
    of: Shares,
    /// Before that none are forgotten again: to look at each for each new one would be much.
    forget_at_ms: u64,
}

/// What one round of a call asked, and what it had been told before.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Round {
    /// What was asked for: the mark of each question, by key.
    pub(crate) asked: BTreeMap<String, String>,
    /// Answers of earlier rounds, by key.
    pub(crate) answers: BTreeMap<String, Told>,
}

/// An answer as it came.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Told {
    pub(crate) result: Value,
    /// The mark of the question that it answers; none when it came unasked.
    pub(crate) asked: Option<String>,
}

/// A state that holds, and was not used until now.
pub(crate) struct Opened {
    pub(crate) round: Round,
    /// Whom its use counts for.
    holder: Owner,
    expires_ms: u64,
    nonce: Uuid,
}

#[derive(Serialize, Deserialize)]
struct State {
    round: Round,
    owner: String,
    /// Which request it belongs to.
    request: String,
    expires_ms: u64,
    nonce: Uuid,
}

impl RequestStates {
    pub(crate) fn new() -> Self {
        Self { seal: Seal::random(), began: Instant::now(), used: Mutex::default() }
    }

    /// The state of `round` for the request `request` of `caller`.
    ///
    /// # Errors
    /// When the answers of all rounds are too long to travel.
    pub(crate) fn seal(&self, round: Round, request: String, caller: &Caller) -> Result<String, RpcError> {
        let state = State {
            round,
            owner: Owner::of(caller).to_text(),
            request,
            expires_ms: self.now_ms() + LIFETIME.as_millis() as u64,
            nonce: Uuid::new_v4(),
        };
        // Text, numbers and JSON always become JSON.
        let payload = serde_json::to_vec(&state).unwrap_or_default();
        if payload.len() > STATE_BYTES_MAX {
            return Err(RpcError::invalid_params(format!("the answers are longer than {STATE_BYTES_MAX} bytes")));
        }
        let signature = self.seal.signature(PURPOSE, &[&payload]);
        Ok(URL_SAFE_NO_PAD.encode([&signature[..], &payload].concat()))
    }

    /// The round that `text` stands for, if it was given to `caller` for `request`.
    ///
    /// # Errors
    /// `-32602` for one that is not signed by us, another's, of another request, or over.
    pub(crate) fn open(&self, text: &str, request: &str, caller: &Caller) -> Result<Opened, RpcError> {
        // One answer for all that was never given to this caller for this request: it learns nothing of others.
        let foreign = || {
            RpcError::invalid_params(
                "the requestState is none that you were given for this request; call again without it",
            )
        };
        let bytes = (text.len() <= STATE_BYTES_MAX * 2).then(|| URL_SAFE_NO_PAD.decode(text).ok()).flatten();
        let bytes = bytes.filter(|bytes| bytes.len() > SIGNATURE_BYTES).ok_or_else(foreign)?;
        let (signature, payload) = bytes.split_at(SIGNATURE_BYTES);
        if !self.seal.has_signed(PURPOSE, &[payload], signature) {
            return Err(foreign());
        }
        let State { round, owner, request: of_request, expires_ms, nonce } =
            serde_json::from_slice(payload).map_err(|_| foreign())?;
        if owner != Owner::of(caller).to_text() || of_request != request {
            return Err(foreign());
        }
        if expires_ms <= self.now_ms() {
            return Err(RpcError::invalid_params("the requestState has expired; call again without it"));
        }
        Ok(Opened { round, holder: Owner::counted(caller), expires_ms, nonce })
    }

    /// Uses a state up.
    ///
    /// # Errors
    /// `-32602` when it was used before, `-31000` when too many were used lately.
    pub(crate) fn use_up(&self, opened: Opened) -> Result<Round, RpcError> {
        let Opened { round, holder, expires_ms, nonce } = opened;
        self.used.lock().add(nonce, expires_ms, holder, self.now_ms())?;
        Ok(round)
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Used {
    fn add(&mut self, nonce: Uuid, until_ms: u64, holder: Owner, now_ms: u64) -> Result<(), RpcError> {
        if self.until_ms.contains_key(&nonce) {
            return Err(RpcError::invalid_params("the requestState was used already; call again without it"));
        }
        self.take(&holder)
            .or_else(|_| {
                self.forget(now_ms);
                self.take(&holder)
            })
            .map_err(too_many)?;
        self.until_ms.insert(nonce, (until_ms, holder));
        Ok(())
    }

    fn take(&mut self, holder: &Owner) -> Result<(), Level> {
        self.of.take(holder, USED_MAX, Some(USED_OF_ONE_MAX))
    }

    /// Forgets those that are over: they are refused for that.
    fn forget(&mut self, now_ms: u64) {
        if now_ms < self.forget_at_ms {
            return;
        }
        self.forget_at_ms = now_ms + FORGET_EVERY_MS;
        for (_, (_, holder)) in self.until_ms.extract_if(|_, (until_ms, _)| *until_ms <= now_ms) {
            self.of.give_back(&holder);
        }
    }
}

fn too_many(level: Level) -> RpcError {
    let whose = match level {
        Level::Principal => " by you",
        Level::Tenant => " by your tenant",
        Level::Tool | Level::Node => "",
    };
    let message = format!("too many questions were answered{whose} lately; try again in a few minutes");
    RpcError::new(RpcError::REFUSED, message)
}

/// Names a request: what it is aimed at and its arguments, in whatever order they were written.
pub(crate) fn named(method: &str, target: &str, arguments: &Map<String, Value>) -> String {
    let mut text = format!("{method}\n{target}\n");
    write_sorted(&Value::Object(arguments.clone()), &mut text);
    URL_SAFE_NO_PAD.encode(Sha256::digest(text.as_bytes()))
}

fn write_sorted(value: &Value, text: &mut String) {
    match value {
        Value::Object(members) => {
            let sorted: BTreeMap<&String, &Value> = members.iter().collect();
            text.push('{');
            for (name, member) in sorted {
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                write_sorted(member, text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for item in items {
                write_sorted(item, text);
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

    fn somebody(name: &str, tenant: &str) -> Owner {
        Owner { proof: "token".into(), subject: name.to_owned(), tenant: Some(tenant.to_owned()), address: None }
    }

    #[test]
    fn the_principals_of_one_tenant_leave_room_for_the_answers_of_another() {
        let (mut used, until_ms) = (Used::default(), FORGET_EVERY_MS);
        let mut add = |holder: &Owner, now_ms| {
            used.add(Uuid::new_v4(), until_ms, holder.clone(), now_ms).map_err(|error| error.message)
        };
        for number in 0..25 {
            let of_north = somebody(&format!("user{number}"), "north");
            (0..USED_OF_ONE_MAX).for_each(|_| add(&of_north, 0).unwrap());
        }
        let told =
            |whose| Err(format!("too many questions were answered by {whose} lately; try again in a few minutes"));
        assert_eq!(add(&somebody("user0", "north"), 0), told("you"));
        assert_eq!(add(&somebody("more", "north"), 0), told("your tenant"));
        assert_eq!(add(&somebody("user0", "south"), 0), Ok(()));
        // Those that are over are nobody's any more.
        assert_eq!(add(&somebody("more", "north"), until_ms), Ok(()));
    }
}
