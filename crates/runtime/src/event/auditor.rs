//! Auditing of calls: an auditor reserves a line before a call starts and writes it when the call has ended.

use async_trait::async_trait;
use tidegate_core::Error;

use super::Subscriber;
use crate::job::Job;

/// Writes an audit line for every call.
///
/// An auditor learns of refused calls and messages as a [`Subscriber`], and nothing waits for these lines. A call waits
/// until its line is reserved, so that no call runs without a record.
#[async_trait]
pub trait Auditor: Subscriber {
    /// Waits until the line of a call that is about to start is reserved.
    ///
    /// # Errors
    /// `Unavailable` if no line can be reserved in time. The call does not run then.
    async fn reserve(&self) -> Result<Box<dyn AuditReservation>, Error>;

    /// Records a call that ended with `outcome` before its line was reserved. Must not block.
    fn record_unreserved(&self, job: &Job, outcome: &'static str);

    /// The counters of this auditor.
    fn stats(&self) -> AuditStats;
}

/// The reserved line of one call. Dropping it releases the reservation.
pub trait AuditReservation: Send {
    /// Records that `job` ended with `outcome`. Must not block.
    fn write(self: Box<Self>, job: &Job, outcome: &'static str);
}

/// The counters of an auditor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AuditStats {
    /// Lines written.
    pub written: u64,
    /// Lines dropped.
    pub dropped: u64,
    /// Lines that wait to be written.
    pub waiting: u64,
    /// Whether nothing can be written, so that calls wait and are refused.
    pub is_blocked: bool,
}
