//! What a call gets at the door: places to wait for, and those to whom it is charged.
//!
//! A call waits for a place among its principal's, its tenant's, its tool's and all calls, in this order: whoever waits in
//! a line of many holds no more than places of fewer, so that one that has its fill keeps nobody else waiting. In the line
//! of a tool each tenant stands once, and each principal once for its tenant: they take turns, however many calls each has.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::charges::Charges;
use super::meter::OpenCallPermit;
use crate::error::{Error, ErrorKind};

/// What a call gets at the door.
#[derive(Debug)]
pub(crate) struct Admission {
    /// Where it waits for places; none for a call on behalf of one that holds them already.
    pub(crate) permit_queues: Option<PermitQueues>,
    pub(crate) charges: Charges,
    /// What it holds until it has ended.
    pub(crate) guard: AdmissionGuard,
}

/// What a call holds until it has ended, also while it asks.
#[derive(Debug, Default)]
pub(crate) struct AdmissionGuard {
    pub(super) open_calls: Vec<OpenCallPermit>,
    /// Of a call on behalf of another one: the place among those of its tool.
    pub(super) tool_permit: Option<OwnedSemaphorePermit>,
}

/// Where calls wait for a place, in order.
#[derive(Debug, Clone)]
pub(crate) struct PermitQueues(pub(super) Vec<PermitQueue>);

/// A line in which calls stand.
#[derive(Debug, Clone)]
pub(super) enum PermitQueue {
    /// For a place, which a call holds as long as it runs.
    Run(Arc<Semaphore>),
    /// For the turn of one holder, which a call holds as long as it stands in the lines that follow.
    FairTurn(Arc<Semaphore>),
}

/// A place that is held until it is dropped.
#[derive(Debug)]
pub(crate) struct RunPermits {
    _permits: Vec<OwnedSemaphorePermit>,
}

impl PermitQueues {
    /// Waits for a place.
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
