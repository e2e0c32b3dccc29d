//! The single list of what can be called, and the one door to it.
//!
//! The way of a call: look up, authorize, check arguments, apply limits, make the job, run the
//! handler on a task of its own.

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use futures::FutureExt;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::task::TaskTracker;
use tracing::Instrument;
use uuid::Uuid;

use crate::call::{Call, CallTarget};
use crate::caller::Caller;
use crate::error::{Error, ErrorKind};
use crate::event::{Event, EventDispatcher};
use crate::execution::Execution;
use crate::job::Job;
use crate::jobs::Jobs;
use crate::limits::{Admission, Calendar, LimitLevel, Limits, Meters, ReachedLimit, UsageFlusher};
use crate::redaction::JobProtection;
use crate::reply::Reply;
use crate::resource::{Resource, ResourceLister};
use crate::route::route;
use crate::snapshot::Snapshot;
use crate::watch::{Watch, WatchManager};

/// After what time somebody hears that it asks too often.
const REFUSAL_DELAY: Duration = Duration::from_millis(20);

/// The single list of tools, resources, resource templates and prompts.
#[derive(Debug)]
pub struct Registry {
    snapshot: ArcSwap<Snapshot>,
    version: watch::Sender<u64>,
    watches: WatchManager,
    jobs: Arc<Jobs>,
    meters: Arc<Meters>,
    /// What writes down what callers have used.
    usage_flusher: Mutex<Option<UsageFlusher>>,
    tasks: TaskTracker,
    events: EventDispatcher,
}

impl Registry {
    /// A registry in the state of `snapshot`, whose limits say for good how many calls are remembered; the other limits
    /// change with each state.
    pub fn new(snapshot: Snapshot, events: EventDispatcher) -> Arc<Self> {
        Self::with_clock(snapshot, events, SystemTime::now)
    }

    /// The same, whose days begin when `clock` says so.
    pub fn with_clock(
        snapshot: Snapshot,
        events: EventDispatcher,
        clock: impl Fn() -> SystemTime + Send + Sync + 'static,
    ) -> Arc<Self> {
        let version = 1;
        let ended_jobs_kept = snapshot.limits().ended_jobs_max;
        let version_sender = watch::Sender::new(version);
        Arc::new(Self {
            snapshot: ArcSwap::from_pointee(snapshot.with_version(version)),
            watches: WatchManager::new(version_sender.subscribe(), events.clone()),
            version: version_sender,
            jobs: Arc::new(Jobs::new(ended_jobs_kept)),
            meters: Arc::new(Meters::new(Calendar::new(clock))),
            usage_flusher: Mutex::default(),
            tasks: TaskTracker::new(),
            events,
        })
    }

    /// The state now. Calls that run keep the state they began with.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// The state that `caller` calls into.
    pub fn snapshot_for(&self, caller: &Caller) -> Arc<Snapshot> {
        caller.snapshot.clone().unwrap_or_else(|| self.snapshot())
    }

    /// Swaps the state whole and announces it.
    pub fn swap(&self, snapshot: Snapshot) {
        let mut version = 0;
        self.version.send_modify(|current| {
            *current += 1;
            version = *current;
            self.snapshot.store(Arc::new(snapshot.with_version(version)));
        });
        self.events.emit(Event::RegistryChanged { version });
    }

