//! The runtime that queries run on, and the resource limits that they share.
//!
//! There is one worker pool for each principal with running queries. DataFusion's operators yield to each other only
//! between batches, and planning does not yield at all. A long operation therefore occupies threads, and other
//! principals must not wait for them. So each principal has its own worker pool, and the operating system shares the
//! processors between pools. An idle pool is reused for another principal.
//!
//! Each partition of a query has batches, pages and hash tables of its own, so that the memory of many queries is a
//! multiple of their partitions and batches. Few queries have all partitions and whole batches. The queries that begin
//! while many run have fewer and shorter ones, which costs no time, because the others occupy the processors.
//!
//! The process holds a lock on a file in the folder that it spills to. When a process was killed, its folder remains,
//! but not its lock. The next process that spills below the same root removes the folder.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::future::Future;
use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;
use std::{env, io, ptr, thread};

use datafusion::execution::disk_manager::{DiskManager, DiskManagerBuilder, DiskManagerMode};
use parking_lot::Mutex;
use tidegate_core::{AuthMethod, Error, ErrorKind, Principal, tenant_share};
use tidegate_query::NodeMemory;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};
use uuid::Uuid;

use super::decode_budget::{DecodeBudget, ReaderPause};
use super::memory::{EngineMemory, MERGED_FILES_MAX, QueryMemoryPool, SortShare};

/// The resource limits of an [`Engine`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineOptions {
    /// Bytes of memory for the operators of all queries together (sorts, aggregates, build sides of joins), and for the rows
    /// of bodies while they are decoded and written. Data that queries stream does not count. Default: a quarter of the machine's memory or of the control group's limit; 1 GiB if
    /// neither is known.
    pub memory_bytes: usize,
    /// Bytes of `memory_bytes` for one query. Beyond them the query spills to disk, or fails if it cannot. Default:
    /// half of `memory_bytes`.
    pub query_memory_bytes: usize,
    /// Maximum time that the sorts of a query wait while other queries hold the memory.
    pub memory_wait: Duration,
    /// Bytes of disk that all queries together may spill to.
    pub spill_bytes: u64,
    /// The folder in which the temporary folder for spilling is created. `None`: the system's temporary folder.
    pub spill_folder: Option<PathBuf>,
    /// Threads for the queries of one principal, and the number of parallel partitions of one query.
    pub threads: usize,
    /// Maximum number of rows in a batch. Tables with wide rows use fewer.
    pub batch_rows: usize,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self::with_memory(machine_memory_bytes().map_or(1 << 30, |bytes| (bytes / 4).max(256 << 20)))
    }
}

impl EngineOptions {
    /// The defaults for an engine with `memory_bytes` of memory.
    #[must_use]
    pub fn with_memory(memory_bytes: usize) -> Self {
        Self {
            memory_bytes,
            query_memory_bytes: memory_bytes / 2,
            memory_wait: Duration::from_secs(30),
            spill_bytes: 10 << 30,
            spill_folder: None,
            threads: thread::available_parallelism().map_or(2, usize::from),
            batch_rows: 8_192,
        }
    }
}

/// Bytes of memory of the machine or of the control group of this process, if the system reports them.
fn machine_memory_bytes() -> Option<usize> {
    let physical = fs::read_to_string("/proc/meminfo").ok().and_then(|text| parse_meminfo_total(&text));
    // `max` means no limit and does not parse.
    let granted = fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|text| text.trim().parse().ok());
    match (physical, granted) {
        (Some(physical), Some(granted)) => Some(usize::min(physical, granted)),
        (one, other) => one.or(other),
    }
}

fn parse_meminfo_total(text: &str) -> Option<usize> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1_024)
}

/// Threads for file system access.
const BLOCKING_THREADS_MAX: usize = 64;

