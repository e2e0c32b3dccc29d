//! All stored results of a node: begun, found, paged, and taken away when their time or their room is over.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use arrow::datatypes::SchemaRef;
use lru::LruCache;
use parking_lot::Mutex;
use tidegate_core::{Caller, Error, ErrorKind, Job, Links, Owner};
use tokio::task::AbortHandle;

use super::block::{Block, hash_of};
use super::cache::{self, CacheKey};
use super::figures::Counts;
use super::file::StoredFile;
use super::files::{self, Folder, Found, ResultFiles};
use super::id::{ResultId, absent};
use super::limits::StoreLimits;
use super::manifest::Head;
use super::quota::{self, has_ended};
use super::result::{End, Stage, StoredResult, on_a_thread};
use super::seal::{Cursor, Link, ResultSeal, expired, ms, ms_since_1970, now_ms};
use super::space::free_bytes;
use super::writer::ResultWriter;
use crate::body::Portable;
use crate::format::BatchFormat;

/// How long a link lives.
const LINK_LIFE: Duration = Duration::from_secs(5 * 60);
/// How often the store looks for what has expired.
const SWEEP_INTERVAL: Duration = Duration::from_secs(10);
/// Results that are gone and of which the store still knows why.
const GONE_MAX: usize = 1_000;

/// What a result is of.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The job that writes it.
    pub job: &'a Job,
    /// The database that was asked.
    pub database: &'a str,
    /// The row policies that bind whoever asks, as the database stamps them.
    pub policies: u64,
    /// Bytes of blocks at which it ends; none is as much as its owner may have.
    pub bytes_max: Option<u64>,
    /// Rows at which it ends.
    pub rows_max: Option<u64>,
}

/// All stored results of a node.
pub struct ResultStore {
    folder: Folder,
    limits: StoreLimits,
    seal: ResultSeal,
    index: Mutex<Index>,
    sweeper: Mutex<Option<AbortHandle>>,
    /// Answers that are still right.
    pub(super) answers: Mutex<LruCache<CacheKey, ResultId>>,
    /// Shared with those who write.
    pub(super) counts: Arc<Counts>,
}

#[derive(Default)]
struct Index {
    results: HashMap<ResultId, Arc<StoredResult>>,
    /// The last that went.
    gone: VecDeque<(ResultId, Owner)>,
}

