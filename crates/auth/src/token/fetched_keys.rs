//! The published keys of an issuer: fetched in the background, cached and refreshed.
//!
//! A request waits only if the key of its token is missing. All such requests wait for the same fetch.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use chrono::{DateTime, Utc};
use reqwest::Url;
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::algorithm::{TokenAlgorithm, join_names};
use super::key_ring::KeyRing;
use super::options::{TokenKey, TokenOptionsError};
use crate::clock::Clock;
use crate::provider::{self, LogThrottle, ProviderClient, ProviderError, ProviderResponse, REQUEST_TIMEOUT, parse_url};
use crate::secret::{Digest, sha256_of};

/// How long keys are fresh if the issuer does not specify it, and the bounds of what it specifies.
const FRESH_FOR: Duration = Duration::from_secs(5 * 60);
const FRESH_FOR_MIN: Duration = Duration::from_secs(60);
const FRESH_FOR_MAX: Duration = Duration::from_secs(60 * 60);
/// How much longer keys are used while the issuer is unavailable.
const STALE_FOR: Duration = Duration::from_secs(60 * 60);
const FETCH_INTERVAL_MIN: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KeySource {
    Url(Url),
    /// At the URL in the metadata of `issuer`. Kept as text too, because the metadata must repeat it exactly.
    Discovery {
        issuer: String,
        url: Url,
    },
}

impl KeySource {
    /// Where `issuer` publishes its keys, if they are fetched.
    pub(super) fn find(key: &TokenKey, issuer: &str) -> Result<Option<Self>, TokenOptionsError> {
        let parse =
            |member, text| parse_url(text).map_err(|problem| TokenOptionsError::new(format!("{member} {problem}")));
        Ok(match key {
            TokenKey::JwksUrl(url) => Some(Self::Url(parse("the jwks_url", url)?)),
            TokenKey::Discovery => {
                let url = parse("the issuer, whose metadata are fetched,", issuer)?;
                Some(Self::Discovery { issuer: issuer.to_owned(), url })
            }
            TokenKey::Jwks(_) | TokenKey::PublicKeyPem(_) | TokenKey::Secret(_) | TokenKey::Introspection(_) => None,
        })
    }
}

/// The published keys of an issuer. Dropping it ends the background task.
pub(super) struct FetchedKeys {
    shared: Arc<FetcherState>,
    worker: OnceLock<AbortHandle>,
}

struct FetcherState {
    source: KeySource,
    /// The accepted algorithms; those that no key supports are logged.
    algorithms: Vec<TokenAlgorithm>,
    http: ProviderClient,
    clock: Clock,
    keys: ArcSwapOption<FetchedKeySet>,
    epoch: AtomicU64,
    attempts: watch::Sender<FetchAttempts>,
    fetch_requested: Notify,
    failures: LogThrottle,
}

struct FetchedKeySet {
    keys: Arc<KeyRing>,
    digest: Digest,
    at: DateTime<Utc>,
    fresh_for: Duration,
}

#[derive(Default)]
struct FetchAttempts {
    ended: u64,
    is_running: bool,
    begun: Option<DateTime<Utc>>,
}

impl FetchedKeys {
    pub(super) fn new(source: KeySource, algorithms: Vec<TokenAlgorithm>, clock: Clock) -> Self {
        let shared = FetcherState {
            source,
            algorithms,
            http: ProviderClient::default(),
            clock,
            keys: ArcSwapOption::empty(),
            epoch: AtomicU64::new(0),
            attempts: watch::Sender::default(),
            fetch_requested: Notify::new(),
            failures: LogThrottle::default(),
        };
        Self { shared: Arc::new(shared), worker: OnceLock::new() }
    }

    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        self.shared.source == other.shared.source && self.shared.algorithms == other.shared.algorithms
    }

    /// Starts the background task, if it is not running and there is a runtime.
    pub(super) fn start(&self) {
        if let (None, Ok(runtime)) = (self.worker.get(), Handle::try_current()) {
            self.worker.get_or_init(|| runtime.spawn(run_fetch_loop(self.shared.clone())).abort_handle());
        }
    }

    /// The keys that are usable at `now`. If they are no longer fresh, a fetch is requested without waiting for it.
    pub(super) fn current_keys(&self, now: DateTime<Utc>) -> Option<Arc<KeyRing>> {
        self.start();
        let guard = self.shared.keys.load();
        let fetched_key_set = guard.as_ref()?;
        // After the clock went back, the age is unknown.
        let age = now.signed_duration_since(fetched_key_set.at).to_std().ok();
        if age.is_none_or(|age| age >= fetched_key_set.fresh_for) && self.shared.may_start_fetch(now) {
            self.shared.fetch_requested.notify_one();
        }
        age.is_none_or(|age| age < fetched_key_set.fresh_for + STALE_FOR).then(|| fetched_key_set.keys.clone())
    }

    /// The version of the keys. Results of other versions are no longer valid.
    pub(super) fn epoch(&self) -> u64 {
        self.shared.epoch.load(Ordering::Acquire)
    }

    pub(super) fn attempts(&self) -> u64 {
        self.shared.attempts.borrow().ended
    }

    /// Waits until more than `attempts` fetches are finished. Returns false if no fetch may start yet, or it times out.
    pub(super) async fn wait_for_fetch_after(&self, attempts: u64, now: DateTime<Utc>) -> bool {
        let mut changes = self.shared.attempts.subscribe();
        {
            let seen = changes.borrow();
            if seen.ended > attempts {
                return true;
            }
            if !seen.is_running && !seen.may_start(now) {
                return false;
            }
        }
        self.shared.fetch_requested.notify_one();
        timeout(REQUEST_TIMEOUT, changes.wait_for(|seen| seen.ended > attempts)).await.is_ok_and(|seen| seen.is_ok())
    }
}

