//! Verifies a token: its form, its signature, then its claims; or by introspection at the issuer
//! ([RFC 7662](https://www.rfc-editor.org/rfc/rfc7662)). The holder of a verified token is a principal.
//!
//! Concurrent introspections are limited, in total and for each network. A client that sends many invalid tokens waits in
//! the queue of its own network and does not delay others.

use std::collections::HashMap;
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use chrono::{DateTime, Utc};
use jsonwebtoken::DecodingKey;
use jsonwebtoken::crypto::verify;
use lru::LruCache;
use parking_lot::Mutex;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Url;
use reqwest::header::HeaderValue;
use serde_json::{Map, Value};
use tidegate_core::{AuthMethod, Error, ErrorKind, ImpliedScopes, Principal, quota_address};
use tidegate_runtime::{CacheAges, LoadingCache};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::key_ring::{KeyRing, TokenAlgorithm};
use super::{IntrospectionOptions, Seconds, TokenKey, TokenOptions, TokenOptionsError};
use crate::provider::{LogThrottle, ProviderClient, ProviderError, REQUEST_TIMEOUT, parse_url};
use crate::roles::Roles;
use crate::secret::{Clock, Digest};

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
    valid_until: Seconds,
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
    fn check_introspected_claims(&self, claims: Map<String, Value>, now: Seconds) -> Option<VerifiedToken> {
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

/// Makes principals of what tokens contain, and keeps them for a minute.
pub(super) struct TokenPrincipals {
    pub(super) verifier: TokenVerifier,
    pub(super) cache: TokenCache,
    pub(super) clock: Clock,
    roles: Arc<Roles>,
    implied_scopes: Arc<ImpliedScopes>,
}

impl TokenPrincipals {
    pub(super) fn new(
        verifier: TokenVerifier,
        roles: Arc<Roles>,
        implied_scopes: Arc<ImpliedScopes>,
        clock: Clock,
    ) -> Self {
        Self { verifier, cache: TokenCache::default(), clock, roles, implied_scopes }
    }

    /// The principal of a token, which is cached from `now` on. It was verified with the keys of `epoch`.
    pub(super) fn add(
        &self,
        digest: Digest,
        verified: VerifiedToken,
        now: DateTime<Utc>,
        epoch: u64,
    ) -> Arc<Principal> {
        let names = self.roles.granted_by(&verified.claims, &self.implied_scopes);
        let principal = Arc::new(Principal {
            tenant: verified.tenant,
            claims: verified.claims,
            implied_scopes: self.implied_scopes.clone(),
            expires_at: time_of(verified.valid_until),
            ..self.roles.build_principal(verified.subject, AuthMethod::Token, names)
        });
        self.cache.insert(digest, principal.clone(), seconds_of(now), verified.valid_until, epoch);
        principal
    }

    /// The principal of an active token with these claims of its issuer; `None` if they are not as required.
    fn add_introspected(&self, digest: Digest, claims: Map<String, Value>) -> Option<Arc<Principal>> {
        let now = self.clock.now();
        let verified = self.verifier.check_introspected_claims(claims, seconds_of(now))?;
        Some(self.add(digest, verified, now, 0))
    }
}

/// `None` for a time that cannot be represented, such as "never".
fn time_of(seconds: Seconds) -> Option<SystemTime> {
    let since = Duration::try_from_secs_f64(seconds).ok()?;
    UNIX_EPOCH.checked_add(since)
}

pub(super) fn seconds_of(time: DateTime<Utc>) -> Seconds {
    time.timestamp_millis() as Seconds / 1000.0
}

/// Tokens in the cache at most; the least recently used one is evicted.
const TOKENS_MAX: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();
/// Seconds after which a token is verified again.
const LIFETIME_SECONDS_MAX: Seconds = 60.0;

/// Principals by the SHA-256 of their token. Rejected tokens are not cached.
pub(super) struct TokenCache {
    tokens: Mutex<LruCache<Digest, CachedToken>>,
}

struct CachedToken {
    principal: Arc<Principal>,
    until: Seconds,
    epoch: u64,
}

impl Default for TokenCache {
    fn default() -> Self {
        Self { tokens: Mutex::new(LruCache::new(TOKENS_MAX)) }
    }
}

impl TokenCache {
    /// The principal of the token with this digest, if the entry is current and was made with the keys of `epoch`.
    pub(super) fn get(&self, digest: &Digest, now: Seconds, epoch: u64) -> Option<Arc<Principal>> {
        let mut tokens = self.tokens.lock();
        let cached = tokens.get(digest)?;
        if now < cached.until && cached.epoch == epoch {
            return Some(cached.principal.clone());
        }
        tokens.pop(digest);
        None
    }

    /// Caches the principal of a token that is valid until `valid_until`, verified with the keys of `epoch`.
    fn insert(&self, digest: Digest, principal: Arc<Principal>, now: Seconds, valid_until: Seconds, epoch: u64) {
        let until = valid_until.min(now + LIFETIME_SECONDS_MAX);
        self.tokens.lock().put(digest, CachedToken { principal, until, epoch });
    }
}

/// Rejected tokens in the cache at most; the least recently used one is evicted.
const REJECTED_MAX: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();
const REJECTED_SECONDS: Seconds = 5.0;
/// Characters that are percent-encoded in a form field.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'*').remove(b'-').remove(b'.').remove(b'_');

/// Introspections that run or wait for one of the permits.
const RUNNING_MAX: usize = 1_000;
/// Results are kept elsewhere, by the clock of tokens. Introspections end by themselves before their limit here.
const RUNNING: CacheAges = CacheAges {
    refresh_after: Duration::ZERO,
    expire_after: Duration::ZERO,
    load_timeout: Duration::from_secs(2 * REQUEST_TIMEOUT.as_secs()),
    keys_max: REJECTED_MAX,
};

pub(super) struct Introspector {
    url: Url,
    authorization: HeaderValue,
    http: ProviderClient,
    permits: IntrospectionPermits,
    rejected: Mutex<LruCache<Digest, Seconds>>,
    failures: LogThrottle,
}

/// Introspections that run once for all requests with the same token, and go on when these are gone, so that the next
/// one finds the result. Dropping it ends them.
pub(super) struct SharedIntrospection {
    introspector: Arc<Introspector>,
    /// Those that go on without a request are bounded by nothing else.
    slots: Arc<Semaphore>,
    running: LoadingCache<Digest, Option<Arc<Principal>>>,
}

pub(super) enum IntrospectionResult {
    /// The token is active and has these claims.
    Active(Map<String, Value>),
    Inactive,
}

impl SharedIntrospection {
    pub(super) fn new(options: &IntrospectionOptions) -> Result<Self, TokenOptionsError> {
        let (introspector, slots) = (Arc::new(Introspector::new(options)?), Arc::new(Semaphore::new(RUNNING_MAX)));
        Ok(Self { introspector, slots, running: LoadingCache::new(RUNNING) })
    }

    pub(super) fn was_recently_rejected(&self, digest: &Digest, now: Seconds) -> bool {
        let mut rejected = self.introspector.rejected.lock();
        match rejected.get(digest) {
            Some(until) if now < *until => true,
            Some(_) => {
                rejected.pop(digest);
                false
            }
            None => false,
        }
    }

    /// The principal of the holder of `token`, which the issuer is asked about once for all requests that wait for it.
    pub(super) async fn principal_for(
        &self,
        token: &str,
        digest: Digest,
        peer: Option<IpAddr>,
        principals: &Arc<TokenPrincipals>,
    ) -> Option<Arc<Principal>> {
        let introspection = || {
            let (introspector, principals, token) = (self.introspector.clone(), principals.clone(), token.to_owned());
            let slot = self.slots.clone().try_acquire_owned();
            async move {
                let _slot = slot.map_err(|_| Error::new(ErrorKind::Unavailable, "too many tokens are introspected"))?;
                let principal = match introspector.introspect(&token, peer).await? {
                    IntrospectionResult::Active(claims) => principals.add_introspected(digest, claims),
                    IntrospectionResult::Inactive => None,
                };
                if principal.is_none() {
                    let until = seconds_of(principals.clock.now()) + REJECTED_SECONDS;
                    introspector.rejected.lock().put(digest, until);
                }
                Ok(principal)
            }
        };
        let principal = self.running.get(&digest, introspection).await.ok()?;
        (*principal).clone()
    }
}

impl Introspector {
    pub(super) fn new(options: &IntrospectionOptions) -> Result<Self, TokenOptionsError> {
        let url = parse_url(&options.url)
            .map_err(|problem| TokenOptionsError::new(format!("the url of introspection {problem}")))?;
        if options.client_id.is_empty() || options.client_secret.expose().is_empty() {
            return Err(TokenOptionsError::no_client());
        }
        let escaped = |text| utf8_percent_encode(text, ESCAPED);
        let pair = format!("{}:{}", escaped(&options.client_id), escaped(options.client_secret.expose()));
        // Base64 is always a valid header value.
        let mut authorization = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(pair)))
            .map_err(|_| TokenOptionsError::no_client())?;
        authorization.set_sensitive(true);
        Ok(Self {
            url,
            authorization,
            http: ProviderClient::default(),
            permits: IntrospectionPermits::default(),
            rejected: Mutex::new(LruCache::new(REJECTED_MAX)),
            failures: LogThrottle::default(),
        })
    }

    async fn introspect(&self, token: &str, peer: Option<IpAddr>) -> Result<IntrospectionResult, Error> {
        let request = async {
            let _permit = self.permits.acquire(peer).await;
            self.query_issuer(token).await
        };
        let result = timeout(REQUEST_TIMEOUT, request).await.unwrap_or_else(|_| Err(ProviderError::timed_out()));
        match result {
            Ok(result) => {
                if self.failures.clear() {
                    tracing::info!(issuer = self.url.host_str(), "token introspection works again");
                }
                Ok(result)
            }
            Err(failure) => {
                if let Some(times) = self.failures.record_occurrence() {
                    tracing::warn!(issuer = self.url.host_str(), times, "token introspection failed: {failure}");
                }
                Err(Error::new(ErrorKind::Unavailable, "token introspection failed"))
            }
        }
    }

    /// The issuer's answer about `token`. Status 400 counts as an inactive token.
    async fn query_issuer(&self, token: &str) -> Result<IntrospectionResult, ProviderError> {
        match self.query_issuer_strictly(token).await {
            // Some issuers answer so about texts that are not tokens of theirs.
            Err(ProviderError::Status(400)) => Ok(IntrospectionResult::Inactive),
            received => received,
        }
    }

    /// Status 400 is an error here: an unknown issuer may use it for any request that it cannot parse.
    pub(super) async fn query_issuer_strictly(&self, token: &str) -> Result<IntrospectionResult, ProviderError> {
        let form = format!("token={}&token_type_hint=access_token", utf8_percent_encode(token, ESCAPED));
        let body = self.http.post_form(&self.url, self.authorization.clone(), form).await?;
        let mut claims: Map<String, Value> = serde_json::from_slice(&body).map_err(|_| ProviderError::NotJson)?;
        let Some(Value::Bool(is_active)) = claims.remove("active") else {
            return Err(ProviderError::other("its answer does not say whether the token is active"));
        };
        // Some issuers send null for absent claims.
        claims.retain(|_, value| !value.is_null());
        Ok(if is_active { IntrospectionResult::Active(claims) } else { IntrospectionResult::Inactive })
    }
}