/// Runs the queries of all databases that were opened with it, on its own threads and within its limits of memory and
/// disk. A query blocks neither a transport nor the queries of other principals. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    options: EngineOptions,
    /// For file system access.
    runtime: DetachedRuntime,
    worker_pools: WorkerPools,
    tasks: TaskTracker,
    shutdown: CancellationToken,
    memory: EngineMemory,
    decode_budget: Arc<DecodeBudget>,
    query_load: QueryLoad,
    sort_share: Arc<SortShare>,
    disk: Arc<DiskManager>,
    /// `None` if the system's temporary folder cannot be written. Then a query that spills fails.
    _spill_folder: Option<SpillFolder>,
}

fn create_disk_manager(options: &EngineOptions) -> Result<(Option<SpillFolder>, DiskManager), String> {
    let folder = match &options.spill_folder {
        Some(root) => Some(SpillFolder::create(root).map_err(|error| format!("{}: {error}", root.display()))?),
        None => match SpillFolder::create(&env::temp_dir()) {
            Ok(folder) => Some(folder),
            Err(error) => {
                tracing::warn!(%error, "no query can spill: the system's temporary folder cannot be used");
                None
            }
        },
    };
    let mode = match &folder {
        Some(folder) => DiskManagerMode::Directories(vec![folder.path().to_owned()]),
        None => DiskManagerMode::OsTmpDirectory,
    };
    let disk = DiskManagerBuilder::default()
        .with_mode(mode)
        .with_max_temp_directory_size(options.spill_bytes)
        .with_max_spill_merge_fan_in(MERGED_FILES_MAX)
        .build();
    Ok((folder, disk.map_err(|error| error.to_string())?))
}

impl Engine {
    /// Starts an engine.
    ///
    /// # Errors
    /// `Unavailable` when the threads cannot start or the spill folder cannot be created.
    pub fn start(options: EngineOptions) -> Result<Self, Error> {
        let unavailable =
            |subject: &str, reason: String| Error::new(ErrorKind::Unavailable, format!("{subject}: {reason}"));
        let runtime = Builder::new_current_thread()
            .max_blocking_threads(BLOCKING_THREADS_MAX)
            .thread_name("tidegate-files")
            .build()
            .map_err(|error| unavailable("cannot start the threads for file access", error.to_string()))?;
        let (spill_folder, disk) =
            create_disk_manager(&options).map_err(|error| unavailable("cannot create the spill folder", error))?;
        let inner = Inner {
            memory: EngineMemory::new(options.memory_bytes, options.query_memory_bytes, options.memory_wait),
            worker_pools: WorkerPools::new(options.threads),
            decode_budget: Arc::new(DecodeBudget::new(options.threads, options.memory_bytes)),
            query_load: QueryLoad::new(options.threads),
            sort_share: Arc::new(SortShare::new(options.threads, options.memory_bytes)),
            runtime: DetachedRuntime::new(runtime),
            tasks: TaskTracker::new(),
            shutdown: CancellationToken::new(),
            disk: Arc::new(disk),
            _spill_folder: spill_folder,
            options,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The limits of this engine.
    pub fn options(&self) -> &EngineOptions {
        &self.inner.options
    }

    /// The memory that queries share with the rows of bodies.
    pub fn node_memory(&self) -> &Arc<NodeMemory> {
        &self.inner.memory.node
    }

    /// Bytes of memory that operators of running queries and the rows of bodies hold.
    pub fn memory_used_bytes(&self) -> usize {
        self.node_memory().used_bytes()
    }

    /// Bytes of Parquet row groups that running queries hold.
    pub fn decoding_bytes(&self) -> usize {
        self.inner.decode_budget.used_bytes()
    }

    /// Bytes that are spilled to disk now.
    pub fn spilled_bytes(&self) -> u64 {
        self.inner.disk.used_disk_space()
    }

    /// Number of unfinished tasks of queries and catalogs.
    pub fn running_tasks(&self) -> usize {
        self.inner.tasks.len()
    }

    /// Cancels all queries, waits at most `within` for them to end, and stops the threads.
    pub async fn shutdown(&self, within: Duration) {
        self.inner.shutdown.cancel();
        self.inner.tasks.close();
        // Threads cannot be killed. The remaining tasks end by themselves.
        let _ = tokio::time::timeout(within, self.inner.tasks.wait()).await;
        self.inner.runtime.stop();
        self.inner.worker_pools.stop();
    }

    pub(crate) fn create_query_memory_pool(&self, principal: &Principal) -> Arc<QueryMemoryPool> {
        self.inner.memory.create_query_pool(principal.tenant.as_deref())
    }

    pub(crate) fn worker_pool(&self, principal: &Principal) -> Result<WorkerPool, Error> {
        if self.inner.shutdown.is_cancelled() {
            return Err(shutdown_error());
        }
        self.inner.worker_pools.pool_for(principal, &self.inner.tasks)
    }

    pub(crate) fn disk(&self) -> &Arc<DiskManager> {
        &self.inner.disk
    }

    pub(crate) fn decode_budget(&self) -> &Arc<DecodeBudget> {
        &self.inner.decode_budget
    }

    pub(crate) fn query_load(&self) -> &QueryLoad {
        &self.inner.query_load
    }

    pub(crate) fn sort_share(&self) -> &Arc<SortShare> {
        &self.inner.sort_share
    }

    pub(crate) fn shutdown_token(&self) -> &CancellationToken {
        &self.inner.shutdown
    }

    /// Starts `work`, which may block, on a thread for file system access.
    pub(crate) fn spawn_blocking(&self, work: impl FnOnce() + Send + 'static) {
        self.inner.tasks.spawn_blocking_on(work, &self.inner.runtime.handle);
    }

    pub(crate) async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        join_or_abort(self.inner.tasks.spawn_blocking_on(work, &self.inner.runtime.handle)).await
    }

    /// Runs `work` for all calls that need its outcome: it goes on if this one is dropped, until the engine shuts down.
    pub(crate) async fn run_shared<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        let shutdown = self.inner.shutdown.clone();
        let work = async move { shutdown.run_until_cancelled(work).await.unwrap_or_else(|| Err(shutdown_error())) };
        self.inner.tasks.spawn(work).await.unwrap_or_else(|error| Err(Error::internal(error.to_string())))
    }
}

