//! Token introspection at the issuer ([RFC 7662](https://www.rfc-editor.org/rfc/rfc7662)).

use std::collections::HashMap;
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use lru::LruCache;
use parking_lot::Mutex;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Url;
use reqwest::header::HeaderValue;
use serde_json::{Map, Value};
use tidegate_core::Principal;
use tokio::sync::OnceCell;
use tokio::time::timeout;

use super::options::{IntrospectionOptions, Seconds, TokenOptionsError};
use super::permits::IntrospectionPermits;
use crate::provider::{LogThrottle, ProviderClient, ProviderError, REQUEST_TIMEOUT, parse_url};
use crate::secret::Digest;

/// Rejected tokens in the cache at most; the least recently used one is evicted.
const REJECTED_MAX: NonZeroUsize = match NonZeroUsize::new(10_000) {
    Some(count) => count,
    None => NonZeroUsize::MIN,
};
const REJECTED_SECONDS: Seconds = 5.0;
/// Characters that are percent-encoded in a form field.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'*').remove(b'-').remove(b'.').remove(b'_');

/// The result of one introspection, shared by all requests that wait for it.
type IntrospectionOutcome = Option<Arc<Principal>>;

pub(super) struct Introspector {
    url: Url,
    authorization: HeaderValue,
    http: ProviderClient,
    permits: IntrospectionPermits,
    /// Each has at least one waiting request, so their number is bounded by the open requests.
    in_flight: Mutex<HashMap<Digest, Arc<OnceCell<IntrospectionOutcome>>>>,
    rejected: Mutex<LruCache<Digest, Seconds>>,
    failures: LogThrottle,
}

pub(super) enum IntrospectionResult {
    /// The token is active and has these claims.
    Active(Map<String, Value>),
    Inactive,
    /// The issuer could not be reached, or did not answer as specified.
    Unavailable,
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
            in_flight: Mutex::default(),
            rejected: Mutex::new(LruCache::new(REJECTED_MAX)),
            failures: LogThrottle::default(),
        })
    }

    pub(super) fn was_recently_rejected(&self, digest: &Digest, now: Seconds) -> bool {
        let mut rejected = self.rejected.lock();
        match rejected.get(digest) {
            Some(until) if now < *until => true,
            Some(_) => {
                rejected.pop(digest);
                false
            }
            None => false,
        }
    }

    pub(super) fn remember_rejected(&self, digest: Digest, now: Seconds) {
        self.rejected.lock().put(digest, now + REJECTED_SECONDS);
    }

    /// Runs once for all concurrent requests with the same token. If the running one is dropped, another one continues.
    pub(super) async fn run_once(
        &self,
        digest: Digest,
        introspection: impl Future<Output = IntrospectionOutcome>,
    ) -> IntrospectionOutcome {
        let flight = InFlightQuery::join(&self.in_flight, digest);
        let outcome = timeout(REQUEST_TIMEOUT, flight.cell.get_or_init(|| introspection)).await;
        if outcome.is_err() {
            self.log_failure(&ProviderError::timed_out());
        }
        outcome.ok()?.clone()
    }

    pub(super) async fn introspect(&self, token: &str, peer: Option<IpAddr>) -> IntrospectionResult {
        let _permit = self.permits.acquire(peer).await;
        match self.query_issuer(token).await {
            Ok(result) => {
                if self.failures.clear() {
                    tracing::info!(issuer = self.url.host_str(), "token introspection works again");
                }
                result
            }
            Err(failure) => {
                self.log_failure(&failure);
                IntrospectionResult::Unavailable
            }
        }
    }

    /// The issuer's answer about `token`. Status 400 counts as an inactive token.
    pub(super) async fn query_issuer(&self, token: &str) -> Result<IntrospectionResult, ProviderError> {
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

    fn log_failure(&self, failure: &ProviderError) {
        if let Some(times) = self.failures.record_occurrence() {
            tracing::warn!(issuer = self.url.host_str(), times, "token introspection failed: {failure}");
        }
    }
}

/// A request that waits for an introspection. The last one to leave removes it from the map.
struct InFlightQuery<'a> {
    open: &'a Mutex<HashMap<Digest, Arc<OnceCell<IntrospectionOutcome>>>>,
    digest: Digest,
    cell: Arc<OnceCell<IntrospectionOutcome>>,
}

impl<'a> InFlightQuery<'a> {
    fn join(open: &'a Mutex<HashMap<Digest, Arc<OnceCell<IntrospectionOutcome>>>>, digest: Digest) -> Self {
        let cell = open.lock().entry(digest).or_default().clone();
        Self { open, digest, cell }
    }
}

impl Drop for InFlightQuery<'_> {
    fn drop(&mut self) {
        let mut open = self.open.lock();
        // A finished introspection is removed at once: its result is cached elsewhere or not worth caching. A later
        // request may have added a cell of its own, which must stay.
        let is_ours = open.get(&self.digest).is_some_and(|cell| Arc::ptr_eq(cell, &self.cell));
        let is_last = Arc::strong_count(&self.cell) <= 2;
        if is_ours && (is_last || self.cell.initialized()) {
            open.remove(&self.digest);
        }
    }
}
