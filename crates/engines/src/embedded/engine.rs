//! The runtime that queries run on, and the resource limits that they share.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use datafusion::execution::disk_manager::{DiskManager, DiskManagerBuilder, DiskManagerMode};
use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_query::NodeMemory;
use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::decode_budget::DecodeBudget;
use super::memory::{EngineMemory, QueryMemoryPool};
use super::query_load::QueryLoad;
use super::sort_share::{MERGED_FILES_MAX, SortShare};
use super::spill_folder::SpillFolder;
use super::worker_pools::{DetachedRuntime, WorkerPool, WorkerPools, join_or_abort};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_total_from_meminfo() {
        assert_eq!(parse_meminfo_total("MemTotal:       24670212 kB\nMemFree: 1 kB\n"), Some(24_670_212 * 1_024));
        assert_eq!(parse_meminfo_total("nothing"), None);
    }
}