    /// Tells of each new version.
    pub fn versions(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// Somebody who listens to changes of this registry and of what its resources hold.
    pub fn watch(self: &Arc<Self>) -> Watch {
        self.watches.open(self.clone())
    }

    /// The jobs.
    pub fn jobs(&self) -> &Arc<Jobs> {
        &self.jobs
    }

    /// The bounds of all calls.
    pub fn limits(&self) -> Limits {
        *self.snapshot.load().limits()
    }

    /// Those who hear of events.
    pub fn events(&self) -> &EventDispatcher {
        &self.events
    }

    /// Whether calls are let in: not while they are to be written down and cannot be.
    pub fn admits_calls(&self) -> bool {
        !self.events.auditor().is_some_and(|auditor| auditor.stats().is_blocked)
    }

    /// From now on keeps what callers use of their days in `file`, and takes over what was kept there today. Must be
    /// called within a tokio runtime, once, before the first call. What the last ten seconds took may be lost with the
    /// process; what stands there when all has drained is whole.
    ///
    /// # Errors
    /// When there is such a file and it cannot be read; then it is written anew all the same.
    pub fn persist_usage(&self, file: PathBuf) -> std::io::Result<()> {
        let restored = self.meters.restore(&file);
        *self.usage_flusher.lock() = Some(UsageFlusher::start(self.meters.clone(), file));
        restored
    }

    /// Lets a request of `caller` in, whatever it is; each door asks once for each. Who asks too often hears so a moment
    /// later: a refusal takes nearly as much of the processor as an answer, and would be taken from the
    /// others by whoever asks again at once.
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
    /// `RateLimited` with the time to try again after, when too many came of the principal, of its tenant, or in all.
    pub fn count_request(&self, caller: &Caller) -> Result<(), Error> {
        let admitted = match &caller.snapshot {
            Some(state) => self.meters.admit_request(caller, state.limits()),
            None => self.meters.admit_request(caller, self.snapshot.load().limits()),
        };
        admitted.map_err(|reached| self.report_limit(reached, caller))
    }

    /// Tells of a bound that `caller` has reached.
    fn report_limit(&self, reached: ReachedLimit, caller: &Caller) -> Error {
        self.events.emit(Event::LimitReached { caller, level: reached.level, measure: reached.measure });
        reached.to_error()
    }

    /// The one door to any handler.
    ///
    /// Must be called within a tokio runtime; the handler runs on a task of its own, which ends
    /// when it is done, when the job is cancelled, when the reply is dropped or at the deadline.
    ///
    /// # Errors
    /// `NotFound` when the target does not exist or is hidden from the caller, `InvalidArguments`
    /// with every violation, `RateLimited` when too many calls are open, of the tool came, or the day's
    /// share is used up. Errors of the handler come as the reply's outcome.
    pub fn call(&self, call: Call) -> Result<Reply, Error> {
        let caller = call.caller.clone();
        self.start_call(call)
            .inspect_err(|(target, error)| {
                let (kind, name, outcome) = (target.kind(), target.name(), error.kind().name());
                self.events.emit(Event::CallRefused { caller: &caller, kind, name, outcome });
            })
            .map_err(|(_, error)| error)
    }

    fn start_call(&self, call: Call) -> Result<Reply, (CallTarget, Error)> {
        let snapshot = self.snapshot_for(&call.caller);
        let limits = snapshot.limits();
        let route = match route(&snapshot, &call) {
            Ok(route) => route,
            Err(error) => return Err((call.target, error)),
        };
        let Admission { permit_queues: positions, charges, guard: held } =
            match self.meters.admit_call(&call, &route.limits, limits) {
                Ok(admitted) => admitted,
                Err(reached) => return Err((call.target, self.report_limit(reached, &call.caller))),
            };
        let budget = match call.format {
            None => route.limits.inline.unwrap_or(limits.inline),
            Some(_) => route.limits.body.or(route.limits.inline).unwrap_or_default(),
        };
        let inline = budget.and(call.inline_limit);
        let timeout = route.limits.timeout.unwrap_or(limits.timeout);
        let task_after = route.limits.task_after.unwrap_or(limits.task_after);
        // What an entry says of its calls holds for its tasks, too.
        let task_timeout = if route.limits.timeout.is_some() { Duration::ZERO } else { limits.task_timeout };
        let bounds = Limits { task_after, task_timeout, ..*limits };
        // The log of a call is long; a caller must not be able to fill it.
        let trace = call.trace && call.caller.principal.grants.is_operator();
        let span = tracing::info_span!("call", trace, parent = call.trace_parent.as_deref());
        let mut job = Job::new(call, route.variables, inline, timeout, &bounds, charges);
        job.protection = JobProtection::new(snapshot.protection().clone());
        job.row_policy_stamper = snapshot.row_policy_stamper().clone();
        if self.events.auditor().is_some() {
            job.enable_audit_trail();
        }
        let job = Arc::new(job);
        if !self.jobs.open(job.clone(), limits.open_calls_max) {
            let error =
                self.report_limit(ReachedLimit::open_calls(LimitLevel::Node, limits.open_calls_max), job.caller());
            return Err((job.target().clone(), error));
        }
        let (sender, reply) = Reply::channel(job.clone(), route.output_schema);
        let execution = Execution {
            job,
            sender,
            handler: route.handler,
            permit_queues: positions,
            admission: Some(held),
            jobs: self.jobs.clone(),
            events: self.events.clone(),
            audit_reservation: Mutex::default(),
            cancel_grace: limits.cancel_grace,
        };
        self.tasks.spawn(execution.run().instrument(span));
        Ok(reply)
    }

    /// The resources that the template of `lister` has now for `caller`, listed within the bounds of a call: it
    /// waits for a place among them, too. What it does is what a call does, since catalogs are asked of databases and take their
    /// connections; without a place of a call whoever lists in a loop would have as much of these as it likes. With
    /// one it takes from the calls of its own principal and tenant alone.
    ///
    /// # Errors
    /// `RateLimited` when the principal has too many calls open, or too many listings are under way, and those of the lister;
    /// its panic becomes an internal error.
    pub async fn list_resources(&self, lister: &dyn ResourceLister, caller: &Caller) -> Result<Vec<Resource>, Error> {
        let limits = *self.snapshot_for(caller).limits();
        let admitted = self.meters.admit_listing(caller, &limits);
        let (permit_queues, _held) = admitted.map_err(|reached| self.report_limit(reached, caller))?;
        let listing = async {
            let _place = permit_queues.acquire().await?;
            lister.list(&caller.principal).await
        };
        let listing = AssertUnwindSafe(listing).catch_unwind();
        let listed = match tokio::time::timeout(limits.timeout, listing).await {
            Ok(listed) => listed.unwrap_or_else(|panic| Err(panic_to_error(&*panic))),
            Err(_) => Err(Error::new(ErrorKind::TimedOut, "listing the resources took too long")),
        };
        listed.inspect_err(|error| emit_internal_error(&self.events, error, Uuid::new_v4()))
    }

    /// Waits until every call has ended; after `with_limits` cancels those that still run and waits for
    /// them to end.
    pub async fn drain(&self, within: Duration) {
        self.watches.drain().await;
        self.tasks.close();
        if tokio::time::timeout(within, self.tasks.wait()).await.is_err() {
            self.jobs.cancel_all();
            // Handlers that ignore the cancellation are dropped after the grace.
            let _ = tokio::time::timeout(self.limits().cancel_grace * 2, self.tasks.wait()).await;
        }
        let usage_flusher = self.usage_flusher.lock().take();
        if let Some(usage_flusher) = usage_flusher {
            usage_flusher.stop().await;
        }
    }
}

/// Tells the log what the caller may not read, under the id that the caller was told or else under `id`.
pub(crate) fn emit_internal_error(events: &EventDispatcher, error: &Error, id: Uuid) {
    if let Some(detail) = error.detail() {
        events.emit(Event::InternalError { id: error.id().unwrap_or(id), detail });
    }
}

pub(crate) fn panic_to_error(panic: &(dyn std::any::Any + Send)) -> Error {
    let message = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned());
    Error::internal(format!("a handler panicked: {message}"))
}
