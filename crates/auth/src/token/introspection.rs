//! Token introspection at the issuer ([RFC 7662](https://www.rfc-editor.org/rfc/rfc7662)).
//!
//! Concurrent introspections are limited, in total and for each network. A client that sends many invalid tokens waits in
//! the queue of its own network and does not delay others.

use std::collections::HashMap;
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use lru::LruCache;
use parking_lot::Mutex;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Url;
use reqwest::header::HeaderValue;
use serde_json::{Map, Value};
use tidegate_core::{Error, ErrorKind, Principal, quota_address};
use tidegate_runtime::{CacheAges, LoadingCache};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::verifier::{TokenPrincipals, seconds_of};
use super::{IntrospectionOptions, Seconds, TokenOptionsError};
use crate::provider::{LogThrottle, ProviderClient, ProviderError, REQUEST_TIMEOUT, parse_url};
use crate::secret::Digest;

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
