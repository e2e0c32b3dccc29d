//! Links to stored results, and cursors in them: their signed tokens, and the callers that received links. Each link acts
//! for the caller that it was created for, so that neither later readers nor earlier calls change what a link permits.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tidegate_core::{Caller, CallerIdentity, Error, ErrorKind, HmacSigner, SIGNATURE_BYTES};
use uuid::Uuid;

use crate::manifest::ResultId;

const CURSOR_BYTES: usize = 16 + 8 + 8 + 8 + SIGNATURE_BYTES;
const LINK_BYTES: usize = 8 + 8 + SIGNATURE_BYTES;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) result: ResultId,
    pub(crate) row: u64,
    /// The identifier of the query, so that a cursor is rejected for another query.
    pub(crate) query_id: u64,
    pub(crate) expires_at_ms: u64,
}

pub(crate) struct ResultSigner {
    /// This key is stored in the folder of the results.
    cursors: HmacSigner,
    /// Link holders are known only to this process, so links end with it.
    links: HmacSigner,
}

impl ResultSigner {
    pub(crate) fn new(key: &[u8]) -> Self {
        Self { cursors: HmacSigner::new(key), links: HmacSigner::with_random_key() }
    }

    pub(crate) fn sign_cursor(&self, cursor: &Cursor, owner: &CallerIdentity) -> String {
        let mut bytes = Vec::with_capacity(CURSOR_BYTES);
        bytes.extend(cursor.result.0.as_bytes());
        for number in [cursor.row, cursor.query_id, cursor.expires_at_ms] {
            bytes.extend(number.to_be_bytes());
        }
        let signature = self.cursors.sign("cursor", &[owner.to_text().as_bytes(), &bytes]);
        bytes.extend(signature);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    pub(crate) fn verify_cursor(&self, text: &str, owner: &CallerIdentity) -> Result<Cursor, Error> {
        let foreign = || {
            Error::new(ErrorKind::InvalidArguments, "the cursor is unknown or was changed")
                .with_hint("Pass the cursor of an earlier answer unchanged, with the arguments of that call.")
        };
        let bytes =
            URL_SAFE_NO_PAD.decode(text).ok().filter(|bytes| bytes.len() == CURSOR_BYTES).ok_or_else(foreign)?;
        let (signed, signature) = bytes.split_at(CURSOR_BYTES - SIGNATURE_BYTES);
        if !self.cursors.verify("cursor", &[owner.to_text().as_bytes(), signed], signature) {
            return Err(foreign());
        }
        let number = |at: usize| read_u64(&signed[at..at + 8]);
        let result = Uuid::from_slice(&signed[..16]).map_err(|_| foreign())?;
        let (result, row, query_id, expires_at_ms) = (ResultId(result), number(16), number(24), number(32));
        if expires_at_ms <= now_ms() {
            return Err(expired_error());
        }
        Ok(Cursor { result, row, query_id, expires_at_ms })
    }

    /// A link to the result `id` that acts for the link holder with the number `holder`.
    pub(crate) fn sign_link(&self, id: ResultId, holder: u64, expires_at_ms: u64) -> String {
        let signed = [expires_at_ms.to_be_bytes(), holder.to_be_bytes()].concat();
        let signature = self.links.sign("link", &[id.0.as_bytes(), &signed]);
        URL_SAFE_NO_PAD.encode([&signed[..], &signature].concat())
    }

    /// The number of the holder of a link to the result `id` that has not expired.
    pub(crate) fn verify_link(&self, text: &str, id: ResultId) -> Option<u64> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok().filter(|bytes| bytes.len() == LINK_BYTES)?;
        let (signed, signature) = bytes.split_at(LINK_BYTES - SIGNATURE_BYTES);
        let (expires_at_ms, holder) = (read_u64(&signed[..8]), read_u64(&signed[8..]));
        let is_ours = self.links.verify("link", &[id.0.as_bytes(), signed], signature);
        (is_ours && expires_at_ms > now_ms()).then_some(holder)
    }
}

fn read_u64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

pub(crate) fn expired_error() -> Error {
    Error::new(ErrorKind::NotFound, "the stored result has expired").with_hint("Repeat the query.")
}

pub(crate) fn now_ms() -> u64 {
    ms_since_1970(SystemTime::now())
}

pub(crate) fn ms_since_1970(time: SystemTime) -> u64 {
    to_ms(time.duration_since(UNIX_EPOCH).unwrap_or_default())
}

pub(crate) fn to_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The maximum number of callers with valid links to one result. Beyond it, the links of one caller end early.
const LINK_HOLDERS_MAX: usize = 8;

#[derive(Debug, Default)]
pub(crate) struct LinkHolders {
    holders: Vec<LinkHolder>,
    registered: u64,
}

#[derive(Debug)]
struct LinkHolder {
    number: u64,
    caller: Caller,
    /// When the last of its links expires, in milliseconds since 1970.
    expires_at_ms: u64,
}

impl LinkHolders {
    /// Returns the number of `caller`, which receives a link until `until_ms`. A number is never reused for another
    /// caller.
    pub(crate) fn register(&mut self, caller: &Caller, until_ms: u64) -> u64 {
        if let Some(reader) = self.holders.iter_mut().find(|reader| reader.matches(caller)) {
            reader.expires_at_ms = reader.expires_at_ms.max(until_ms);
            return reader.number;
        }
        let number = self.registered;
        self.registered += 1;
        let caller = Caller { pinned_snapshot: None, ..caller.clone() };
        self.holders.push(LinkHolder { number, caller, expires_at_ms: until_ms });
        if self.holders.len() > LINK_HOLDERS_MAX {
            // Links of callers that an earlier authenticator admitted are no longer valid, so they go first.
            let version = |holder: &LinkHolder| holder.caller.principal.authenticator_version;
            self.holders.sort_by_key(|holder| (version(holder), holder.expires_at_ms, holder.number));
            self.holders.remove(0);
        }
        number
    }

    pub(crate) fn get(&self, number: u64) -> Option<Caller> {
        self.holders.iter().find(|reader| reader.number == number).map(|reader| reader.caller.clone())
    }

    pub(crate) fn remove_expired(&mut self, now_ms: u64) {
        self.holders.retain(|reader| reader.expires_at_ms > now_ms);
    }
}

impl LinkHolder {
    /// Whether a link of this holder permits the same as one of `caller`: the same authenticator version, rights and
    /// toolset.
    fn matches(&self, caller: &Caller) -> bool {
        let (principal, other) = (&self.caller.principal, &caller.principal);
        let is_same = principal == other && self.caller.is_same_identity(caller);
        is_same
            && principal.authenticator_version == other.authenticator_version
            && self.caller.toolset == caller.toolset
    }
}