/// The error of queries that are new, or still run, when the engine shuts down.
pub(crate) fn shutdown_error() -> Error {
    Error::new(ErrorKind::Unavailable, "the server is shutting down")
}

/// Threads of all pools together, unless a single pool needs more.
const POOL_THREADS_TOTAL_MAX: usize = 1_024;
/// The allowed range for the maximum number of pools, whatever the number of threads in each.
const POOL_COUNT: RangeInclusive<usize> = 4..=64;
/// Threads of a pool for file system calls, in addition to those that compute.
const POOL_BLOCKING_THREADS_MAX: usize = 32;
/// Stack size of a thread that plans or computes; reserved, not committed. The engine walks expressions recursively,
/// and the longest chain that a statement may have must fit, even in unoptimised builds.
const THREAD_STACK_BYTES: usize = 64 << 20;

#[derive(Debug)]
struct WorkerPools {
    threads: usize,
    pools_max: usize,
    pools: Mutex<Vec<(PoolKey, Arc<DetachedRuntime>)>>,
}

/// A runtime that never waits for its threads to end. Waiting would block, which is not allowed when async code drops
/// the runtime.
#[derive(Debug)]
struct DetachedRuntime {
    handle: Handle,
    runtime: Mutex<Option<Runtime>>,
}

/// The worker pool for the queries of one principal. Cheap to clone. The pool stays assigned to the principal while a
/// clone exists.
#[derive(Debug, Clone)]
pub(crate) struct WorkerPool {
    threads: Arc<DetachedRuntime>,
    tasks: TaskTracker,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct PoolKey {
    tenant: Option<String>,
    auth_method: AuthMethod,
    subject: String,
}

impl WorkerPools {
    fn new(threads: usize) -> Self {
        let threads = threads.max(1);
        let pools_max = (POOL_THREADS_TOTAL_MAX / threads).clamp(*POOL_COUNT.start(), *POOL_COUNT.end());
        Self { threads, pools_max, pools: Mutex::default() }
    }