impl ResultStore {
    /// The store in a place of its own in `root`, with what an earlier process left there. Must be called within a
    /// tokio runtime.
    ///
    /// # Errors
    /// `Unavailable` when the folder cannot be made, read or written.
    pub async fn open(root: &Path, limits: StoreLimits) -> Result<Arc<Self>, Error> {
        let path = root.to_owned();
        let unusable = |error: std::io::Error| {
            let message = format!("the folder of the stored results cannot be used: {}: {error}", root.display());
            Error::new(ErrorKind::Unavailable, message)
        };
        let (folder, key, found) = on_a_thread(move || {
            let folder = Folder::claim(&path)?;
            folder.clear_others(now_ms());
            let (key, found) = (folder.key()?, folder.found()?);
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
            answers: Mutex::new(cache::answers()),
            counts: Arc::default(),
        };
        let store = Arc::new(store);
        for left in found {
            store.take_over(left).await;
        }
        store.sweep().await;
        let sweeper = tokio::spawn(keep_sweeping(Arc::downgrade(&store)));
        *store.sweeper.lock() = Some(sweeper.abort_handle());
        Ok(store)
    }

    /// Its bounds.
    pub fn limits(&self) -> &StoreLimits {
        &self.limits
    }

    /// The folder of this process, which no other uses.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// How many results there are.
    pub fn len(&self) -> usize {
        self.index.lock().results.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A new result with the columns of `schema`, to be written by the caller of `asked`.
    ///
    /// # Errors
    /// `RateLimited` when as many are being written as may be; `Unavailable` when there is no room or no folder.
    pub async fn begin(self: &Arc<Self>, asked: Asked<'_>, schema: &SchemaRef) -> Result<ResultWriter, Error> {
        self.begin_of(asked, schema, None).await
    }

    /// As [`ResultStore::begin`], for rows that are the bytes of `file` if there is one.
    pub(super) async fn begin_of(
        self: &Arc<Self>,
        asked: Asked<'_>,
        schema: &SchemaRef,
        file: Option<StoredFile>,
    ) -> Result<ResultWriter, Error> {
        let created_at_ms = now_ms();
        let head = Head {
            id: ResultId::new(),
            owner: Owner::of(asked.job.caller()),
            tool: asked.job.target().name().to_owned(),
            database: asked.database.to_owned(),
            policies: asked.policies,
            job: asked.job.id().0,
            created_at_ms,
            expires_at_ms: created_at_ms.saturating_add(ms(self.limits.time_to_live)),
            rows_max: asked.rows_max,
            file,
        };
        let folder = self.folder.of(head.id);
        let portable = Portable::new(schema, BatchFormat::Arrow);
        let columns = portable.schema().clone();
        let result = StoredResult::new(head, folder, columns, Stage::default());
        // Counted from here on, so that many who begin at once do not pass together. Whatever becomes of the writer, it
        // gives its place back.
        self.admit(&result)?;
        ResultWriter::new(self.clone(), result, portable, asked).begin().await
    }

    /// The result `id`, if it belongs to `caller`.
    ///
    /// # Errors
    /// `NotFound`, the same whether there is none or it belongs to somebody else; its owner is told when it expired.
    pub fn get(&self, id: ResultId, caller: &Caller) -> Result<Arc<StoredResult>, Error> {
        let owner = Owner::of(caller);
        let index = self.index.lock();
        match index.results.get(&id).filter(|result| result.head.owner == owner) {
            Some(result) if result.head.expires_at_ms > now_ms() => Ok(result.clone()),
            Some(_) => Err(expired()),
            None if index.gone.contains(&(id, owner)) => Err(expired()),
            None => Err(absent(id)),
        }
    }

    /// The results of `caller`, newest first.
    pub fn list(&self, caller: &Caller) -> Vec<Arc<StoredResult>> {
        let owner = Owner::of(caller);
        let mut results: Vec<_> =
            self.index.lock().results.values().filter(|result| result.head.owner == owner).cloned().collect();
        results.sort_by_key(|result| std::cmp::Reverse((result.head.created_at_ms, result.head.id)));
        results
    }

    /// All that there are.
    pub(super) fn all(&self) -> Vec<Arc<StoredResult>> {
        self.index.lock().results.values().cloned().collect()
    }

    /// The cursor to `row` of `result`, for nobody but `caller` and no question but `question`.
    pub fn cursor(&self, result: &StoredResult, row: u64, question: u64, caller: &Caller) -> String {
        let Head { id, expires_at_ms, .. } = result.head;
        self.seal.cursor(&Cursor { result: id, row, question, expires_at_ms }, &Owner::of(caller))
    }

    /// The result and the place in it that `cursor` names.
    ///
    /// # Errors
    /// `InvalidArguments` for a cursor that `caller` was never given, or that belongs to another question; `NotFound`
    /// when it has expired.
    pub fn place(&self, cursor: &str, question: u64, caller: &Caller) -> Result<(Arc<StoredResult>, u64), Error> {
        let place = self.seal.place(cursor, &Owner::of(caller))?;
        if place.question != question {
            let message = "the cursor belongs to a question with other arguments";
            return Err(Error::new(ErrorKind::InvalidArguments, message)
                .with_hint("Repeat the arguments of that question and change nothing but cursor, limit and format."));
        }
        Ok((self.get(place.result, caller)?, place.row))
    }

    /// A key to `result` for a short time, and when that is over, in milliseconds since 1970. Whoever has it reads as
    /// `reader`, whoever else is given one, and no longer than that one's own proof is good: who began the result may be
    /// of an earlier configuration or process.
    pub fn link(&self, result: &StoredResult, reader: &Caller) -> (String, u64) {
        let good_until_ms = reader.principal.good_until.map_or(u64::MAX, ms_since_1970);
        let expires_at_ms = good_until_ms.min(now_ms() + ms(LINK_LIFE));
        let reader = result.readers.lock().enter(reader, expires_at_ms);
        (self.seal.link(result.head.id, &Link { reader, expires_at_ms }), expires_at_ms)
    }

    /// Takes away what has expired.
    pub async fn sweep(&self) {
        let now = now_ms();
        let late: Vec<Arc<StoredResult>> = {
            let mut index = self.index.lock();
            index.results.values().for_each(|result| result.readers.lock().sweep(now));
            let late = index.results.values().filter(|it| it.head.expires_at_ms <= now && has_ended(it));
            let late: Vec<_> = late.cloned().collect();
            late.iter().for_each(|result| index.forget(result, "it has expired"));
            late
        };
        self.counts.expired(late.len());
        clear(late).await;
    }

    /// Makes room for `bytes` more of `writing`, which they are counted to from then on.
    ///
    /// # Errors
    /// `Unavailable` with what there is too little of; nothing was taken away for it then.
    pub(super) async fn make_room(&self, writing: &StoredResult, bytes: u64) -> Result<(), Error> {
        let folder = self.folder.path().to_owned();
        let free = on_a_thread(move || Ok(free_bytes(&folder))).await.ok().flatten();
        let unavailable = |message: &str| {
            Error::new(ErrorKind::Unavailable, message).with_hint("Ask for less, or later: stored results expire.")
        };
        let leaving = {
            let mut index = self.index.lock();
            let leaving = quota::leaving(&index.results, &self.limits, writing, bytes);
            let leaving = leaving.map_err(|shortage| unavailable(shortage.of_room()))?;
            let freed: u64 = leaving.iter().map(|result| result.size()).sum();
            let needed = self.limits.free_bytes.saturating_add(bytes);
            if free.is_some_and(|free| free.saturating_add(freed) < needed) {
                return Err(unavailable("the server's disk has too little room left"));
            }
            writing.claim(bytes);
            leaving.iter().for_each(|result| index.forget(result, "it made room for newer ones"));
            leaving
        };
        self.counts.evicted(leaving.len());
        clear(leaving).await;
        Ok(())
    }

    fn admit(&self, result: &Arc<StoredResult>) -> Result<(), Error> {
        let mut index = self.index.lock();
        quota::may_begin(&index.results, &self.limits, &result.head.owner).map_err(|shortage| {
            let (message, hint) = shortage.of_writers();
            Error::new(ErrorKind::RateLimited, message).with_hint(hint)
        })?;
        index.results.insert(result.head.id, result.clone());
        Ok(())
    }

    /// Takes away a result of which nothing was written; keeps others waiting.
    pub(super) fn discard(&self, result: &StoredResult) {
        self.index.lock().results.remove(&result.head.id);
        // A folder with a manifest and no block; what is left of it goes at the next start.
        let _ = std::fs::remove_dir_all(&result.folder);
    }

    /// Enters what an earlier process left. What it was still writing is not whole, and says so.
    async fn take_over(&self, found: Found) {
        let folder = self.folder.of(found.head.id);
        let path = folder.clone();
        let read = on_a_thread(move || {
            let end = match &found.end {
                _ if found.is_cut => End::Incomplete("the rest of it is missing on the server's disk".to_owned()),
                Some(None) => End::Complete,
                Some(Some(reason)) => End::Incomplete(reason.clone()),
                None => End::Incomplete("the server was stopped while it was being written".to_owned()),
            };
            if found.end.is_none() {
                ResultFiles::reopen(path.clone(), &found)?.end(end.reason())?;
            }
            let first = files::read_block(&path, 0, &found.blocks[0])?;
            let is_right = hash_of(&first) == found.blocks[0].sha256;
            Ok((found, end, is_right.then(|| Block(first.into()))))
        });
        let read = read.await.ok().and_then(|(found, end, first)| Some((found, end, first?.schema().ok()?)));
        let Some((Found { head, blocks, .. }, end, schema)) = read else {
            // Nobody knows its columns.
            let _ = on_a_thread(move || std::fs::remove_dir_all(folder)).await;
            return;
        };
        let id = head.id;
        let stage = Stage { blocks, end: Some(end) };
        self.index.lock().results.insert(id, StoredResult::new(head, folder, schema, stage));
    }
}

/// Takes the files of `results` away, which are forgotten already.
async fn clear(results: Vec<Arc<StoredResult>>) {
    if results.is_empty() {
        return;
    }
    let cleared = on_a_thread(move || {
        for result in results {
            // What is left of it is found and taken away at the next start.
            let _ = std::fs::remove_dir_all(&result.folder);
        }
        Ok(())
    });
    // It ends by itself, whether or not somebody waits.
    let _ = cleared.await;
}

impl Index {
    fn forget(&mut self, result: &Arc<StoredResult>, reason: &str) {
        self.results.remove(&result.head.id);
        if self.gone.len() >= GONE_MAX {
            self.gone.pop_front();
        }
        self.gone.push_back((result.head.id, result.head.owner.clone()));
        result.stage.send_modify(|stage| stage.end = Some(End::Removed(reason.to_owned())));
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

impl Links for ResultStore {
    fn opened_by(&self, id: &str, link: &str) -> Option<Caller> {
        let id = id.parse().ok()?;
        let link = self.seal.opening(link, id)?;
        let result = self.index.lock().results.get(&id).cloned()?;
        result.readers.lock().get(link.reader)
    }
}

impl Drop for ResultStore {
    fn drop(&mut self) {
        if let Some(sweeper) = self.sweeper.get_mut() {
            sweeper.abort();
        }
    }
}

async fn keep_sweeping(store: Weak<ResultStore>) {
    loop {
        tokio::time::sleep(SWEEP_INTERVAL).await;
        let Some(store) = store.upgrade() else { return };
        store.sweep().await;
    }
}

/// What the caller is told when a result cannot be written.
pub(super) fn unwritable(error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, "the server cannot write stored results now").with_detail(error.to_string())
}
