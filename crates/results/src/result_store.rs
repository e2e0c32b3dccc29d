//! The store of all results of a node: it creates, finds, pages, expires and evicts them.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use lru::LruCache;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tidegate_core::{Caller, CallerIdentity, Error, ErrorKind, LinkVerifier, StoredResultStats, StoredResults};
use tokio::task::AbortHandle;

use crate::folder::{self, ProcessFolder};
use crate::links::{Cursor, ResultSigner, expired_error, ms_since_1970, now_ms, to_ms};
use crate::manifest::{ResultHeader, ResultId};
use crate::quota::{self, StoreLimits, has_ended};
use crate::result::{ResultEnd, StoredResult, run_blocking};

const LINK_LIFETIME: Duration = Duration::from_secs(5 * 60);
const SWEEP_INTERVAL: Duration = Duration::from_secs(10);
/// The number of removed results whose reason is remembered.
const REMOVED_MAX: usize = 1_000;

const ANSWERS_MAX: NonZeroUsize = NonZeroUsize::new(1_000).unwrap();

/// Identifies a statement over data in a known state, run with known rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CacheKey([u8; 32]);

impl CacheKey {
    /// The key of `parts`, which together contain everything that the answer may depend on.
    pub fn from_parts(parts: &[&str]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part.as_bytes());
        }
        Self(hash.finalize().into())
    }
}

#[derive(Debug, Default)]
pub(crate) struct StoreCounters {
    pub(crate) blocks_written: AtomicU64,
    blocks_read: AtomicU64,
    block_bytes_read: AtomicU64,
    expired: AtomicU64,
    evicted: AtomicU64,
}

/// All stored results of a node.
pub struct ResultStore {
    pub(crate) folder: ProcessFolder,
    limits: StoreLimits,
    signer: ResultSigner,
    index: Mutex<ResultIndex>,
    /// The number of the newest result.
    last_number: AtomicU64,
    sweeper: Mutex<Option<AbortHandle>>,
    pub(crate) answers: Mutex<LruCache<CacheKey, ResultId>>,
    pub(crate) counters: Arc<StoreCounters>,
}

#[derive(Default)]
struct ResultIndex {
    results: HashMap<ResultId, Arc<StoredResult>>,
    removed: VecDeque<(ResultId, CallerIdentity)>,
}

impl ResultStore {
    /// Opens the store in its own subfolder of `root` and recovers the results that an earlier process left there. Must
    /// be called within a tokio runtime.
    ///
    /// # Errors
    /// `Unavailable` when the folder cannot be created, read or written.
    pub async fn open(root: &Path, limits: StoreLimits) -> Result<Arc<Self>, Error> {
        let path = root.to_owned();
        let unusable = |error: std::io::Error| {
            let message = format!("the folder of the stored results cannot be used: {}: {error}", root.display());
            Error::new(ErrorKind::Unavailable, message)
        };
        let (folder, key, found) = run_blocking(move || {
            let folder = ProcessFolder::claim(&path)?;
            folder.remove_expired_in_other_folders(now_ms());
            let (key, found) = (folder.read_or_create_key()?, folder.recover_results()?);
            Ok((folder, key, found))
        })
        .await
        .map_err(unusable)?;
        let last_number = found.iter().map(|recovered| recovered.head.number).max().unwrap_or_default();
        let store = Self {
            folder,
            limits,
            signer: ResultSigner::new(&key),
            index: Mutex::default(),
            last_number: AtomicU64::new(last_number),
            sweeper: Mutex::default(),
            answers: Mutex::new(LruCache::new(ANSWERS_MAX)),
            counters: Arc::default(),
        };
        let store = Arc::new(store);
        for recovered in found {
            let folder = store.folder.result_path(recovered.head.id);
            if let Some(result) = StoredResult::recover(recovered, folder).await {
                store.index.lock().results.insert(result.header.id, result);
            }
        }
        store.sweep().await;
        let sweeper = tokio::spawn(run_sweeper(Arc::downgrade(&store)));
        *store.sweeper.lock() = Some(sweeper.abort_handle());
        Ok(store)
    }

    /// The limits of the store.
    pub fn limits(&self) -> &StoreLimits {
        &self.limits
    }

    /// The subfolder of this process, which no other process uses.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The number of results.
    pub fn len(&self) -> usize {
        self.index.lock().results.len()
    }

    /// Whether the store has no results.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The result `id`, if it belongs to `caller`.
    ///
    /// # Errors
    /// `NotFound`, the same for results that do not exist and results of other owners. The owner receives a different
    /// error for an expired result.
    pub fn get(&self, id: ResultId, caller: &Caller) -> Result<Arc<StoredResult>, Error> {
        let owner = CallerIdentity::from_caller(caller);
        let index = self.index.lock();
        match index.results.get(&id).filter(|result| result.header.owner == owner) {
            Some(result) if result.header.expires_at_ms > now_ms() => Ok(result.clone()),
            Some(_) => Err(expired_error()),
            None if index.removed.contains(&(id, owner)) => Err(expired_error()),
            None => Err(id.not_found()),
        }
    }