    /// Returns the pool for the queries of `principal`, whose tasks `tasks` tracks: its own pool, an idle one, or a new
    /// one. If the maximum is reached, the least loaded pool. The principals of one tenant use at most half of the
    /// pools.
    fn pool_for(&self, principal: &Principal, tasks: &TaskTracker) -> Result<WorkerPool, Error> {
        let (tenant, subject) = (principal.tenant.clone(), principal.subject.clone());
        let pool_key = PoolKey { tenant, auth_method: principal.auth_method, subject };
        let mut pools = self.pools.lock();
        let at = match pools.iter().position(|(holder, _)| *holder == pool_key) {
            Some(own) => own,
            None => self.assign_pool(&mut pools, pool_key)?,
        };
        Ok(WorkerPool { threads: pools[at].1.clone(), tasks: tasks.clone() })
    }

    fn assign_pool(&self, pools: &mut Vec<(PoolKey, Arc<DetachedRuntime>)>, pool_key: PoolKey) -> Result<usize, Error> {
        let busy: Vec<usize> = (0..pools.len()).filter(|at| !pools[*at].1.is_idle()).collect();
        let is_colleague = |at: &usize| pool_key.tenant.is_some() && pools[*at].0.tenant == pool_key.tenant;
        let of_tenant: Vec<usize> = busy.iter().copied().filter(is_colleague).collect();
        if of_tenant.len() >= tenant_share(self.pools_max) {
            // The pool is shared and stays assigned to its current principal.
            return Ok(least_loaded(&of_tenant, pools));
        }
        if let Some(idle) = (0..pools.len()).find(|at| !busy.contains(at)) {
            pools[idle].0 = pool_key;
            return Ok(idle);
        }
        if pools.len() >= self.pools_max {
            return Ok(least_loaded(&busy, pools));
        }
        match start_threads(self.threads) {
            Ok(threads) => pools.push((pool_key, Arc::new(threads))),
            Err(_) if !busy.is_empty() => return Ok(least_loaded(&busy, pools)),
            Err(error) => return Err(error),
        }
        Ok(pools.len() - 1)
    }

    fn stop(&self) {
        self.pools.lock().drain(..).for_each(|(_, threads)| threads.stop());
    }
}

/// The one of `positions` in `pools` with the fewest users, and among those with the fewest tasks.
fn least_loaded(positions: &[usize], pools: &[(PoolKey, Arc<DetachedRuntime>)]) -> usize {
    positions
        .iter()
        .copied()
        .min_by_key(|at| (Arc::strong_count(&pools[*at].1), pools[*at].1.alive_tasks()))
        .unwrap_or_default()
}

fn start_threads(threads: usize) -> Result<DetachedRuntime, Error> {
    let mut builder = Builder::new_multi_thread();
    builder
        .worker_threads(threads)
        .max_blocking_threads(POOL_BLOCKING_THREADS_MAX)
        .thread_name("tidegate-engine")
        .thread_stack_size(THREAD_STACK_BYTES)
        .enable_time();
    // `build` panics if the system cannot start more threads.
    let runtime = catch_unwind(AssertUnwindSafe(|| builder.build())).ok().and_then(Result::ok).ok_or_else(|| {
        let message = "the system cannot start more threads for queries";
        Error::new(ErrorKind::Unavailable, message).with_hint("Retry when fewer queries run.")
    })?;
    Ok(DetachedRuntime::new(runtime))
}

impl DetachedRuntime {
    fn new(runtime: Runtime) -> Self {
        Self { handle: runtime.handle().clone(), runtime: Mutex::new(Some(runtime)) }
    }

    /// Whether no query uses it and no task runs on it. A task that was aborted but has not ended counts as running.
    fn is_idle(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) == 1 && self.alive_tasks() == 0
    }

    fn alive_tasks(&self) -> usize {
        self.handle.metrics().num_alive_tasks()
    }

    fn stop(&self) {
        let runtime = self.runtime.lock().take();
        if let Some(runtime) = runtime {
            runtime.shutdown_background();
        }
    }
}

impl Drop for DetachedRuntime {
    fn drop(&mut self) {
        self.stop();
    }
}

impl WorkerPool {
    /// Runs `work` on the pool. Dropping the future aborts it.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        join_or_abort(self.tasks.spawn_on(work, &self.threads.handle)).await
    }

    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn_on(work, &self.threads.handle);
    }
}

