//! The registry: the list of everything that can be called, and the only entry point to it.
//!
//! The steps of a call, in this order. The first three refuse a call at once, in `Registry::start_call`; the others
//! wait, on a task of the call, in `Execution::run`.
//!
//! 1. authorize: the entry exists for the caller, as far as the caller can know (`route`).
//! 2. coerce: the arguments have the types of the entry's schema (`route`).
//! 3. admit: open calls, the rate of the tool and the daily limits have room (`Meters::admit_call`). The call becomes a
//!    job with its limits, which others can list and cancel.
//! 4. deadline: the time limit, a cancellation or a panic ends the next three steps.
//! 5. audit: the line of the call is reserved, so that no call runs without a record.
//! 6. permits: the call waits until it may run.
//! 7. run: the handler runs, and its answer is sent, while the run time is charged.
//! 8. end: what the call holds is released, and the audit line is written; only then the client receives the end.

mod execution;
mod transport_switches;
mod watches;

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use futures::FutureExt;
use parking_lot::Mutex;
use tidegate_core::{CallTarget, Caller, Error, ErrorKind, LimitLevel, Limits, WriteRows};
use tokio::sync::watch;
use tokio_util::task::TaskTracker;
use tracing::Instrument;
use uuid::Uuid;

use self::execution::{Execution, Route, route};
use self::watches::WatchManager;
use crate::entry::{RequestBodyTypes, Resource, ResourceLister, panic_to_error};
use crate::event::{Event, EventDispatcher};
use crate::job::{Call, CallTerms, Job, Jobs};
use crate::limits::{Admission, Calendar, Meters, ReachedLimit, UsageFlusher};
use crate::reply::Reply;
use crate::sessions::Sessions;
use crate::snapshot::Snapshot;

pub use self::transport_switches::{TransportGroup, TransportState, TransportSwitches};
pub use self::watches::{ChangeListener, WatchEvent};

const REFUSAL_DELAY: Duration = Duration::from_millis(20);

/// All tools, resources, resource templates and prompts, with the jobs and limits of their calls.
#[derive(Debug)]
pub struct Registry {
    snapshot: Arc<CurrentSnapshot>,
    watches: Arc<WatchManager>,
    jobs: Arc<Jobs>,
    sessions: Arc<Sessions>,
    meters: Arc<Meters>,
    usage_flusher: Mutex<Option<UsageFlusher>>,
    tasks: TaskTracker,
    events: EventDispatcher,
    transport_switches: TransportSwitches,
}

impl Registry {
    /// A registry with the contents of `snapshot`. The number of ended jobs in the list is fixed by this snapshot; all
    /// other limits change with each snapshot.
    pub fn new(snapshot: Snapshot, events: EventDispatcher) -> Arc<Self> {
        Self::with_clock(snapshot, events, SystemTime::now)
    }

    /// A registry whose days begin according to `clock`.
    pub fn with_clock(
        snapshot: Snapshot,
        events: EventDispatcher,
        clock: impl Fn() -> SystemTime + Send + Sync + 'static,
    ) -> Arc<Self> {
        let ended_jobs_max = snapshot.limits().ended_jobs_max;
        let snapshot = Arc::new(CurrentSnapshot::new(snapshot));
        Arc::new(Self {
            watches: Arc::new(WatchManager::new(snapshot.clone(), events.clone())),
            snapshot,
            jobs: Arc::new(Jobs::new(ended_jobs_max)),
            sessions: Arc::default(),
            meters: Arc::new(Meters::new(Calendar::new(clock))),
            usage_flusher: Mutex::default(),
            tasks: TaskTracker::new(),
            events,
            transport_switches: TransportSwitches::default(),
        })
    }

