//! Measures and enforces the limits of calls: the run permits that a call waits for, and the meters that it is charged
//! to.
//!
//! A call waits for the run permits of its principal, its tenant, its tool and the node, in this order. A call in a
//! later queue holds permits only of earlier, narrower levels, so a principal at its limit does not block others. In
//! the queue of a tool, each tenant has one position, and each principal has one position for its tenant: they take
//! turns, however many calls each of them has. Usage is charged to every meter with a daily limit. A call that exceeds
//! a limit ends.

mod meters;
mod usage;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tidegate_core::{DailyLimits, Error, ErrorKind, LimitLevel, LimitMeasure};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use self::meters::{OpenCallPermit, UsageMeter};

pub(crate) use self::meters::Meters;
pub(crate) use self::usage::{Calendar, UsageAmount};

/// The usage of this time can be lost in a crash.
const FLUSH_INTERVAL: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct UsageFlusher {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl UsageFlusher {
    pub(crate) fn start(meters: Arc<Meters>, file: PathBuf) -> Self {
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let task = tokio::spawn(async move {
            let mut has_failed = false;
            while !stopped.is_cancelled() {
                let _ = tokio::time::timeout(FLUSH_INTERVAL, stopped.cancelled()).await;
                has_failed = flush(&meters, &file, has_failed).await;
            }
        });
        Self { stop, task }
    }

    pub(crate) async fn stop(self) {
        self.stop.cancel();
        // The task ends by itself; a panic in it was already reported.
        let _ = self.task.await;
    }
}

/// Returns whether writing failed; only the first failure is logged.
async fn flush(meters: &Meters, file: &Path, has_failed: bool) -> bool {
    let Some(record) = meters.take_changed_usage() else { return has_failed };
    let path = file.to_owned();
    let written = tokio::task::spawn_blocking(move || record.write(&path)).await;
    let failure = written.map_err(io::Error::other).and_then(|written| written).err();
    if let Some(error) = &failure {
        meters.mark_changed();
        if !has_failed {
            tracing::error!(file = %file.display(), %error, "cannot write the usage file");
        }
    }
    failure.is_some()
}

#[derive(Debug)]
pub(crate) struct Admission {
    /// The queues for run permits; `None` for a call on behalf of one that already holds permits.
    pub(crate) permit_queues: Option<PermitQueues>,
    pub(crate) charges: UsageCharges,
    pub(crate) guard: AdmissionGuard,
}

/// What a call holds until it has ended, also while it waits for input.
#[derive(Debug, Default)]
pub(crate) struct AdmissionGuard {
    open_calls: Vec<OpenCallPermit>,
    /// For a call on behalf of another one: its permit among the calls of its tool.
    tool_permit: Option<OwnedSemaphorePermit>,
}

impl AdmissionGuard {
    fn open_call(&mut self, level: LimitLevel, meter: &Arc<UsageMeter>, open_max: usize) -> Result<(), ReachedLimit> {
        let permit = meter.try_open_call(open_max).ok_or_else(|| ReachedLimit::open_calls(level, open_max))?;
        self.open_calls.push(permit);
        Ok(())
    }
}

/// The queues for run permits, in the order in which calls wait in them.
#[derive(Debug)]
pub(crate) struct PermitQueues(Vec<PermitQueue>);

#[derive(Debug)]
enum PermitQueue {
    /// For a run permit, which the call holds while it runs.
    Run(Arc<Semaphore>),
    /// For the turn of one principal or tenant, which the call holds while it waits in the queues that follow.
    FairTurn(Arc<Semaphore>),
}

/// Run permits that are held until this is dropped.
#[derive(Debug)]
pub(crate) struct RunPermits {
    _permits: Vec<OwnedSemaphorePermit>,
}

impl PermitQueues {
    pub(crate) async fn acquire(&self) -> Result<RunPermits, Error> {
        let (mut permits, mut turns) = (Vec::with_capacity(self.0.len()), Vec::new());
        for queue in &self.0 {
            let (semaphore, held) = match queue {
                PermitQueue::Run(semaphore) => (semaphore, &mut permits),
                PermitQueue::FairTurn(semaphore) => (semaphore, &mut turns),
            };
            // The semaphores are never closed.
            let closed = |_| Error::new(ErrorKind::Unavailable, "the server is shutting down");
            held.push(semaphore.clone().acquire_owned().await.map_err(closed)?);
        }
        Ok(RunPermits { _permits: permits })
    }
}

#[derive(Default)]
pub(crate) struct UsageCharges {
    meters: Vec<ChargedMeter>,
    calendar: Option<Calendar>,
    /// Set when there is usage to write to the usage file.
    has_changed: Arc<AtomicBool>,
    exceeded: OnceLock<ReachedLimit>,
}

struct ChargedMeter {
    level: LimitLevel,
    meter: Arc<UsageMeter>,
    daily: DailyLimits,
    /// Whether its bytes and run time are charged by the call on whose behalf this one is made.
    charges_rows_only: bool,
}

impl UsageCharges {
    fn new(calendar: Calendar, has_changed: Arc<AtomicBool>) -> Self {
        Self { calendar: Some(calendar), has_changed, ..Self::default() }
    }

    fn add(&mut self, level: LimitLevel, meter: Arc<UsageMeter>, daily: DailyLimits, charges_rows_only: bool) {
        self.meters.push(ChargedMeter { level, meter, daily, charges_rows_only });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.meters.is_empty()
    }

    /// Charges `amount`. Returns false if a limit is exceeded.
    pub(crate) fn charge(&self, amount: UsageAmount) -> bool {
        let Some(calendar) = self.calendar.as_ref().filter(|_| !self.meters.is_empty()) else { return true };
        let day = calendar.day();
        self.has_changed.store(true, Ordering::Relaxed);
        for charged in &self.meters {
            let amount = match charged.charges_rows_only {
                true => UsageAmount { rows: amount.rows, ..UsageAmount::default() },
                false => amount,
            };
            let used_today = charged.meter.charge(day, amount);
            if let Some((measure, bound)) = used_today.exceeded_limit(&charged.daily) {
                let retry_after = calendar.until_tomorrow();
                self.exceeded.get_or_init(|| ReachedLimit { level: charged.level, measure, bound, retry_after });
            }
        }
        self.exceeded.get().is_none()
    }

    pub(crate) fn exceeded_limit(&self) -> Option<ReachedLimit> {
        self.exceeded.get().copied()
    }
}

impl fmt::Debug for UsageCharges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UsageCharges").field("meters", &self.meters.len()).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReachedLimit {
    pub(crate) level: LimitLevel,
    pub(crate) measure: LimitMeasure,
    /// The limit: requests at once, calls, rows, bytes, seconds.
    bound: u64,
    retry_after: Duration,
}

