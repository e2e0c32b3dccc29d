//! The keys of an issuer as it shows them over the network: fetched in the background, kept, and fetched again.
//!
//! Nobody waits for keys that are there. Who shows a token of a key that is not there waits for the fetch that brings
//! it, and all who do wait for the same one.

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
use crate::clock::Clock;
use crate::digest::{Digest, sha256_of};
use crate::provider::{self, LogThrottle, ProviderClient, ProviderError, ProviderResponse, REQUEST_TIMEOUT};

/// How long keys are kept if the issuer does not say so, and the bounds of what it may say.
const FRESH_FOR: Duration = Duration::from_secs(5 * 60);
const FRESH_FOR_MIN: Duration = Duration::from_secs(60);
const FRESH_FOR_MAX: Duration = Duration::from_secs(60 * 60);
/// How much longer keys count while the issuer cannot be asked.
const STALE_FOR: Duration = Duration::from_secs(60 * 60);
/// The least time from one fetch to the next, whoever asks for it.
const FETCH_INTERVAL_MIN: Duration = Duration::from_secs(10);

/// Where an issuer shows its keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KeySource {
    /// There.
    Url(Url),
    /// Where the metadata of this issuer say. As text, for they must say the very same, and as an address.
    Discovery { issuer: String, url: Url },
}

/// The keys that an issuer shows. Dropping it ends what goes on in the background.
pub(super) struct FetchedKeys {
    shared: Arc<FetcherState>,
    worker: OnceLock<AbortHandle>,
}

struct FetcherState {
    source: KeySource,
    /// Those that tokens may be signed with; the log hears of those that no key can check.
    algorithms: Vec<TokenAlgorithm>,
    http: ProviderClient,
    clock: Clock,
    keys: ArcSwapOption<FetchedKeySet>,
    /// Changes whenever the keys do.
    epoch: AtomicU64,
    attempts: watch::Sender<FetchAttempts>,
    fetch_requested: Notify,
    failures: LogThrottle,
}

/// What an issuer showed.
struct FetchedKeySet {
    keys: Arc<KeyRing>,
    digest: Digest,
    at: DateTime<Utc>,
    fresh_for: Duration,
}

/// How often the issuer was asked.
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

    /// Whether `other` fetches the same for the same purpose.
    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        self.shared.source == other.shared.source && self.shared.algorithms == other.shared.algorithms
    }

    /// Begins to fetch, if that has not begun and there is a runtime to do it.
    pub(super) fn start(&self) {
        if let (None, Ok(runtime)) = (self.worker.get(), Handle::try_current()) {
            self.worker.get_or_init(|| runtime.spawn(run_fetch_loop(self.shared.clone())).abort_handle());
        }
    }

    /// The keys that count at `now`. Where they should be fetched again, that begins, and nobody waits for it.
    pub(super) fn current_keys(&self, now: DateTime<Utc>) -> Option<Arc<KeyRing>> {
        self.start();
        let guard = self.shared.keys.load();
        let fetched_key_set = guard.as_ref()?;
        // Where the clock went back, nobody knows how old they are.
        let age = now.signed_duration_since(fetched_key_set.at).to_std().ok();
        if age.is_none_or(|age| age >= fetched_key_set.fresh_for) && self.shared.may_start_fetch(now) {
            self.shared.fetch_requested.notify_one();
        }
        age.is_none_or(|age| age < fetched_key_set.fresh_for + STALE_FOR).then(|| fetched_key_set.keys.clone())
    }

    /// Which keys these are. What was found out with others counts no more.
    pub(super) fn epoch(&self) -> u64 {
        self.shared.epoch.load(Ordering::Acquire)
    }

    /// How often the issuer was asked.
    pub(super) fn attempts(&self) -> u64 {
        self.shared.attempts.borrow().ended
    }

    /// Waits until the issuer was asked more often than `attempts` times. Says no where that is not to be waited for:
    /// it was asked a moment ago, or is slow.
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

/// What the issuer shows at `source`.
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

/// Fetches keys as long as nobody ends it.
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
    /// Whether another may begin at `now`: the last one did not begin a moment ago, by a clock that may go back.
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

    /// Fetches the keys, and says after which time to do so again.
    async fn fetch(&self) -> Duration {
        let begun = self.clock.now();
        self.attempts.send_modify(|attempts| {
            attempts.is_running = true;
            attempts.begun = Some(begun);
        });
        let page = timeout(REQUEST_TIMEOUT, fetch_key_set(&self.http, &self.source))
            .await
            .unwrap_or(Err(ProviderError::TimedOut));
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
                    let has_keys = self.keys.load().is_some();
                    tracing::warn!(
                        issuer = self.issuer_name(),
                        times,
                        has_keys,
                        "cannot fetch the issuer's keys: {failure}"
                    );
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

    /// The keys of `fetch_key_set` are those that count from now on. Says for how long.
    fn store_keys(&self, page: &ProviderResponse, at: DateTime<Utc>) -> Result<Duration, ProviderError> {
        let fresh_for = page.fresh_for.unwrap_or(FRESH_FOR).clamp(FRESH_FOR_MIN, FRESH_FOR_MAX);
        let digest = sha256_of(&page.body);
        let before = self.keys.load_full();
        if let Some(same) = before.filter(|before| before.digest == digest) {
            self.keys.store(Some(Arc::new(FetchedKeySet { keys: same.keys.clone(), digest, at, fresh_for })));
            return Ok(fresh_for);
        }
        let keys = KeyRing::from_jwks(&page.body).map_err(ProviderError::KeySet)?;
        let unchecked = keys.unsupported_algorithms(&self.algorithms);
        tracing::info!(issuer = self.issuer_name(), keys = keys.len(), "the issuer published new keys");
        if !unchecked.is_empty() {
            tracing::warn!(
                issuer = self.issuer_name(),
                "none of the issuer's keys supports {}",
                join_names(&unchecked)
            );
        }
        self.keys.store(Some(Arc::new(FetchedKeySet { keys: Arc::new(keys), digest, at, fresh_for })));
        // Only then: what is remembered of the epoch to come was found out with the new keys.
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