    /// The current snapshot. Running calls keep the snapshot that they started with.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load()
    }

    /// The snapshot for calls of `caller`.
    pub fn snapshot_for(&self, caller: &Caller) -> Arc<Snapshot> {
        self.snapshot.load_for(caller)
    }

    /// Replaces the snapshot and notifies all listeners.
    pub fn swap(&self, snapshot: Snapshot) {
        let version = self.snapshot.swap(snapshot);
        self.events.emit(Event::RegistryChanged { version });
    }

    /// A receiver for each new version.
    pub fn versions(&self) -> watch::Receiver<u64> {
        self.snapshot.versions()
    }

    /// A new listener for changes of the registry and of its resources.
    pub fn watch(&self) -> ChangeListener {
        ChangeListener::new(self.watches.clone())
    }

    /// The list of jobs.
    pub fn jobs(&self) -> &Arc<Jobs> {
        &self.jobs
    }

    /// The list of open sessions, to which transports add theirs.
    pub fn sessions(&self) -> &Arc<Sessions> {
        &self.sessions
    }

    /// The limits of all calls.
    pub fn limits(&self) -> Limits {
        *self.snapshot().limits()
    }

    /// The dispatcher of events.
    pub fn events(&self) -> &EventDispatcher {
        &self.events
    }

    /// Which transports answer requests.
    pub fn transport_switches(&self) -> &TransportSwitches {
        &self.transport_switches
    }

    /// Whether calls are admitted. They are not while the auditor cannot write.
    pub fn admits_calls(&self) -> bool {
        !self.events.auditor().is_some_and(|auditor| auditor.stats().is_blocked)
    }

    /// Writes the daily usage of callers to `file` from now on, and restores today's usage from it. Call this once
    /// within a tokio runtime, before the first call. A crash can lose the usage of the last ten seconds; after a drain
    /// the file is complete.
    ///
    /// # Errors
    /// If the file exists and cannot be read. It is then replaced nevertheless.
    pub fn persist_usage(&self, file: PathBuf) -> std::io::Result<()> {
        let restored = self.meters.restore(&file);
        *self.usage_flusher.lock() = Some(UsageFlusher::start(self.meters.clone(), file));
        restored
    }

    /// Admits a request of `caller`; each transport calls this once per request. A refusal is delayed, because it costs
    /// almost as much processor time as an answer, and a caller that repeats requests at once would take that time from
    /// others.
    ///
    /// # Errors
    /// Those of [`Self::count_request`].
    pub async fn admit_request(&self, caller: &Caller) -> Result<(), Error> {
        let admitted = self.count_request(caller);
        if admitted.is_err() {
            tokio::time::sleep(REFUSAL_DELAY).await;
        }
        admitted
    }

    /// Counts a request of `caller`.
    ///
    /// # Errors
    /// `RateLimited`, with the time to wait, if the principal, its tenant or the node reached its rate.
    pub fn count_request(&self, caller: &Caller) -> Result<(), Error> {
        let admitted = self.meters.admit_request(caller, self.snapshot_for(caller).limits());
        admitted.map_err(|reached| self.report_limit(reached, caller))
    }

    fn report_limit(&self, reached: ReachedLimit, caller: &Caller) -> Error {
        self.events.emit(Event::LimitReached { caller, level: reached.level, measure: reached.measure });
        reached.to_error()
    }

    /// Calls an entry. This and [`Self::write_rows`] are the only entry points to handlers.
    ///
    /// Must be called within a tokio runtime. The handler runs on a task of its own. The task ends when the handler
    /// returns, when the job is cancelled, when the reply is dropped, or at the deadline.
    ///
    /// # Errors
    /// `NotFound` if the target does not exist or is hidden from the caller, `InvalidArguments` with every violation,
    /// `RateLimited` if the limit of open calls, the rate of the tool, or a daily limit is reached. Errors of the
    /// handler are in the reply's outcome.
    pub fn call(&self, mut call: Call) -> Result<Reply, Error> {
        let snapshot = self.snapshot_for(&call.caller);
        let route = route(&snapshot, &mut call);
        self.start_call(snapshot, call, route)
    }

    /// Calls an entry that takes rows: as [`Self::call`], for a transport that must know first which bodies it takes. The
    /// entry is looked up once; `build` then makes its call. `table` is the database and the table that get the rows,
    /// unless the rows themselves name their tables.
    ///
    /// # Errors
    /// Those of [`Self::call`], as `refuse` has them, and of `build`. A caller without the entry has no `table` to write to.
    pub fn write_rows<E>(
        &self,
        entry: WriteRows,
        table: Option<(&str, &str)>,
        caller: Caller,
        refuse: impl Fn(Error) -> E,
        build: impl FnOnce(CallTarget, Caller, Option<RequestBodyTypes>) -> Result<Call, E>,
    ) -> Result<Reply, E> {
        let (snapshot, target) = (self.snapshot_for(&caller), CallTarget::Tool(entry.name().to_owned()));
        let tool = snapshot.tool(entry.name(), &caller).map_err(|error| {
            let error = self.report_refusal(&caller, &target, error);
            let is_absent = error.kind() == ErrorKind::NotFound;
            refuse(match table.filter(|_| is_absent) {
                Some((database, table)) => Error::takes_no_rows(database, table),
                None => error,
            })
        })?;
        let mut call = build(target, caller, tool.request_body)?;
        let route = Route::to_tool(tool, &mut call);
        self.start_call(snapshot, call, route).map_err(refuse)
    }

    fn report_refusal(&self, caller: &Caller, target: &CallTarget, error: Error) -> Error {
        let (kind, name, outcome) = (target.kind(), target.name(), error.kind().name());
        self.events.emit(Event::CallRefused { caller, kind, name, outcome });
        error
    }

    /// Admits a call, or refuses it. The first step that fails ends it, so that a caller learns nothing of what it may not
    /// call, and a call that is not admitted costs nothing.
    fn start_call(&self, snapshot: Arc<Snapshot>, call: Call, route: Result<Route, Error>) -> Result<Reply, Error> {
        let limits = *snapshot.limits();
        // 1. authorize, 2. coerce
        let route = match route {
            Ok(route) => route,
            Err(error) => return Err(self.report_refusal(&call.caller, &call.target, error)),
        };
        // 3. admit
        let is_on_behalf = call.on_behalf_of.is_some();
        let admitted = self.meters.admit_call(&call.caller, &call.target, is_on_behalf, &route.limits, &limits);
        let Admission { permit_queues, charges, guard } = match admitted {
            Ok(admission) => admission,
            Err(reached) => {
                let error = self.report_limit(reached, &call.caller);
                return Err(self.report_refusal(&call.caller, &call.target, error));
            }
        };
        let span = call_span(&call);
        let terms = CallTerms::new(&call, &route.limits, snapshot);
        let job = Arc::new(Job::new(call, terms, permit_queues, charges, self.events.clone()));
        if !self.jobs.open(job.clone(), limits.open_calls_max) {
            let reached = ReachedLimit::open_calls(LimitLevel::Node, limits.open_calls_max);
            let error = self.report_limit(reached, job.caller());
            return Err(self.report_refusal(job.caller(), job.target(), error));
        }
        // 4. deadline to 8. end
        let (sender, reply) = Reply::channel(job.clone(), route.output_schema);
        let execution = Execution {
            job,
            sender,
            handler: route.handler,
            admission: Some(guard),
            jobs: self.jobs.clone(),
            events: self.events.clone(),
            audit_reservation: Mutex::default(),
            cancel_grace: limits.cancel_grace,
        };
        self.tasks.spawn(execution.run().instrument(span));
        Ok(reply)
    }

    /// The current resources of the template of `lister`, for `caller`. A listing has the limits of a call and waits
    /// for a run permit, because it can query databases and use their connections. Otherwise a caller that lists in a
    /// loop could take all connections; with the limits it takes only from its own principal and tenant.
    ///
    /// # Errors
    /// `RateLimited` if too many calls of the principal or too many listings are open, and the errors of the lister. A
    /// panic of the lister becomes an internal error.
    pub async fn list_resources(&self, lister: &dyn ResourceLister, caller: &Caller) -> Result<Vec<Resource>, Error> {
        let limits = *self.snapshot_for(caller).limits();
        let admitted = self.meters.admit_listing(caller, &limits);
        let (permit_queues, _guard) = admitted.map_err(|reached| self.report_limit(reached, caller))?;
        let listing = async {
            let _permits = permit_queues.acquire().await?;
            lister.list(&caller.principal).await
        };
        let listing = AssertUnwindSafe(listing).catch_unwind();
        let listed = match tokio::time::timeout(limits.timeout, listing).await {
            Ok(listed) => listed.unwrap_or_else(|panic| Err(panic_to_error(&*panic))),
            Err(_) => Err(Error::new(ErrorKind::TimedOut, "listing the resources took too long")),
        };
        listed.inspect_err(|error| self.events.emit_error_detail(error, Uuid::new_v4()))
    }

    /// Waits until every call has ended. After `within` it cancels the calls that still run and waits for their end.
    pub async fn drain(&self, within: Duration) {
        self.watches.drain().await;
        self.tasks.close();
        if tokio::time::timeout(within, self.tasks.wait()).await.is_err() {
            self.jobs.cancel_all();
            // Handlers that ignore the cancellation are dropped after the grace period.
            let _ = tokio::time::timeout(self.limits().cancel_grace * 2, self.tasks.wait()).await;
        }
        let usage_flusher = self.usage_flusher.lock().take();
        if let Some(usage_flusher) = usage_flusher {
            usage_flusher.stop().await;
        }
    }
}