/// Waits for `task`. Dropping the future aborts it.
async fn join_or_abort<T>(task: JoinHandle<Result<T, Error>>) -> Result<T, Error> {
    match AbortOnDropHandle::new(task).await {
        Ok(result) => result,
        Err(error) if error.is_cancelled() => Err(shutdown_error()),
        Err(error) => Err(Error::internal(format!("a task of the engine panicked: {error}"))),
    }
}

/// So many queries for each thread run as one alone would.
const QUERIES_PER_THREAD: usize = 4;

/// The queries that are planned or run.
#[derive(Debug)]
pub(crate) struct QueryLoad {
    threads: usize,
    readers: Mutex<Vec<Weak<ReaderPause>>>,
}

/// The part of the node for a query that begins now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoadShare {
    threads: usize,
    queries: usize,
}

impl QueryLoad {
    pub(crate) fn new(threads: usize) -> Self {
        Self { threads: threads.max(1), readers: Mutex::default() }
    }

    /// Counts the query of `reader` until it ends. Queries whose readers pause do not count.
    pub(crate) fn add(&self, reader: &Arc<ReaderPause>) -> LoadShare {
        let mut readers = self.readers.lock();
        readers.retain(|other| other.strong_count() > 0);
        // A query that is planned again counts once.
        if !readers.iter().any(|other| ptr::eq(Weak::as_ptr(other), Arc::as_ptr(reader))) {
            readers.push(Arc::downgrade(reader));
        }
        let queries = readers.iter().filter_map(Weak::upgrade).filter(|reader| !reader.is_long()).count();
        LoadShare { threads: self.threads, queries }
    }
}

impl LoadShare {
    /// The part of `all`, which is at least `least`.
    pub(crate) fn of(self, all: usize, least: usize) -> usize {
        let part = all.saturating_mul(QUERIES_PER_THREAD * self.threads) / self.queries.max(1);
        part.clamp(least.min(all), all)
    }
}

const PREFIX: &str = "tidegate-spill-";
const LOCK_FILE: &str = "lock";
/// Another process may remove a new folder before it is locked.
const ATTEMPTS_MAX: usize = 16;

/// A folder that no other process uses. It is removed when this is dropped.
#[derive(Debug)]
struct SpillFolder {
    path: PathBuf,
    _lock: File,
}

impl SpillFolder {
    /// Creates a folder in `root`, and removes those of processes that have ended.
    fn create(root: &Path) -> io::Result<Self> {
        fs::create_dir_all(root)?;
        for _ in 0..ATTEMPTS_MAX {
            let path = root.join(format!("{PREFIX}{}", Uuid::new_v4()));
            create_private_folder(&path)?;
            if let Some(lock) = lock_folder(&path, true)? {
                let folder = Self { path, _lock: lock };
                folder.remove_abandoned(root);
                return Ok(folder);
            }
        }
        Err(io::Error::other("other processes remove each new folder"))
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn remove_abandoned(&self, root: &Path) {
        let Ok(entries) = fs::read_dir(root) else { return };
        for path in entries.flatten().map(|entry| entry.path()).filter(|path| *path != self.path) {
            let is_spill_folder =
                path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(PREFIX));
            if !is_spill_folder || !has_same_owner(&path, &self.path) {
                continue;
            }
            // A folder that cannot be removed does no harm. One without a lock file may belong to a running process,
            // whose file something else removed.
            let _ = match lock_folder(&path, false) {
                Ok(Some(_lock)) => fs::remove_dir_all(&path),
                _ if !path.join(LOCK_FILE).exists() => fs::remove_dir(&path),
                _ => Ok(()),
            };
        }
    }
}

