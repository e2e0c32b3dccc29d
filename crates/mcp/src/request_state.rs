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
use tidegate_core::{Caller, Owner, SIGNATURE_BYTES, Seal};
use tokio::time::Instant;
use uuid::Uuid;

use crate::jsonrpc::RpcError;

/// How long a person may take to answer.
const LIFETIME: Duration = Duration::from_secs(10 * 60);
/// Longer states are refused, in bytes; they hold the answers of all rounds.
const STATE_BYTES_MAX: usize = 256 * 1024;
/// States that were used and are not over yet: of one somebody, and of all.
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
    until_ms: HashMap<Uuid, (u64, String)>,
    of: HashMap<String, usize>,
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
    owner: String,
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
        Ok(Opened { round, owner, expires_ms, nonce })
    }

    /// Uses a state up.
    ///
    /// # Errors
    /// `-32602` when it was used before, `-31000` when too many were used lately.
    pub(crate) fn use_up(&self, opened: Opened) -> Result<Round, RpcError> {
        let Opened { round, owner, expires_ms, nonce } = opened;
        self.used.lock().add(nonce, expires_ms, owner, self.now_ms())?;
        Ok(round)
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Used {
    fn add(&mut self, nonce: Uuid, until_ms: u64, owner: String, now_ms: u64) -> Result<(), RpcError> {
        if self.until_ms.contains_key(&nonce) {
            return Err(RpcError::invalid_params("the requestState was used already; call again without it"));
        }
        if self.until_ms.len() >= USED_MAX || self.of.get(&owner).is_some_and(|used| *used >= USED_OF_ONE_MAX) {
            self.forget(now_ms);
        }
        let of_one = self.of.entry(owner.clone()).or_default();
        if *of_one >= USED_OF_ONE_MAX || self.until_ms.len() >= USED_MAX {
            let message = "too many questions were answered lately; try again in a few minutes";
            return Err(RpcError::new(RpcError::REFUSED, message));
        }
        *of_one += 1;
        self.until_ms.insert(nonce, (until_ms, owner));
        Ok(())
    }

    /// Forgets those that are over: they are refused for that.
    fn forget(&mut self, now_ms: u64) {
        if now_ms < self.forget_at_ms {
            return;
        }
        self.forget_at_ms = now_ms + FORGET_EVERY_MS;
        self.until_ms.retain(|_, (until_ms, _)| *until_ms > now_ms);
        self.of.clear();
        for (_, owner) in self.until_ms.values() {
            *self.of.entry(owner.clone()).or_default() += 1;
        }
    }
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
