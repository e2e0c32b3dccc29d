//! The store of all results of a node: it creates, finds, pages, expires and evicts them.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use lru::LruCache;
use parking_lot::Mutex;
use tidegate_core::{Caller, Error, ErrorKind, LinkVerifier, Owner};
use tidegate_runtime::Job;
use tokio::task::AbortHandle;

use crate::answer_cache::{self, CacheKey};
use crate::block::{ResultBlock, sha256_hex};
use crate::counters::StoreCounters;
use crate::folder::free_bytes;
use crate::folder::{self, ProcessFolder, RecoveredResult, ResultFiles};
use crate::manifest::ResultHeader;
use crate::manifest::{ResultId, not_found_error};
use crate::quota::StoreLimits;
use crate::quota::{self, has_ended};
use crate::result::{ResultEnd, ResultProgress, StoredResult, run_blocking};
use crate::result_file::FileDescription;
use crate::result_writer::{ResultWriter, StoredColumns};
use crate::seal::{Cursor, ResultLink, ResultSeal, expired_error, ms_since_1970, now_ms, to_ms};

/// The lifetime of a link.
const LINK_LIFETIME: Duration = Duration::from_secs(5 * 60);
/// The interval at which the store removes expired results.
const SWEEP_INTERVAL: Duration = Duration::from_secs(10);
/// The number of removed results whose reason is remembered.
const REMOVED_MAX: usize = 1_000;

/// The properties of a new result.
#[derive(Debug, Clone, Copy)]
pub struct NewResult<'a> {
    /// The job that writes it.
    pub job: &'a Job,
    /// The database that is queried.
    pub database: &'a str,
    /// The stamp of the row policies that apply to the caller.
    pub policies: u64,
    /// Maximum bytes of blocks; `None` means up to the quota of the owner.
    pub bytes_max: Option<u64>,
    /// Maximum number of rows.
    pub rows_max: Option<u64>,
}

/// All stored results of a node.
pub struct ResultStore {
    folder: ProcessFolder,
    limits: StoreLimits,
    seal: ResultSeal,
    index: Mutex<ResultIndex>,
    sweeper: Mutex<Option<AbortHandle>>,
    /// The cache of answers that are still valid.
    pub(crate) answers: Mutex<LruCache<CacheKey, ResultId>>,
    /// Shared with the writers.
    pub(crate) counts: Arc<StoreCounters>,
}

