//! The threads that queries run on: one worker pool for each principal with running queries.
//!
//! DataFusion's operators yield to each other only between batches, and planning does not yield at all. A long
//! operation therefore occupies threads, and other principals must not wait for them. So each principal has its own
//! worker pool, and the operating system shares the processors between pools. An idle pool is reused for another
//! principal.

use std::future::Future;
use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parking_lot::Mutex;
use tidegate_core::{AuthMethod, Error, ErrorKind, Principal, tenant_share};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::engine::shutdown_error;

/// Threads of all pools together, unless a single pool needs more.
const POOL_THREADS_TOTAL_MAX: usize = 1_024;
/// The allowed range for the maximum number of pools, whatever the number of threads in each.
const POOL_COUNT: RangeInclusive<usize> = 4..=64;
/// Threads of a pool for file system calls, in addition to those that compute.
const BLOCKING_THREADS_MAX: usize = 32;
/// Stack size of a thread that plans or computes; reserved, not committed. The engine walks expressions recursively,
/// and the longest chain that a statement may have must fit, even in unoptimised builds.
const THREAD_STACK_BYTES: usize = 64 << 20;

#[derive(Debug)]
pub(super) struct WorkerPools {
    threads: usize,
    pools_max: usize,
    pools: Mutex<Vec<(PoolKey, Arc<DetachedRuntime>)>>,
}

/// A runtime that never waits for its threads to end. Waiting would block, which is not allowed when async code drops
/// the runtime.
#[derive(Debug)]
pub(super) struct DetachedRuntime {
    pub(super) handle: Handle,
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
    pub(super) fn new(threads: usize) -> Self {
        let threads = threads.max(1);
        let pools_max = (POOL_THREADS_TOTAL_MAX / threads).clamp(*POOL_COUNT.start(), *POOL_COUNT.end());
        Self { threads, pools_max, pools: Mutex::default() }
    }

    /// Returns the pool for the queries of `principal`, whose tasks `tasks` tracks: its own pool, an idle one, or a new
    /// one. If the maximum is reached, the least loaded pool. The principals of one tenant use at most half of the
    /// pools.
    pub(super) fn pool_for(&self, principal: &Principal, tasks: &TaskTracker) -> Result<WorkerPool, Error> {
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

    pub(super) fn stop(&self) {
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
        .max_blocking_threads(BLOCKING_THREADS_MAX)
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
    pub(super) fn new(runtime: Runtime) -> Self {
        Self { handle: runtime.handle().clone(), runtime: Mutex::new(Some(runtime)) }
    }

    /// Whether no query uses it and no task runs on it. A task that was aborted but has not ended counts as running.
    fn is_idle(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) == 1 && self.alive_tasks() == 0
    }

    fn alive_tasks(&self) -> usize {
        self.handle.metrics().num_alive_tasks()
    }

    pub(super) fn stop(&self) {
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
pub(super) async fn join_or_abort<T>(task: JoinHandle<Result<T, Error>>) -> Result<T, Error> {
    match AbortOnDropHandle::new(task).await {
        Ok(result) => result,
        Err(error) if error.is_cancelled() => Err(shutdown_error()),
        Err(error) => Err(Error::internal(format!("a task of the engine panicked: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::Grants;

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
}
