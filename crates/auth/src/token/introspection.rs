//! Tokens about which the issuer is asked ([RFC 7662](https://www.rfc-editor.org/rfc/rfc7662)).

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

use super::Seconds;
use super::error::TokenOptionsError;
use super::options::IntrospectionOptions;
use super::permits::IntrospectionPermits;
use crate::digest::Digest;
use crate::provider::{LogThrottle, ProviderClient, ProviderError, REQUEST_TIMEOUT, parse_url};

/// Tokens that are remembered to be none; the one shown longest ago goes first.
const REFUSED_MAX: NonZeroUsize = match NonZeroUsize::new(10_000) {
    Some(count) => count,
    None => NonZeroUsize::MIN,
};
/// How long a token that is none is remembered so.
const REFUSED_SECONDS: Seconds = 5.0;
/// What stands in a form as it is.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'*').remove(b'-').remove(b'.').remove(b'_');

/// What became of a question, for all who asked it at the same time.
type IntrospectionOutcome = Option<Arc<Principal>>;

/// Asks the issuer about tokens.
pub(super) struct Introspector {
    url: Url,
    authorization: HeaderValue,
    http: ProviderClient,
    permits: IntrospectionPermits,
    /// What is asked now; each has a request that waits for it, so there are no more than open requests.
    in_flight: Mutex<HashMap<Digest, Arc<OnceCell<IntrospectionOutcome>>>>,
    rejected: Mutex<LruCache<Digest, Seconds>>,
    failures: LogThrottle,
}

/// What the issuer told of a token.
pub(super) enum IntrospectionResult {
    /// It is good, and this is what it says.
    Active(Map<String, Value>),
    /// It is not.
    Inactive,
    /// The issuer could not be asked.
    Unavailable,
}

impl Introspector {
    pub(super) fn new(options: &IntrospectionOptions) -> Result<Self, TokenOptionsError> {
        let url = parse_url(&options.url)
            .map_err(|reason| TokenOptionsError::Address { member: "the url of introspection", reason })?;
        if options.client_id.is_empty() || options.client_secret.expose().is_empty() {
            return Err(TokenOptionsError::NoClient);
        }
        let escaped = |text| utf8_percent_encode(text, ESCAPED);
        let pair = format!("{}:{}", escaped(&options.client_id), escaped(options.client_secret.expose()));
        // Base64 is always a header's value.
        let mut authorization = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(pair)))
            .map_err(|_| TokenOptionsError::NoClient)?;
        authorization.set_sensitive(true);
        Ok(Self {
            url,
            authorization,
            http: ProviderClient::default(),
            permits: IntrospectionPermits::default(),
            in_flight: Mutex::default(),
            rejected: Mutex::new(LruCache::new(REFUSED_MAX)),
            failures: LogThrottle::default(),
        })
    }

    /// Whether the token of this digest was refused a moment ago.
    pub(super) fn was_recently_rejected(&self, digest: &Digest, now: Seconds) -> bool {
        let mut refused = self.rejected.lock();
        match refused.get(digest) {
            Some(until) if now < *until => true,
            Some(_) => {
                refused.pop(digest);
                false
            }
            None => false,
        }
    }

    /// Remembers for a moment that the token of this digest is none.
    pub(super) fn remember_rejected(&self, digest: Digest, now: Seconds) {
        self.rejected.lock().put(digest, now + REFUSED_SECONDS);
    }

    /// What `find` finds. Of all who want the same at the same time, one does it; if that one goes away, another.
    pub(super) async fn run_once(
        &self,
        digest: Digest,
        find: impl Future<Output = IntrospectionOutcome>,
    ) -> IntrospectionOutcome {
        let flight = InFlightQuery::join(&self.in_flight, digest);
        let found = timeout(REQUEST_TIMEOUT, flight.cell.get_or_init(|| find)).await;
        if found.is_err() {
            self.log_failure(&ProviderError::TimedOut);
        }
        found.ok()?.clone()
    }

    /// Asks the issuer about `token`, which `peer` showed.
    pub(super) async fn introspect(&self, token: &str, peer: Option<IpAddr>) -> IntrospectionResult {
        let _place = self.permits.acquire(peer).await;
        match self.query_issuer(token).await {
            Ok(introspection_result) => {
                if self.failures.clear() {
                    tracing::info!(issuer = self.url.host_str(), "token introspection works again");
                }
                introspection_result
            }
            Err(failure) => {
                self.log_failure(&failure);
                IntrospectionResult::Unavailable
            }
        }
    }

    /// What the issuer tells of `token`.
    pub(super) async fn query_issuer(&self, token: &str) -> Result<IntrospectionResult, ProviderError> {
        match self.query_issuer_strictly(token).await {
            // Some answer so about what is no token of theirs, rather than that it is not active.
            Err(ProviderError::Status(400)) => Ok(IntrospectionResult::Inactive),
            received => received,
        }
    }

    /// The same of an issuer of which nothing is known yet: 400 is what it says to a question that it cannot read, too.
    pub(super) async fn query_issuer_strictly(&self, token: &str) -> Result<IntrospectionResult, ProviderError> {
        let form = format!("token={}&token_type_hint=access_token", utf8_percent_encode(token, ESCAPED));
        let body = self.http.post_form(&self.url, self.authorization.clone(), form).await?;
        let mut claims: Map<String, Value> = serde_json::from_slice(&body).map_err(|_| ProviderError::NotJson)?;
        let Some(Value::Bool(is_active)) = claims.remove("active") else { return Err(ProviderError::NotIntrospection) };
        // Some write so what is not there.
        claims.retain(|_, value| !value.is_null());
        Ok(if is_active { IntrospectionResult::Active(claims) } else { IntrospectionResult::Inactive })
    }

    fn log_failure(&self, failure: &ProviderError) {
        if let Some(times) = self.failures.record_occurrence() {
            tracing::warn!(issuer = self.url.host_str(), times, "token introspection failed: {failure}");
        }
    }
}

/// One who waits for an answer about a token. The last one to leave takes the question away.
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
        // Whoever comes after an answer was given asks anew: it was not worth to be remembered, or is remembered. One
        // that came later has a cell of its own, which is not ours to take away.
        let is_ours = open.get(&self.digest).is_some_and(|cell| Arc::ptr_eq(cell, &self.cell));
        let is_last = Arc::strong_count(&self.cell) <= 2;
        if is_ours && (is_last || self.cell.initialized()) {
            open.remove(&self.digest);
        }
    }
}