    /// The number of a new result. Several can begin in one millisecond, and a clock can be set back.
    pub(crate) fn next_number(&self) -> u64 {
        self.last_number.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The results of `caller`, newest first.
    pub fn list(&self, caller: &Caller) -> Vec<Arc<StoredResult>> {
        let owner = CallerIdentity::from_caller(caller);
        let mut results: Vec<_> =
            self.index.lock().results.values().filter(|result| result.header.owner == owner).cloned().collect();
        let order = |ResultHeader { number, created_at_ms, id, .. }: &ResultHeader| (*number, *created_at_ms, *id);
        results.sort_by_key(|result| std::cmp::Reverse(order(&result.header)));
        results
    }

    /// The result of `caller` that has this name as a table: its identifier, or the name that the caller chose. Of several
    /// with the same name, it is the newest.
    pub fn find_table(&self, name: &str, caller: &Caller) -> Option<Arc<StoredResult>> {
        if let Some(id) = ResultId::from_table_name(name) {
            return self.get(id, caller).ok();
        }
        let now = now_ms();
        let is_named = |result: &Arc<StoredResult>| {
            result.header.alias.as_deref() == Some(name) && result.header.expires_at_ms > now
        };
        self.list(caller).into_iter().find(is_named)
    }

    /// The cached answer for `key`, if it is complete and not older than `age`.
    pub fn cached_answer(&self, key: &CacheKey, age: Option<Duration>, caller: &Caller) -> Option<Arc<StoredResult>> {
        let id = *self.answers.lock().get(key)?;
        let result = self.get(id, caller).ok()?;
        let is_young = age.is_none_or(|age| now_ms() < result.header.created_at_ms.saturating_add(to_ms(age)));
        // A damaged result is not reused.
        (is_young && result.is_complete()).then_some(result)
    }

    /// Stores `id` as the answer for `key`.
    pub(crate) fn cache_answer(&self, key: CacheKey, id: ResultId) {
        self.answers.lock().put(key, id);
    }

    /// Counts a block of this size that is sent to a caller.
    pub fn count_read_block(&self, bytes: u64) {
        self.counters.blocks_read.fetch_add(1, Ordering::Relaxed);
        self.counters.block_bytes_read.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Creates a cursor to `row` of `result`, valid only for `caller` and the query `query_id`.
    pub fn create_cursor(&self, result: &StoredResult, row: u64, query_id: u64, caller: &Caller) -> String {
        let ResultHeader { id, expires_at_ms, .. } = result.header;
        let cursor = Cursor { result: id, row, query_id, expires_at_ms };
        self.signer.sign_cursor(&cursor, &CallerIdentity::from_caller(caller))
    }

    /// The result and the row that `cursor` refers to.
    ///
    /// # Errors
    /// `InvalidArguments` for a cursor that `caller` never received or that belongs to another query; `NotFound` when
    /// it has expired.
    pub fn resolve_cursor(
        &self,
        cursor: &str,
        query_id: u64,
        caller: &Caller,
    ) -> Result<(Arc<StoredResult>, u64), Error> {
        let cursor = self.signer.verify_cursor(cursor, &CallerIdentity::from_caller(caller))?;
        if cursor.query_id != query_id {
            let message = "the cursor belongs to a call with other arguments";
            return Err(Error::new(ErrorKind::InvalidArguments, message)
                .with_hint("Repeat the arguments of that call; only cursor, delivery, format, limit, max_rows, mode, no_cache and save_as may differ."));
        }
        Ok((self.get(cursor.result, caller)?, cursor.row))
    }

    /// Creates a short-lived link to `result`, and returns it with its expiry in milliseconds since 1970. The link acts
    /// for `reader` and expires no later than the credential of `reader`.
    pub fn create_link(&self, result: &StoredResult, reader: &Caller) -> (String, u64) {
        let good_until_ms = reader.principal.expires_at.map_or(u64::MAX, ms_since_1970);
        let expires_at_ms = good_until_ms.min(now_ms() + to_ms(LINK_LIFETIME));
        let holder = result.link_holders.lock().register(reader, expires_at_ms);
        (self.signer.sign_link(result.header.id, holder, expires_at_ms), expires_at_ms)
    }

    /// Removes expired results.
    pub async fn sweep(&self) {
        let now = now_ms();
        let late: Vec<Arc<StoredResult>> = {
            let mut index = self.index.lock();
            index.results.values().for_each(|result| result.link_holders.lock().remove_expired(now));
            let late = index.results.values().filter(|it| it.header.expires_at_ms <= now && has_ended(it));
            let late: Vec<_> = late.cloned().collect();
            late.iter().for_each(|result| index.remove(result, "it has expired"));
            late
        };
        self.counters.expired.fetch_add(late.len() as u64, Ordering::Relaxed);
        remove_files(late).await;
    }

    pub(crate) async fn make_room(&self, writing: &StoredResult, bytes: u64) -> Result<(), Error> {
        let folder = self.folder.path().to_owned();
        let free = run_blocking(move || Ok(folder::free_bytes(&folder))).await.ok().flatten();
        let unavailable = |message: &str| {
            Error::new(ErrorKind::Unavailable, message)
                .with_hint("Request less data, or retry later: stored results expire.")
        };
        let leaving = {
            let mut index = self.index.lock();
            let leaving = quota::choose_evictions(&index.results, &self.limits, writing, bytes);
            let leaving = leaving.map_err(|shortage| unavailable(shortage.room_message()))?;
            let freed: u64 = leaving.iter().map(|result| result.occupied_bytes()).sum();
            let needed = self.limits.free_bytes.saturating_add(bytes);
            if free.is_some_and(|free| free.saturating_add(freed) < needed) {
                return Err(unavailable("the server's disk has too little free space"));
            }
            writing.reserve_bytes(bytes);
            leaving.iter().for_each(|result| index.remove(result, "it was removed to make room for newer results"));
            leaving
        };
        self.counters.evicted.fetch_add(leaving.len() as u64, Ordering::Relaxed);
        remove_files(leaving).await;
        Ok(())
    }

    pub(crate) fn admit(&self, result: &Arc<StoredResult>) -> Result<(), Error> {
        let mut index = self.index.lock();
        quota::check_writer_limits(&index.results, &self.limits, &result.header.owner).map_err(|shortage| {
            let (message, hint) = shortage.writers_message();
            Error::new(ErrorKind::RateLimited, message).with_hint(hint)
        })?;
        index.results.insert(result.header.id, result.clone());
        Ok(())
    }

    /// Removes a result without rows. Blocks the thread.
    pub(crate) fn discard(&self, result: &StoredResult) {
        self.index.lock().results.remove(&result.header.id);
        // The folder has a manifest and no block. If it cannot be deleted, the next start deletes it.
        let _ = folder::delete_result(&result.folder);
    }
}

async fn remove_files(results: Vec<Arc<StoredResult>>) {
    if results.is_empty() {
        return;
    }
    let cleared = run_blocking(move || {
        for result in results {
            // The next start finds and deletes what remains.
            let _ = folder::delete_result(&result.folder);
        }
        Ok(())
    });
    // The task finishes even if this future is dropped.
    let _ = cleared.await;
}

impl ResultIndex {
    fn remove(&mut self, result: &Arc<StoredResult>, reason: &str) {
        self.results.remove(&result.header.id);
        if self.removed.len() >= REMOVED_MAX {
            self.removed.pop_front();
        }
        self.removed.push_back((result.header.id, result.header.owner.clone()));
        result.progress.send_modify(|stage| stage.end = Some(ResultEnd::Removed(reason.to_owned())));
    }
}

tidegate_core::impl_debug!(ResultStore { folder, limits });

impl StoredResults for ResultStore {
    fn stats(&self) -> StoredResultStats {
        let results: Vec<Arc<StoredResult>> = self.index.lock().results.values().cloned().collect();
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        StoredResultStats {
            results: results.len() as u64,
            bytes: results.iter().map(|result| result.occupied_bytes()).sum(),
            running: results.iter().filter(|result| !has_ended(result)).count() as u64,
            blocks_written: count(&self.counters.blocks_written),
            blocks_read: count(&self.counters.blocks_read),
            block_bytes_read: count(&self.counters.block_bytes_read),
            expired: count(&self.counters.expired),
            evicted: count(&self.counters.evicted),
        }
    }
}

impl LinkVerifier for ResultStore {
    fn verify_link(&self, id: &str, link: &str) -> Option<Caller> {
        let id = id.parse().ok()?;
        let holder = self.signer.verify_link(link, id)?;
        let result = self.index.lock().results.get(&id).cloned()?;
        result.link_holders.lock().get(holder)
    }
}

impl Drop for ResultStore {
    fn drop(&mut self) {
        if let Some(sweeper) = self.sweeper.get_mut() {
            sweeper.abort();
        }
    }
}

async fn run_sweeper(store: Weak<ResultStore>) {
    loop {
        tokio::time::sleep(SWEEP_INTERVAL).await;
        let Some(store) = store.upgrade() else { return };
        store.sweep().await;
    }
}

pub(crate) fn unwritable_error(error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, "the server cannot write stored results now").with_detail(error.to_string())
}
