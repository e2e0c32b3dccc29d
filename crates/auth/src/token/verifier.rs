//! Whether a token is good: its form, its signature, its claims, in this order.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{DecodingKey, Validation, decode};
use serde_json::{Map, Value};

use super::Seconds;
use super::algorithm::TokenAlgorithm;
use super::error::TokenOptionsError;
use super::key_ring::KeyRing;
use super::options::TokenOptions;

/// More leeway would let expired tokens live on.
const LEEWAY_SECONDS_MAX: u32 = 600;

/// Tells good tokens from others.
///
/// The library checks signatures and nothing else. Claims are checked here: against the time that is passed in, and
/// without the library's rule that a claim which is not there, or not of the right type, is often fine.
pub(super) struct Verifier {
    keys: KeyRing,
    algorithms: Vec<TokenAlgorithm>,
    issuer: String,
    audiences: Vec<String>,
    leeway: Seconds,
    tenant_claim: Option<String>,
}

/// What a good token says.
pub(super) struct Verified {
    pub(super) subject: String,
    pub(super) tenant: Option<String>,
    pub(super) claims: Map<String, Value>,
    /// Leeway included.
    pub(super) good_until: Seconds,
}

/// What a token says of its own signature.
struct Header {
    algorithm: TokenAlgorithm,
    key_id: Option<String>,
}

impl Verifier {
    pub(super) fn new(options: TokenOptions) -> Result<Self, TokenOptionsError> {
        let TokenOptions { key, issuer, audiences, algorithms, leeway_seconds, tenant_claim } = options;
        if issuer.is_empty() {
            return Err(TokenOptionsError::NoIssuer);
        }
        if audiences.is_empty() || audiences.iter().any(String::is_empty) {
            return Err(TokenOptionsError::NoAudience);
        }
        if algorithms.is_empty() {
            return Err(TokenOptionsError::NoAlgorithm);
        }
        if tenant_claim.as_ref().is_some_and(String::is_empty) {
            return Err(TokenOptionsError::NamelessTenantClaim);
        }
        if leeway_seconds > LEEWAY_SECONDS_MAX {
            let (seconds, seconds_max) = (leeway_seconds, LEEWAY_SECONDS_MAX);
            return Err(TokenOptionsError::LeewayTooLong { seconds, seconds_max });
        }
        let keys = KeyRing::read(&key, &algorithms)?;
        Ok(Self { keys, algorithms, issuer, audiences, leeway: Seconds::from(leeway_seconds), tenant_claim })
    }

    /// What `token` says, if it is good at `now`.
    pub(super) fn verify(&self, token: &str, now: Seconds) -> Option<Verified> {
        let header = Header::read(token)?;
        if !self.algorithms.contains(&header.algorithm) {
            return None;
        }
        let key = self.keys.find(header.algorithm, header.key_id.as_deref())?;
        let claims = signed_claims(token, key, header.algorithm)?;
        self.accept(claims, now)
    }

    fn accept(&self, claims: Map<String, Value>, now: Seconds) -> Option<Verified> {
        let good_until = claims.get("exp").and_then(Value::as_f64)? + self.leeway;
        let good_from = match claims.get("nbf") {
            Some(from) => from.as_f64()? - self.leeway,
            None => Seconds::NEG_INFINITY,
        };
        let is_for_us = match claims.get("aud")? {
            Value::String(audience) => self.audiences.contains(audience),
            Value::Array(audiences) => audiences.iter().any(|audience| self.is_ours(audience)),
            _ => false,
        };
        let is_good = good_from <= now && now < good_until && is_for_us && *claims.get("iss")? == *self.issuer;
        let subject = claims.get("sub")?.as_str().filter(|subject| !subject.trim().is_empty())?.to_owned();
        let tenant = match self.tenant_claim.as_ref().and_then(|name| claims.get(name)) {
            None | Some(Value::Null) => None,
            // A tenant that cannot be read must not become no tenant.
            Some(name) => Some(name.as_str().filter(|name| !name.is_empty())?.to_owned()),
        };
        is_good.then_some(Verified { subject, tenant, claims, good_until })
    }

    fn is_ours(&self, audience: &Value) -> bool {
        audience.as_str().is_some_and(|audience| self.audiences.iter().any(|ours| ours == audience))
    }
}

impl Header {
    fn read(token: &str) -> Option<Self> {
        let mut parts = token.split('.');
        let (Some(header), Some(_), Some(_), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
            return None;
        };
        let header: Map<String, Value> = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header).ok()?).ok()?;
        // It names what must be understood beyond the standard, and we understand nothing beyond it.
        if header.contains_key("crit") {
            return None;
        }
        let algorithm = header.get("alg")?.as_str()?.parse().ok()?;
        let key_id = match header.get("kid") {
            Some(id) => Some(id.as_str()?.to_owned()),
            None => None,
        };
        Some(Self { algorithm, key_id })
    }
}

/// The claims of `token`, if `key` says that `algorithm` signed them.
fn signed_claims(token: &str, key: &DecodingKey, algorithm: TokenAlgorithm) -> Option<Map<String, Value>> {
    let mut signature_only = Validation::new(algorithm.for_library());
    signature_only.required_spec_claims.clear();
    signature_only.validate_exp = false;
    signature_only.validate_aud = false;
    decode(token, key, &signature_only).ok().map(|token| token.claims)
}