impl Drop for SpillFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Locks the folder at `path`; a new one needs its lock file. `None` if another process has locked or removed it.
fn lock_folder(path: &Path, is_new: bool) -> io::Result<Option<File>> {
    let lock_path = path.join(LOCK_FILE);
    let lock = match OpenOptions::new().write(true).create(is_new).truncate(false).open(&lock_path) {
        Ok(lock) => lock,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match lock.try_lock() {
        Ok(()) => Ok(lock_path.exists().then_some(lock)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn create_private_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Whether `path` is a folder, and not a link to one, of the owner of `own`. In a folder that all users share, another
/// user could place a folder with links to files of this user.
#[cfg(unix)]
fn has_same_owner(path: &Path, own: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let (Ok(other), Ok(own)) = (path.symlink_metadata(), own.symlink_metadata()) else { return false };
    other.is_dir() && other.uid() == own.uid()
}

#[cfg(not(unix))]
fn has_same_owner(path: &Path, _: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir())
}

#[cfg(test)]
mod tests {
    use tidegate_core::Grants;

    use super::*;

    #[test]
    fn parses_total_from_meminfo() {
        assert_eq!(parse_meminfo_total("MemTotal:       24670212 kB\nMemFree: 1 kB\n"), Some(24_670_212 * 1_024));
        assert_eq!(parse_meminfo_total("nothing"), None);
    }

    fn principal(subject: &str, tenant: Option<&str>) -> Principal {
        let principal = Principal::new(subject, AuthMethod::Token, Arc::new(Grants::everything()));
        Principal { tenant: tenant.map(ToOwned::to_owned), ..principal }
    }

    fn is_same(left: &WorkerPool, right: &WorkerPool) -> bool {
        Arc::ptr_eq(&left.threads, &right.threads)
    }

    #[test]
    fn each_principal_has_its_own_pool_while_it_runs_something() {
        let (worker_pools, tasks) = (WorkerPools::new(1), TaskTracker::new());
        let of = |subject| worker_pools.pool_for(&principal(subject, None), &tasks).unwrap();
        let ann = of("ann");
        assert!(is_same(&ann, &of("ann")));
        let bob = of("bob");
        assert!(!is_same(&ann, &bob));
        let left = ann.threads.clone();
        drop(ann);
        drop(bob);
        assert!(Arc::ptr_eq(&left, &of("ann").threads), "the pool is still in use, so it stays assigned");
        drop(left);
        let carl = of("carl");
        assert_eq!(worker_pools.pools.lock().len(), 2, "an idle pool is reused");
        drop(carl);
    }

    #[test]
    fn principals_of_a_tenant_share_half_of_the_pools() {
        let (worker_pools, tasks) =
            (WorkerPools { threads: 1, pools_max: 4, pools: Mutex::default() }, TaskTracker::new());
        let of = |subject: &str, tenant| worker_pools.pool_for(&principal(subject, tenant), &tasks).unwrap();
        let held: Vec<WorkerPool> = (0..10).map(|number| of(&format!("worker{number}"), Some("acme"))).collect();
        assert_eq!(worker_pools.pools.lock().len(), 2);
        let other = of("zoe", Some("other"));
        assert!(held.iter().all(|worker_pool| !is_same(worker_pool, &other)));
        let third = of("tom", None);
        assert!(!is_same(&third, &other));
        assert_eq!(worker_pools.pools.lock().len(), 4);
        of("una", None);
        assert_eq!(worker_pools.pools.lock().len(), 4, "at the maximum, pools are shared");
    }

    #[test]
    fn share_falls_with_the_number_of_queries() {
        let load = QueryLoad::new(2);
        let mut readers: Vec<Arc<ReaderPause>> = Vec::new();
        let mut shares = Vec::new();
        for _ in 0..50 {
            let reader = Arc::default();
            let share = load.add(&reader);
            shares.push((share.of(2, 1), share.of(8_192, 2_048)));
            readers.push(reader);
        }
        assert_eq!(shares[..8], [(2, 8_192); 8]);
        assert_eq!(shares[15], (1, 4_096));
        assert_eq!(shares[49], (1, 2_048));
        assert!(shares.is_sorted_by(|before, after| before >= after));
        assert_eq!(load.add(&readers[0]).of(8_192, 1), 8_192 * 8 / 50, "a query counts once");
        readers.truncate(3);
        assert_eq!(load.add(&readers[0]).of(8_192, 1), 8_192);
    }
}
