//! What many calls need, and is slow to prepare: prepared once for all of them, by a task that no caller can cancel.
//!
//! A catalog, the answer of an issuer or an inspected role takes a round trip or more. If each caller prepared it, callers that
//! arrive together would all do the work, and a caller that leaves would take the work of all with it: after a storm of clients
//! that leave, nothing would ever be ready. Here, a value is loaded by a task of its own. Callers only wait for it.
//!
//! The crate `moka` loads a value in one of the futures that wait for it, and has no age after which a value is used and
//! loaded anew. The other caches of Tidegate are bounded maps (`lru`). Those that expire use the clock of tokens, which
//! tests set, or rules that `moka` does not have either.

use std::hash::Hash;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use lru::LruCache;
use parking_lot::Mutex;
use tidegate_core::{Error, ErrorKind};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

/// How long the values of a [`LoadingCache`] are used.
#[derive(Debug, Clone, Copy)]
pub struct CacheAges {
    /// A value of this age is used, and loaded anew in the background.
    pub refresh_after: Duration,
    /// A value of this age is no longer used: callers wait for a new one. With zero, none is kept.
    pub expire_after: Duration,
    /// How long a load may take.
    pub load_timeout: Duration,
    /// The maximum number of keys; the least recently used one is forgotten first.
    pub keys_max: NonZeroUsize,
}

/// Values by key. Each is loaded at most once at a time, in a task that goes on when its callers leave.
///
/// Dropping the cache ends its tasks.
pub struct LoadingCache<K: Hash + Eq, V> {
    entries: Arc<Mutex<LruCache<K, Entry<V>>>>,
    ages: CacheAges,
    closed: CancellationToken,
    /// Ends the tasks when the cache is dropped.
    _close: DropGuard,
}

/// The outcome of a load; `None` while it runs.
type Outcome<V> = Option<Result<Arc<V>, Error>>;

struct Entry<V> {
    value: Option<(Instant, Arc<V>)>,
    /// The running load. Closed without an outcome if the task was ended.
    loading: Option<watch::Receiver<Outcome<V>>>,
}

impl<V> Default for Entry<V> {
    fn default() -> Self {
        Self { value: None, loading: None }
    }
}

impl<K, V> LoadingCache<K, V>
where
    K: Hash + Eq + Clone + Send + 'static,
    V: Send + Sync + 'static,
{
    /// An empty cache.
    pub fn new(ages: CacheAges) -> Self {
        let closed = CancellationToken::new();
        let entries = Arc::new(Mutex::new(LruCache::new(ages.keys_max)));
        Self { entries, ages, _close: closed.clone().drop_guard(), closed }
    }

    /// The value of `key`. Waits only if there is none that may be used; `load` runs only if none is being loaded.
    ///
    /// # Errors
    /// The error of the load that the call waited for; `Unavailable` if it took too long. Errors are not kept.
    pub async fn get<F>(&self, key: &K, load: impl FnOnce() -> F) -> Result<Arc<V>, Error>
    where
        F: Future<Output = Result<V, Error>> + Send + 'static,
    {
        let mut loading = match self.find_or_load(key, load) {
            Ok(value) => return Ok(value),
            Err(loading) => loading,
        };
        match loading.wait_for(Option::is_some).await.map(|outcome| outcome.clone()) {
            Ok(Some(outcome)) => outcome,
            _ => Err(Error::new(ErrorKind::Unavailable, "what the call needs is being closed")),
        }
    }

    /// The value of `key` if there is one that may be used. Never waits: otherwise the value is loaded in the background.
    pub fn peek<F>(&self, key: &K, load: impl FnOnce() -> F) -> Option<Arc<V>>
    where
        F: Future<Output = Result<V, Error>> + Send + 'static,
    {
        self.find_or_load(key, load).ok()
    }

    /// The value of `key` if it may be used, else its load. A value that is not new is loaded, too.
    fn find_or_load<F>(&self, key: &K, load: impl FnOnce() -> F) -> Result<Arc<V>, watch::Receiver<Outcome<V>>>
    where
        F: Future<Output = Result<V, Error>> + Send + 'static,
    {
        let mut entries = self.entries.lock();
        let entry = entries.get_or_insert_mut(key.clone(), Entry::default);
        let known = entry.value.as_ref().map(|(loaded_at, value)| (loaded_at.elapsed(), value.clone()));
        match known {
            Some((age, value)) if age < self.ages.refresh_after => Ok(value),
            Some((age, value)) if age < self.ages.expire_after => {
                self.begin(key, entry, load);
                Ok(value)
            }
            _ => Err(self.begin(key, entry, load)),
        }
    }

    /// Starts to load the value of `key`, unless it is being loaded. Returns the load to wait for.
    fn begin<F>(&self, key: &K, entry: &mut Entry<V>, load: impl FnOnce() -> F) -> watch::Receiver<Outcome<V>>
    where
        F: Future<Output = Result<V, Error>> + Send + 'static,
    {
        if let Some(loading) = &entry.loading {
            return loading.clone();
        }
        let (sender, receiver) = watch::channel(None);
        entry.loading = Some(receiver.clone());
        let (entries, closed, key) = (self.entries.clone(), self.closed.clone(), key.clone());
        let work = tokio::time::timeout(self.ages.load_timeout, load());
        let CacheAges { load_timeout: limit, expire_after, .. } = self.ages;
        tokio::spawn(async move {
            // A task of its own, so that a panic is an error for all callers and not an endless load.
            let mut task = tokio::spawn(work);
            let loaded = tokio::select! {
                loaded = &mut task => loaded,
                () = closed.cancelled() => {
                    task.abort();
                    return;
                }
            };
            let outcome = match loaded {
                Ok(Ok(outcome)) => outcome.map(Arc::new),
                Ok(Err(_)) => Err(timeout_error(limit)),
                Err(error) => Err(Error::internal(error.to_string())),
            };
            if let Some(entry) = entries.lock().peek_mut(&key) {
                entry.loading = None;
                if let Ok(value) = &outcome {
                    entry.value = (!expire_after.is_zero()).then(|| (Instant::now(), value.clone()));
                }
            }
            sender.send_replace(Some(outcome));
        });
        receiver
    }
}

fn timeout_error(limit: Duration) -> Error {
    let message = format!("what the call needs was not ready within {} s", limit.as_secs_f64());
    Error::new(ErrorKind::Unavailable, message).with_hint("Try again later.")
}
