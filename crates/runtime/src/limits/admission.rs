//! Admission of calls: the run permits that a call waits for, and the accounts that it is charged to.
//!
//! A call waits for the run permits of its principal, its tenant, its tool and the node, in this order. A call in a
//! later queue holds permits only of earlier, narrower levels, so a principal at its limit does not block others. In
//! the queue of a tool, each tenant has one place, and each principal has one place for its tenant: they take turns,
//! however many calls each of them has.

use std::sync::Arc;

use tidegate_core::{Error, ErrorKind};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::charges::Charges;
use super::meter::OpenCallPermit;

/// The result of the admission of a call.
#[derive(Debug)]
pub(crate) struct Admission {
    /// The queues for run permits; `None` for a call on behalf of one that already holds permits.
    pub(crate) permit_queues: Option<PermitQueues>,
    pub(crate) charges: Charges,
    /// What the call holds until it has ended.
    pub(crate) guard: AdmissionGuard,
}

/// What a call holds until it has ended, also while it waits for input.
#[derive(Debug, Default)]
pub(crate) struct AdmissionGuard {
    pub(super) open_calls: Vec<OpenCallPermit>,
    /// For a call on behalf of another one: its permit among the calls of its tool.
    pub(super) tool_permit: Option<OwnedSemaphorePermit>,
}

/// The queues for run permits, in the order in which calls wait in them.
#[derive(Debug, Clone)]
pub(crate) struct PermitQueues(pub(super) Vec<PermitQueue>);

/// A queue of calls.
#[derive(Debug, Clone)]
pub(super) enum PermitQueue {
    /// For a run permit, which the call holds while it runs.
    Run(Arc<Semaphore>),
    /// For the turn of one holder, which the call holds while it waits in the queues that follow.
    FairTurn(Arc<Semaphore>),
}

/// Run permits that are held until this is dropped.
#[derive(Debug)]
pub(crate) struct RunPermits {
    _permits: Vec<OwnedSemaphorePermit>,
}

impl PermitQueues {
    /// Waits for all permits.
    pub(crate) async fn acquire(&self) -> Result<RunPermits, Error> {
        let (mut owned_semaphore_permits, mut turns) = (Vec::with_capacity(self.0.len()), Vec::new());
        for line in &self.0 {
            let (line, held) = match line {
                PermitQueue::Run(line) => (line, &mut owned_semaphore_permits),
                PermitQueue::FairTurn(line) => (line, &mut turns),
            };
            // The semaphores are never closed.
            let closed = |_| Error::new(ErrorKind::Unavailable, "the server is shutting down");
            held.push(line.clone().acquire_owned().await.map_err(closed)?);
        }
        Ok(RunPermits { _permits: owned_semaphore_permits })
    }
}
