//! A call that is being executed.
//!
//! A job is what the call is, which does not change (`call`), and what it does:
//!
//! - `call_timer`, `call_lifetime`: how long it runs, and what ends it;
//! - `call_permits`, `call_usage`: what it takes from the limits of its caller;
//! - `interaction`: how it waits for input, and becomes a task;
//! - `protection`, `missing_nodes`, `client_log`: what its client receives beside the answer of the handler, and instead;
//! - `job_record`, `status`: what others learn of it.

mod call;
mod call_lifetime;
mod call_permits;
mod call_timer;
mod call_usage;
mod interaction;
mod job_record;
mod jobs;
mod missing_nodes;
mod protection;
mod request_body;
mod status;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Map, Value};
use tidegate_core::{CallTarget, Caller, Error, Format, Limits, Principal};
use tokio::time::Instant;

use self::call_lifetime::CallLifetime;
use self::call_permits::CallPermits;
use self::call_timer::CallTimer;
use self::job_record::JobRecord;
use crate::event::{ClientLog, Event, EventDispatcher, QueryStep};
use crate::limits::{PermitQueues, UsageCharges};

pub(crate) use self::call::CallTerms;
pub use self::call::{Call, ClientRequest};
pub use self::call_usage::CallUsage;
pub use self::jobs::Jobs;
pub use self::protection::AnswerProtector;
pub use self::request_body::{RequestBody, RequestBodyReader};
pub use self::status::{JobId, JobState, JobStatus};

/// A call that is being executed, with the data for its handler and its status for others.
#[derive(Debug)]
pub struct Job {
    id: JobId,
    request: Call,
    terms: CallTerms,
    events: EventDispatcher,
    pub(crate) timer: CallTimer,
    pub(crate) lifetime: CallLifetime,
    pub(crate) permits: CallPermits,
    usage: CallUsage,
    protection: AnswerProtector,
    record: Mutex<JobRecord>,
    pub(crate) client_log: ClientLog,
}

impl Job {
    pub(crate) fn new(
        request: Call,
        terms: CallTerms,
        permit_queues: Option<PermitQueues>,
        charges: UsageCharges,
        events: EventDispatcher,
    ) -> Self {
        let lifetime = CallLifetime::new(request.cancellation.clone());
        let mut protection = terms.snapshot.protection().clone();
        // A body of its own is not for a model.
        protection.fences_data &= request.format.is_none();
        Self {
            // From a seeded generator: the system's one costs a call of the kernel.
            id: JobId(uuid::Builder::from_random_bytes(rand::random()).into_uuid()),
            timer: CallTimer::new(terms.limits.timeout),
            usage: CallUsage::new(charges, lifetime.cancellation.clone()),
            lifetime,
            permits: CallPermits::new(permit_queues),
            protection: AnswerProtector::new(protection),
            record: Mutex::default(),
            client_log: ClientLog::new(request.log_level),
            request,
            terms,
            events,
        }
    }

    /// The job's id.
    pub fn id(&self) -> JobId {
        self.id
    }

    /// The request that made the call, with its arguments as the target's schema has them.
    pub fn request(&self) -> &Call {
        &self.request
    }

    /// The target of the call.
    pub fn target(&self) -> &CallTarget {
        &self.request.target
    }

    /// The arguments, validated against the target's schema.
    pub fn arguments(&self) -> &Map<String, Value> {
        &self.request.arguments
    }

    /// The caller.
    pub fn caller(&self) -> &Caller {
        &self.request.caller
    }

    /// The principal of the caller.
    pub fn principal(&self) -> &Arc<Principal> {
        &self.request.caller.principal
    }

    /// The format of the answer, if it is a body of its own.
    pub fn format(&self) -> Option<Format> {
        self.request.format
    }

    /// The value of a resource template's variable, percent-decoded.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.request.variables.get(name).map(String::as_str)
    }

    /// The limits of the call: those of its entry, then those of the registry. `inline` is the part of the answer that may
    /// be sent inline, within that of the transport.
    pub fn limits(&self) -> &Limits {
        &self.terms.limits
    }

    /// The fingerprint of the row policies that apply to the caller.
    pub fn row_policy_fingerprint(&self) -> u64 {
        self.terms.snapshot.row_policies().fingerprint_for(self.principal())
    }

    /// What the call has used so far.
    pub fn usage(&self) -> &CallUsage {
        &self.usage
    }

    /// Masks secrets in the answer, and fences its data.
    pub fn protection(&self) -> &AnswerProtector {
        &self.protection
    }

    /// When the job reaches its time limit.
    pub fn deadline(&self) -> Instant {
        self.timer.deadline()
    }

    /// Extends the deadline so that the job can run for at least `time` from now. Work that continues after its answer
    /// has limits of its own.
    pub fn extend(&self, time: Duration) {
        self.timer.extend(time);
    }

    /// Emits the event that a query of the job made a step.
    pub fn report_step(&self, step: QueryStep<'_>) {
        self.events.emit(Event::QueryStep { job: self, step });
    }

    /// Emits the detail of `error`, which is part of the answer and does not end the call.
    pub fn report_error_detail(&self, error: &Error) {
        self.events.emit_error_detail(error, self.id.0);
    }
}