/// The span of the log lines of a call.
fn call_span(call: &Call) -> tracing::Span {
    // The full log of a call is long, and ordinary callers must not be able to fill the log.
    let trace = call.trace && call.caller.principal.grants.is_operator();
    tracing::info_span!("call", trace, parent = call.trace_parent.as_deref())
}

/// The current snapshot. Each swap increments its version.
#[derive(Debug)]
struct CurrentSnapshot {
    snapshot: ArcSwap<Snapshot>,
    version: watch::Sender<u64>,
}

impl CurrentSnapshot {
    fn new(snapshot: Snapshot) -> Self {
        let version = 1;
        Self { snapshot: ArcSwap::from_pointee(snapshot.with_version(version)), version: watch::Sender::new(version) }
    }

    fn load(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    fn load_for(&self, caller: &Caller) -> Arc<Snapshot> {
        Snapshot::for_caller(caller).unwrap_or_else(|| self.load())
    }

    /// Replaces the snapshot, notifies the receivers of versions, and returns the new version.
    fn swap(&self, snapshot: Snapshot) -> u64 {
        let mut version = 0;
        self.version.send_modify(|current| {
            *current += 1;
            version = *current;
            self.snapshot.store(Arc::new(snapshot.with_version(version)));
        });
        version
    }

    fn version(&self) -> u64 {
        *self.version.borrow()
    }

    fn versions(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }
}