/// An estimate, because the end of a call is not known. It keeps clients from repeating requests without a pause.
const CALLS_RETRY_AFTER: Duration = Duration::from_secs(1);

impl ReachedLimit {
    pub(crate) fn open_calls(level: LimitLevel, bound: usize) -> Self {
        Self { level, measure: LimitMeasure::Calls, bound: bound as u64, retry_after: CALLS_RETRY_AFTER }
    }

    pub(crate) fn to_error(self) -> Error {
        let Self { level, measure, bound, retry_after } = self;
        let daily_limit = |subject: &str| {
            let owner = level.possessive();
            format!("{owner} daily limit of {bound} {subject} is used up; it resets at 00:00 UTC")
        };
        let message = match (measure, level) {
            (LimitMeasure::Requests, _) => {
                let origin = match level {
                    LimitLevel::Principal => "from you",
                    LimitLevel::Tenant => "from your tenant",
                    LimitLevel::Tool => "to this tool",
                    LimitLevel::Node => "from all callers together",
                };
                let seconds = retry_after.as_secs_f64();
                format!("too many requests {origin}; try again in {seconds:.1} s")
            }
            (LimitMeasure::Calls, LimitLevel::Node) => format!("more than {bound} calls are open; try again later"),
            (LimitMeasure::Calls, _) => {
                format!("more than {bound} of {} calls are open; wait until one ends", level.possessive())
            }
            (LimitMeasure::Rows, _) => daily_limit("rows"),
            (LimitMeasure::Bytes, _) => daily_limit("bytes"),
            (LimitMeasure::Time, _) => daily_limit("seconds of calls"),
        };
        Error::new(ErrorKind::RateLimited, message).with_retry_after(retry_after)
    }
}