const QUERIES_MAX: usize = 32;
const QUERIES_PER_NETWORK_MAX: usize = 8;

struct IntrospectionPermits {
    all: Semaphore,
    queues: Mutex<HashMap<Option<IpAddr>, Arc<Semaphore>>>,
}

/// One permit, released when it is dropped.
struct IntrospectionPermit<'a> {
    _shared: Option<SemaphorePermit<'a>>,
    _of_network: Option<OwnedSemaphorePermit>,
    _queue: NetworkQueue<'a>,
}

struct NetworkQueue<'a> {
    permits: &'a IntrospectionPermits,
    network: Option<IpAddr>,
    semaphore: Arc<Semaphore>,
}

impl Default for IntrospectionPermits {
    fn default() -> Self {
        Self { all: Semaphore::new(QUERIES_MAX), queues: Mutex::default() }
    }
}

impl IntrospectionPermits {
    /// The queue of its network comes first, so that a waiting request holds no shared permit.
    async fn acquire(&self, peer: Option<IpAddr>) -> IntrospectionPermit<'_> {
        let network = peer.map(quota_address);
        let semaphore = self
            .queues
            .lock()
            .entry(network)
            .or_insert_with(|| Arc::new(Semaphore::new(QUERIES_PER_NETWORK_MAX)))
            .clone();
        let queue = NetworkQueue { permits: self, network, semaphore };
        // The semaphores are never closed.
        let network_permit = queue.semaphore.clone().acquire_owned().await.ok();
        let shared_permit = self.all.acquire().await.ok();
        IntrospectionPermit { _shared: shared_permit, _of_network: network_permit, _queue: queue }
    }
}

impl Drop for NetworkQueue<'_> {
    fn drop(&mut self) {
        let mut queues = self.permits.queues.lock();
        // One reference is in the map, the other is this one.
        let is_last = Arc::strong_count(&self.semaphore) <= 2;
        if is_last {
            queues.remove(&self.network);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn one_network_cannot_take_all_permits() {
        let introspection_permits = IntrospectionPermits::default();
        let of = |peer: &str| introspection_permits.acquire(peer.parse().ok()).now_or_never();
        let of_one: Vec<_> = (0..=QUERIES_PER_NETWORK_MAX).map(|number| of(&format!("2001:db8::{number:x}"))).collect();
        assert_eq!(of_one.iter().flatten().count(), QUERIES_PER_NETWORK_MAX);
        let others: Vec<_> = (0..=QUERIES_MAX).map(|number| of(&format!("10.0.0.{number}"))).collect();
        assert_eq!(others.iter().flatten().count(), QUERIES_MAX - QUERIES_PER_NETWORK_MAX);
        drop(of_one);
        assert!(of("2001:db8::1").is_some());
        drop(others);
        assert!(introspection_permits.queues.lock().is_empty());
    }
}