impl Drop for FetchedKeys {
    fn drop(&mut self) {
        if let Some(worker) = self.worker.get() {
            worker.abort();
        }
    }
}

pub(super) async fn fetch_key_set(
    http: &ProviderClient,
    source: &KeySource,
) -> Result<ProviderResponse, ProviderError> {
    match source {
        KeySource::Url(url) => http.get(url).await,
        KeySource::Discovery { issuer, url } => {
            http.get(&provider::discover_key_set_url(http, issuer, url).await?).await
        }
    }
}

async fn run_fetch_loop(shared: Arc<FetcherState>) {
    loop {
        let pause = sleep(shared.fetch().await);
        tokio::pin!(pause);
        loop {
            tokio::select! {
                () = &mut pause => break,
                () = shared.fetch_requested.notified() => if shared.may_start_fetch(shared.clock.now()) { break },
            }
        }
    }
}

impl FetchAttempts {
    /// Whether a fetch may start at `now`: the interval since the last one is over. The clock may go back.
    fn may_start(&self, now: DateTime<Utc>) -> bool {
        let is_pause_over =
            |begun: DateTime<Utc>| now.signed_duration_since(begun).abs().to_std().ok() >= Some(FETCH_INTERVAL_MIN);
        !self.is_running && self.begun.is_none_or(is_pause_over)
    }
}

impl FetcherState {
    fn may_start_fetch(&self, now: DateTime<Utc>) -> bool {
        self.attempts.borrow().may_start(now)
    }

    async fn fetch(&self) -> Duration {
        let begun = self.clock.now();
        self.attempts.send_modify(|attempts| {
            attempts.is_running = true;
            attempts.begun = Some(begun);
        });
        let page = timeout(REQUEST_TIMEOUT, fetch_key_set(&self.http, &self.source))
            .await
            .unwrap_or_else(|_| Err(ProviderError::timed_out()));
        let outcome = page.and_then(|page| self.store_keys(&page, begun));
        let pause = match outcome {
            Ok(fresh_for) => {
                if self.failures.clear() {
                    tracing::info!(issuer = self.issuer_name(), "the issuer's keys are fetched again");
                }
                fresh_for
            }
            Err(failure) => {
                if let Some(times) = self.failures.record_occurrence() {
                    let (issuer, has_keys) = (self.issuer_name(), self.keys.load().is_some());
                    tracing::warn!(issuer, times, has_keys, "cannot fetch the issuer's keys: {failure}");
                }
                FETCH_INTERVAL_MIN
            }
        };
        self.attempts.send_modify(|attempts| {
            attempts.is_running = false;
            attempts.ended += 1;
        });
        pause
    }

    fn store_keys(&self, page: &ProviderResponse, at: DateTime<Utc>) -> Result<Duration, ProviderError> {
        let fresh_for = page.fresh_for.unwrap_or(FRESH_FOR).clamp(FRESH_FOR_MIN, FRESH_FOR_MAX);
        let digest = sha256_of(&page.body);
        let before = self.keys.load_full();
        if let Some(same) = before.filter(|before| before.digest == digest) {
            self.keys.store(Some(Arc::new(FetchedKeySet { keys: same.keys.clone(), digest, at, fresh_for })));
            return Ok(fresh_for);
        }
        let keys = KeyRing::from_jwks(&page.body).map_err(ProviderError::other)?;
        let unsupported = keys.unsupported_algorithms(&self.algorithms);
        tracing::info!(issuer = self.issuer_name(), keys = keys.len(), "the issuer published new keys");
        if !unsupported.is_empty() {
            let issuer = self.issuer_name();
            tracing::warn!(issuer, "none of the issuer's keys supports {}", join_names(&unsupported));
        }
        self.keys.store(Some(Arc::new(FetchedKeySet { keys: Arc::new(keys), digest, at, fresh_for })));
        // Only after the store: results cached for the new epoch must come from the new keys.
        self.epoch.fetch_add(1, Ordering::Release);
        Ok(fresh_for)
    }

    fn issuer_name(&self) -> &str {
        match &self.source {
            KeySource::Url(url) => url.host_str().unwrap_or_default(),
            KeySource::Discovery { issuer, .. } => issuer,
        }
    }
}
