//! The tables of a node as last known, for each identity of callers.
//!
//! A list that is old is returned while a newer one is fetched in the background, so that a statement does not wait for
//! a list that has usually not changed. A statement waits for a list that is older than a minute: a table that the node
//! got since then would be missing without a word. A node that is away keeps its tables.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use lru::LruCache;
use parking_lot::Mutex;
use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_query::{NodeTables, is_node_failure};
use tokio::time::Instant;

use super::node_client::NodeClient;

/// Identities whose tables are kept; the one that was not used for the longest time is forgotten.
const IDENTITIES_MAX: NonZeroUsize = NonZeroUsize::new(256).unwrap();
/// How long a list is fresh.
const FRESH_FOR: Duration = Duration::from_secs(10);
/// How old a list is that is fetched again because it lacks a table. Otherwise a misspelled name in each of many
/// statements would be as many requests to the node.
const NEWER_AFTER: Duration = Duration::from_secs(1);
/// How long a list may be returned while a newer one is fetched.
const USABLE_FOR: Duration = Duration::from_secs(60);
/// The interval of attempts to fetch a list from a node that is away.
const RETRY_AFTER: Duration = Duration::from_secs(5);

pub(super) struct TableCache(Mutex<LruCache<[u8; 32], Arc<CachedTables>>>);

#[derive(Default)]
struct CachedTables {
    state: Mutex<CacheState>,
    /// Held during a fetch.
    fetching: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
struct CacheState {
    tables: Option<(Arc<NodeTables>, Instant)>,
    /// The failure of the last fetch.
    failure: Option<(Error, Instant)>,
    /// Whether a statement found other tables than these.
    is_suspect: bool,
}

enum Cached {
    Fresh(Arc<NodeTables>),
    Old(Arc<NodeTables>),
    /// A fetch failed a moment ago.
    Failed(Error),
    Unknown,
}

impl Default for TableCache {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(IDENTITIES_MAX)))
    }
}

impl CachedTables {
    fn get(&self) -> Cached {
        let state = self.state.lock();
        let has_just_failed = state.failure.as_ref().is_some_and(|(_, at)| at.elapsed() < RETRY_AFTER);
        match (&state.tables, &state.failure) {
            (Some((tables, _)), _) if has_just_failed => Cached::Fresh(tables.clone()),
            (Some(_), _) if state.is_suspect => Cached::Unknown,
            (Some((tables, at)), _) if at.elapsed() < FRESH_FOR => Cached::Fresh(tables.clone()),
            // While the node is away, there is no newer one.
            (Some((tables, at)), failure) if at.elapsed() < USABLE_FOR || failure.is_some() => {
                Cached::Old(tables.clone())
            }
            (None, Some((error, _))) if has_just_failed => Cached::Failed(error.clone()),
            _ => Cached::Unknown,
        }
    }

    /// Makes the next caller wait for a newer list, unless this one is new.
    fn suspect_if_old(&self) {
        let mut state = self.state.lock();
        let is_old = state.tables.as_ref().is_some_and(|(_, at)| at.elapsed() >= NEWER_AFTER);
        state.is_suspect |= is_old;
    }

    /// Stores the result of a fetch, and returns what callers get.
    fn store(&self, fetched: Result<NodeTables, Error>) -> Result<Arc<NodeTables>, Error> {
        let mut state = self.state.lock();
        state.is_suspect = false;
        match fetched {
            Ok(tables) => {
                let tables = Arc::new(tables);
                *state = CacheState { tables: Some((tables.clone(), Instant::now())), ..CacheState::default() };
                Ok(tables)
            }
            Err(error) => {
                state.failure = Some((error.clone(), Instant::now()));
                // A node that refuses the caller is not away.
                let is_refused = matches!(error.kind(), ErrorKind::Unauthenticated | ErrorKind::Forbidden);
                if is_refused || !is_node_failure(&error) {
                    state.tables = None;
                }
                state.tables.as_ref().map(|(tables, _)| tables.clone()).ok_or(error)
            }
        }
    }
}

impl NodeClient {
    /// The tables that `principal` may read, as last known.
    pub(super) async fn known_tables(self: &Arc<Self>, principal: &Principal) -> Result<Arc<NodeTables>, Error> {
        let cached = self.cached_tables(principal);
        match cached.get() {
            Cached::Fresh(tables) => return Ok(tables),
            Cached::Failed(error) => return Err(error),
            Cached::Old(tables) => {
                self.refresh(&cached, principal);
                return Ok(tables);
            }
            Cached::Unknown => {}
        }
        let (client, principal) = (self.clone(), principal.clone());
        self.finish(async move {
            let _fetching = cached.fetching.lock().await;
            // Another caller may have fetched them in the meantime.
            match cached.get() {
                Cached::Fresh(tables) | Cached::Old(tables) => Ok(tables),
                Cached::Failed(error) => Err(error),
                Cached::Unknown => cached.store(client.fetch_tables(&principal).await),
            }
        })
        .await
    }

    /// The tables that `principal` may read, from a list that is at most a second old if the node answers.
    pub(super) async fn newer_tables(self: &Arc<Self>, principal: &Principal) -> Result<Arc<NodeTables>, Error> {
        self.cached_tables(principal).suspect_if_old();
        self.known_tables(principal).await
    }

    /// The next request for the tables of `principal` fetches them, because a statement found others.
    pub(super) fn suspect_tables(&self, principal: &Principal) {
        if let Some(cached) = self.tables.0.lock().peek(&self.identity(principal)) {
            cached.state.lock().is_suspect = true;
        }
    }

    fn cached_tables(&self, principal: &Principal) -> Arc<CachedTables> {
        self.tables.0.lock().get_or_insert(self.identity(principal), Arc::default).clone()
    }

    fn refresh(self: &Arc<Self>, cached: &Arc<CachedTables>, principal: &Principal) {
        let Ok(fetching) = cached.fetching.clone().try_lock_owned() else { return };
        let (client, cached, principal) = (self.clone(), cached.clone(), principal.clone());
        self.spawn(async move {
            let _fetching = fetching;
            // A failure is stored too.
            let _ = cached.store(client.fetch_tables(&principal).await);
        });
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn tables() -> NodeTables {
        NodeTables { tables: Vec::new(), known_since: SystemTime::UNIX_EPOCH }
    }

    #[tokio::test(start_paused = true)]
    async fn an_old_list_is_used_for_a_minute_and_while_the_node_is_away() {
        let cached = CachedTables::default();
        assert!(matches!(cached.get(), Cached::Unknown));
        cached.store(Ok(tables())).unwrap();
        assert!(matches!(cached.get(), Cached::Fresh(_)));
        tokio::time::advance(FRESH_FOR).await;
        assert!(matches!(cached.get(), Cached::Old(_)));
        tokio::time::advance(USABLE_FOR).await;
        assert!(matches!(cached.get(), Cached::Unknown));
        cached.store(Err(Error::new(ErrorKind::Unavailable, "connection refused"))).unwrap();
        tokio::time::advance(RETRY_AFTER).await;
        assert!(matches!(cached.get(), Cached::Old(_)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_without_a_table_is_fetched_again_once_a_second() {
        let cached = CachedTables::default();
        cached.store(Ok(tables())).unwrap();
        cached.suspect_if_old();
        assert!(matches!(cached.get(), Cached::Fresh(_)));
        tokio::time::advance(NEWER_AFTER).await;
        cached.suspect_if_old();
        assert!(matches!(cached.get(), Cached::Unknown));
        cached.store(Ok(tables())).unwrap();
        cached.suspect_if_old();
        assert!(matches!(cached.get(), Cached::Fresh(_)));
    }
}
