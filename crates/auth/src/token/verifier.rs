//! Verifies a token: its form, its signature, then its claims.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::DecodingKey;
use jsonwebtoken::crypto::verify;
use serde_json::{Map, Value};

use super::algorithm::TokenAlgorithm;
use super::key_ring::KeyRing;
use super::options::{IntrospectionOptions, Seconds, TokenKey, TokenOptions, TokenOptionsError};

/// Maximum leeway, so that expired tokens do not stay valid.
const LEEWAY_SECONDS_MAX: u32 = 600;

/// Verifies tokens.
///
/// The library checks only signatures. Claims are checked here against a given time, because the library accepts some
/// missing or mistyped claims.
pub(super) struct TokenVerifier {
    algorithms: Vec<TokenAlgorithm>,
    issuer: String,
    audiences: Vec<String>,
    leeway: Seconds,
    tenant_claim: Option<String>,
    needs_audience: bool,
}

pub(super) struct VerifiedToken {
    pub(super) subject: String,
    pub(super) tenant: Option<String>,
    pub(super) claims: Map<String, Value>,
    /// With leeway.
    pub(super) valid_until: Seconds,
}

pub(super) enum TokenVerdict {
    Valid(VerifiedToken),
    /// The key is unknown; the token may be valid if its issuer published a new key.
    UnknownKey,
    /// The token is invalid, whatever the key.
    Invalid,
}

struct TokenHeader {
    algorithm: TokenAlgorithm,
    key_id: Option<String>,
}

impl TokenVerifier {
    pub(super) fn new(options: TokenOptions) -> Result<Self, TokenOptionsError> {
        let TokenOptions { key, issuer, audiences, algorithms, leeway_seconds, tenant_claim, .. } = options;
        if issuer.is_empty() {
            return Err(TokenOptionsError::new("an issuer is missing: the iss that tokens must have"));
        }
        if audiences.is_empty() || audiences.iter().any(String::is_empty) {
            return Err(TokenOptionsError::new(
                "an audience is missing: what tokens must carry in aud, so that those for other services do not count \
                 here",
            ));
        }
        if algorithms.is_empty() && !matches!(key, TokenKey::Introspection(_)) {
            return Err(TokenOptionsError::new("no algorithm is listed; list those that may sign tokens"));
        }
        if tenant_claim.as_ref().is_some_and(String::is_empty) {
            return Err(TokenOptionsError::new("the tenant claim has an empty name"));
        }
        if leeway_seconds > LEEWAY_SECONDS_MAX {
            return Err(TokenOptionsError::new(format!(
                "a leeway of {leeway_seconds} seconds is too long; at most {LEEWAY_SECONDS_MAX} are allowed"
            )));
        }
        let leeway = Seconds::from(leeway_seconds);
        let needs_audience =
            !matches!(key, TokenKey::Introspection(IntrospectionOptions { needs_audience: false, .. }));
        Ok(Self { algorithms, issuer, audiences, leeway, tenant_claim, needs_audience })
    }

    pub(super) fn verify(&self, token: &str, keys: Option<&KeyRing>, now: Seconds) -> TokenVerdict {
        let Some(header) = TokenHeader::read(token).filter(|header| self.algorithms.contains(&header.algorithm)) else {
            return TokenVerdict::Invalid;
        };
        let Some(key) = keys.and_then(|keys| keys.find(header.algorithm, header.key_id.as_deref())) else {
            // New keys are worth a fetch only if the claims are valid.
            let may_be_valid =
                unsigned_claims(token).is_some_and(|claims| self.check_signed_claims(claims, now).is_some());
            return if may_be_valid { TokenVerdict::UnknownKey } else { TokenVerdict::Invalid };
        };
        let claims = signed_claims(token, key, header.algorithm);
        claims
            .and_then(|claims| self.check_signed_claims(claims, now))
            .map_or(TokenVerdict::Invalid, TokenVerdict::Valid)
    }

    /// Checks the claims of a signed token, which must have `sub`, `exp`, `aud` and `iss`.
    fn check_signed_claims(&self, claims: Map<String, Value>, now: Seconds) -> Option<VerifiedToken> {
        let has_all = ["sub", "exp", "aud", "iss"].iter().all(|name| claims.contains_key(*name));
        self.check_introspected_claims(claims, now).filter(|_| has_all)
    }

    /// Checks claims from an introspection answer. The issuer has checked the expiry, so claims may be absent; those
    /// that are present must be valid. A client that acts for itself may have `client_id` instead of `sub` ([RFC 7662,
    /// 2.2](https://www.rfc-editor.org/rfc/rfc7662#section-2.2)).
    pub(super) fn check_introspected_claims(&self, claims: Map<String, Value>, now: Seconds) -> Option<VerifiedToken> {
        let valid_until = match claims.get("exp") {
            Some(until) => until.as_f64()? + self.leeway,
            None => Seconds::INFINITY,
        };
        let valid_from = match claims.get("nbf") {
            Some(from) => from.as_f64()? - self.leeway,
            None => Seconds::NEG_INFINITY,
        };
        let is_for_us = match claims.get("aud") {
            None => !self.needs_audience,
            Some(Value::String(audience)) => self.audiences.contains(audience),
            Some(Value::Array(audiences)) => audiences.iter().any(|audience| self.is_our_audience(audience)),
            Some(_) => false,
        };
        let is_from_issuer = claims.get("iss").is_none_or(|issuer| *issuer == *self.issuer);
        let is_valid = valid_from <= now && now < valid_until && is_for_us && is_from_issuer;
        let subject = claims.get("sub").or_else(|| claims.get("client_id"))?;
        let subject = subject.as_str().filter(|name| is_valid_name(name))?.to_owned();
        let tenant = match self.tenant_claim.as_ref().and_then(|name| claims.get(name)) {
            None | Some(Value::Null) => None,
            // An invalid tenant must not turn into "no tenant".
            Some(name) => Some(name.as_str().filter(|name| is_valid_name(name))?.to_owned()),
        };
        is_valid.then_some(VerifiedToken { subject, tenant, claims, valid_until })
    }

    fn is_our_audience(&self, audience: &Value) -> bool {
        audience.as_str().is_some_and(|audience| self.audiences.iter().any(|ours| ours == audience))
    }
}

/// Whether `text` is a valid name: not blank, and without control characters, which could forge log lines.
fn is_valid_name(text: &str) -> bool {
    !text.trim().is_empty() && !text.chars().any(char::is_control)
}

impl TokenHeader {
    fn read(token: &str) -> Option<Self> {
        let mut parts = token.split('.');
        let (Some(header), Some(_), Some(_), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
            return None;
        };
        let header: Map<String, Value> = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header).ok()?).ok()?;
        // `crit` lists extensions that must be understood; none are supported.
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

/// The claims of `token`, if its signature verifies with `key` and `algorithm`.
fn signed_claims(token: &str, key: &DecodingKey, algorithm: TokenAlgorithm) -> Option<Map<String, Value>> {
    let (message, signature) = token.rsplit_once('.')?;
    let is_signed = verify(signature, message.as_bytes(), key, algorithm.to_jsonwebtoken()).unwrap_or(false);
    is_signed.then(|| unsigned_claims(token)).flatten()
}

/// The claims of `token`, without a check of the signature.
fn unsigned_claims(token: &str) -> Option<Map<String, Value>> {
    let claims = token.split('.').nth(1)?;
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
}
