//! Admission of calls: the run permits that a call waits for, and the meters that it is charged to.
//!
//! A call waits for the run permits of its principal, its tenant, its tool and the node, in this order. A call in a
//! later queue holds permits only of earlier, narrower levels, so a principal at its limit does not block others. In
//! the queue of a tool, each tenant has one position, and each principal has one position for its tenant: they take
//! turns, however many calls each of them has.

use std::sync::Arc;

use tidegate_core::{Error, ErrorKind, LimitLevel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::charges::{ReachedLimit, UsageCharges};
use super::meter::{OpenCallPermit, UsageMeter};

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
    pub(super) tool_permit: Option<OwnedSemaphorePermit>,
}

impl AdmissionGuard {
    pub(super) fn open_call(
        &mut self,
        level: LimitLevel,
        meter: &Arc<UsageMeter>,
        open_max: usize,
    ) -> Result<(), ReachedLimit> {
        let permit = meter.try_open_call(open_max).ok_or_else(|| ReachedLimit::open_calls(level, open_max))?;
        self.open_calls.push(permit);
        Ok(())
    }
}

/// The queues for run permits, in the order in which calls wait in them.
#[derive(Debug)]
pub(crate) struct PermitQueues(pub(super) Vec<PermitQueue>);

#[derive(Debug)]
pub(super) enum PermitQueue {
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