#[derive(Default)]
struct ResultIndex {
    results: HashMap<ResultId, Arc<StoredResult>>,
    /// The results that were removed last.
    removed: VecDeque<(ResultId, Owner)>,
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
        let store = Self {
            folder,
            limits,
            seal: ResultSeal::new(&key),
            index: Mutex::default(),
            sweeper: Mutex::default(),
            answers: Mutex::new(answer_cache::new_answer_cache()),
            counts: Arc::default(),
        };
        let store = Arc::new(store);
        for left in found {
            store.recover(left).await;
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

    /// Begins a result with the columns of `schema`, written by the caller of `new_result`.
    ///
    /// # Errors
    /// `RateLimited` when the limit of concurrent writers is reached; `Unavailable` when there is no space or the
    /// folder cannot be created.
    pub async fn begin(
        self: &Arc<Self>,
        new_result: NewResult<'_>,
        columns: StoredColumns,
    ) -> Result<ResultWriter, Error> {
        self.begin_with_file(new_result, columns, None).await
    }

    /// Like [`ResultStore::begin`], for rows that are the bytes of `file`, if it is given.
    pub(crate) async fn begin_with_file(
        self: &Arc<Self>,
        new_result: NewResult<'_>,
        columns: StoredColumns,
        file: Option<FileDescription>,
    ) -> Result<ResultWriter, Error> {
        let created_at_ms = now_ms();
        let head = ResultHeader {
            id: ResultId::new(),
            owner: Owner::from_caller(new_result.job.caller()),
            tool: new_result.job.target().name().to_owned(),
            database: new_result.database.to_owned(),
            policies: new_result.policies,
            job: new_result.job.id().0,
            created_at_ms,
            expires_at_ms: created_at_ms.saturating_add(to_ms(self.limits.time_to_live)),
            rows_max: new_result.rows_max,
            file,
        };
        let folder = self.folder.result_path(head.id);
        let result = StoredResult::new(head, folder, columns.schema.clone(), ResultProgress::default());
        // The result counts from here on, so that concurrent calls cannot exceed the limit together. The writer always
        // releases its slot.
        self.admit(&result)?;
        ResultWriter::new(self.clone(), result, columns, new_result).begin().await
    }

    /// The result `id`, if it belongs to `caller`.
    ///
    /// # Errors
    /// `NotFound`, the same for results that do not exist and results of other owners. The owner receives a different
    /// error for an expired result.
    pub fn get(&self, id: ResultId, caller: &Caller) -> Result<Arc<StoredResult>, Error> {
        let owner = Owner::from_caller(caller);
        let index = self.index.lock();
        match index.results.get(&id).filter(|result| result.header.owner == owner) {
            Some(result) if result.header.expires_at_ms > now_ms() => Ok(result.clone()),
            Some(_) => Err(expired_error()),
            None if index.removed.contains(&(id, owner)) => Err(expired_error()),
            None => Err(not_found_error(id)),
        }
    }

    /// The results of `caller`, newest first.
    pub fn list(&self, caller: &Caller) -> Vec<Arc<StoredResult>> {
        let owner = Owner::from_caller(caller);
        let mut results: Vec<_> =
            self.index.lock().results.values().filter(|result| result.header.owner == owner).cloned().collect();
        results.sort_by_key(|result| std::cmp::Reverse((result.header.created_at_ms, result.header.id)));
        results
    }

    /// All results.
    pub(crate) fn all(&self) -> Vec<Arc<StoredResult>> {
        self.index.lock().results.values().cloned().collect()
    }

    /// Creates a cursor to `row` of `result`, valid only for `caller` and the query `question`.
    pub fn create_cursor(&self, result: &StoredResult, row: u64, question: u64, caller: &Caller) -> String {
        let ResultHeader { id, expires_at_ms, .. } = result.header;
        self.seal
            .sign_cursor(&Cursor { result: id, row, query_id: question, expires_at_ms }, &Owner::from_caller(caller))
    }

    /// The result and the row that `cursor` refers to.
    ///
    /// # Errors
    /// `InvalidArguments` for a cursor that `caller` never received or that belongs to another query; `NotFound` when
    /// it has expired.
    pub fn resolve_cursor(
        &self,
        cursor: &str,
        question: u64,
        caller: &Caller,
    ) -> Result<(Arc<StoredResult>, u64), Error> {
        let place = self.seal.verify_cursor(cursor, &Owner::from_caller(caller))?;
        if place.query_id != question {
            let message = "the cursor belongs to a call with other arguments";
            return Err(Error::new(ErrorKind::InvalidArguments, message)
                .with_hint("Repeat the arguments of that call; only cursor, delivery, format, limit, max_rows, mode and no_cache may differ."));
        }
        Ok((self.get(place.result, caller)?, place.row))
    }

    /// Creates a short-lived link to `result`, and returns it with its expiry in milliseconds since 1970. The link acts
    /// for `reader` and expires no later than the credential of `reader`.
    pub fn create_link(&self, result: &StoredResult, reader: &Caller) -> (String, u64) {
        let good_until_ms = reader.principal.expires_at.map_or(u64::MAX, ms_since_1970);
        let expires_at_ms = good_until_ms.min(now_ms() + to_ms(LINK_LIFETIME));
        let reader = result.link_holders.lock().register(reader, expires_at_ms);
        (self.seal.sign_link(result.header.id, &ResultLink { holder: reader, expires_at_ms }), expires_at_ms)
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
        self.counts.count_expired(late.len());
        remove_files(late).await;
    }

    /// Makes space for `bytes` more of `writing` and reserves it.
    ///
    /// # Errors
    /// `Unavailable` with the exhausted resource; nothing was evicted then.
    pub(crate) async fn make_room(&self, writing: &StoredResult, bytes: u64) -> Result<(), Error> {
        let folder = self.folder.path().to_owned();
        let free = run_blocking(move || Ok(free_bytes(&folder))).await.ok().flatten();
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
        self.counts.count_evicted(leaving.len());
        remove_files(leaving).await;
        Ok(())
    }

    fn admit(&self, result: &Arc<StoredResult>) -> Result<(), Error> {
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

    /// Adds the result of an earlier process. If it was still being written, it is marked as incomplete.
    async fn recover(&self, found: RecoveredResult) {
        let folder = self.folder.result_path(found.head.id);
        let path = folder.clone();
        let read = run_blocking(move || {
            let end = match &found.end {
                _ if found.is_truncated => ResultEnd::Incomplete("the rest is missing on the server's disk".to_owned()),
                Some(None) => ResultEnd::Complete,
                Some(Some(reason)) => ResultEnd::Incomplete(reason.clone()),
                None => ResultEnd::Incomplete("the server was stopped while it was being written".to_owned()),
            };
            if found.end.is_none() {
                ResultFiles::reopen(path.clone(), &found)?.write_end(end.reason())?;
            }
            let first = folder::read_block(&path, 0, &found.blocks[0])?;
            let is_right = sha256_hex(&first) == found.blocks[0].sha256;
            Ok((found, end, is_right.then(|| ResultBlock(first.into()))))
        });
        let read = read.await.ok().and_then(|(found, end, first)| Some((found, end, first?.schema().ok()?)));
        let Some((RecoveredResult { head, blocks, .. }, end, schema)) = read else {
            // The columns are unknown.
            let _ = run_blocking(move || folder::delete_result(&folder)).await;
            return;
        };
        let id = head.id;
        let stage = ResultProgress { blocks, end: Some(end) };
        self.index.lock().results.insert(id, StoredResult::new(head, folder, schema, stage));
    }
}

/// Deletes the files of `results`, which are no longer in the index.
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

impl fmt::Debug for ResultStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResultStore")
            .field("folder", &self.folder)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl LinkVerifier for ResultStore {
    fn verify_link(&self, id: &str, link: &str) -> Option<Caller> {
        let id = id.parse().ok()?;
        let link = self.seal.verify_link(link, id)?;
        let result = self.index.lock().results.get(&id).cloned()?;
        result.link_holders.lock().get(link.holder)
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

/// The error for a result that cannot be written.
pub(crate) fn unwritable_error(error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, "the server cannot write stored results now").with_detail(error.to_string())
}
