//! A call that is being executed: how it waits for input, its continuation as a task, and the nodes whose rows its
//! answer lacks.
//!
//! A job is what the call is, which does not change (`call`), and what it does:
//!
//! - `lifetime`: how long it runs, and what ends it;
//! - `usage`: what it takes from the limits of its caller;
//! - `protection`, and log messages (`event`): what its client receives beside the answer of the handler, and instead;
//! - `jobs`: what others learn of it.

mod call;
mod jobs;
mod lifetime;
mod protection;
mod usage;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Map, Value};
use tidegate_core::{CallTarget, Caller, Error, ErrorKind, Format, Limits, MissingNodes, Principal, shorten};
use tokio::time::Instant;

use self::jobs::JobRecord;
use self::lifetime::{CallLifetime, CallTimer};
use self::usage::CallPermits;
use crate::event::{ClientLog, Event, EventDispatcher, QueryStep};
use crate::limits::{PermitQueues, UsageCharges};

pub(crate) use self::call::CallTerms;
pub use self::call::{Call, ClientRequest, RequestBody, RequestBodyReader};
pub use self::jobs::{JobId, JobState, JobStatus, Jobs};
pub use self::protection::AnswerProtector;
pub use self::usage::CallUsage;

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
        // A raw body is not for a model.
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

    /// The name of the entry that is called, which is one of the registry; empty for a completion.
    pub fn entry_name(&self) -> &str {
        match self.target() {
            CallTarget::Tool(name) | CallTarget::Prompt(name) => name,
            CallTarget::Resource(uri) => self.terms.snapshot.resource_name(uri).unwrap_or_default(),
            CallTarget::Completion(_) => "",
        }
    }

    /// The name of the tool that the target calls, if the target is a tool that [calls another one](crate::ToolPreset).
    pub fn called_tool(&self) -> Option<&str> {
        match self.target() {
            CallTarget::Tool(name) => self.terms.snapshot.called_tool(name),
            _ => None,
        }
    }

    /// The arguments, validated against the target's schema.
    pub fn arguments(&self) -> &Map<String, Value> {
        &self.request.arguments
    }

    /// The text of an argument; `None` without it, or if it is no text.
    pub fn text_argument(&self, name: &str) -> Option<&str> {
        self.arguments().get(name).and_then(Value::as_str)
    }

    /// The caller.
    pub fn caller(&self) -> &Caller {
        &self.request.caller
    }

    /// The principal of the caller.
    pub fn principal(&self) -> &Arc<Principal> {
        &self.request.caller.principal
    }

    /// The format of the answer, if it is a raw body.
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

impl Job {
    /// Whether the client answers input requests while the handler runs.
    pub fn supports_live_input(&self) -> bool {
        // A task waits for its answers, whatever the request of the call supports.
        self.ancestors().any(|Self { request, lifetime, .. }| {
            let is_task = || lifetime.task_requested.is_cancelled() || lifetime.task_started.is_cancelled();
            request.supports_live_input || is_task()
        })
    }

    /// Resolves when the handler requests that the call continues as a task.
    pub async fn task_requested(&self) {
        self.lifetime.task_requested.cancelled().await;
    }

    /// Continues the call as a task, with the time limit of tasks. Input requests wait for their answers from then on.
    pub fn continue_as_task(&self) {
        self.lifetime.task_started.cancel();
        self.extend(self.limits().task_timeout);
    }

    /// Requests that the call continues as a task. Returns whether the client supports tasks. If it does, input requests
    /// wait for their answers from then on, and the time limit is that of tasks.
    pub fn request_task(&self) -> bool {
        let is_supported = self.request.client_capabilities.tasks;
        if is_supported {
            self.ancestors().for_each(|job| job.lifetime.task_requested.cancel());
        }
        is_supported
    }

    /// This job, then the one on whose behalf it is made, and so on.
    fn ancestors(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |job| job.request.on_behalf_of.as_deref())
    }

    /// Releases the run permits until the input arrives. A call on behalf of another one uses that call's permits.
    pub(crate) fn pause_for_input(&self) -> InputPause<'_> {
        for job in self.ancestors() {
            job.timer.pause(self.limits().input_timeout);
            job.permits.release();
        }
        InputPause(self)
    }
}

/// A call that waits for input. Dropping this resumes its timer.
pub(crate) struct InputPause<'a>(&'a Job);

impl InputPause<'_> {
    pub(crate) async fn end(self) -> Result<(), Error> {
        let caller = self.0;
        drop(self);
        for job in caller.ancestors() {
            tokio::select! {
                biased;
                () = caller.cancelled() => return Err(Error::cancelled()),
                reacquired = job.permits.acquire() => reacquired?,
            }
        }
        Ok(())
    }
}

impl Drop for InputPause<'_> {
    fn drop(&mut self) {
        for job in self.0.ancestors() {
            job.timer.resume();
        }
    }
}

/// The number of characters of a reason. Answers have the reasons in their headers.
const REASON_CHARS_MAX: usize = 500;

/// What is known of the completeness of an answer.
#[derive(Debug, Default)]
struct AnswerCompleteness {
    missing: Option<Arc<MissingNodes>>,
    /// Whether the content of the answer names them.
    is_stated: bool,
    has_begun_body: bool,
}

impl Job {
    /// Records that the answer lacks the rows of `missing`. Its metadata names them then, and its content too: the end of
    /// the answer adds a note, unless the handler [states](Job::set_missing_nodes_stated) them itself.
    ///
    /// # Errors
    /// `Unavailable` if the body of the answer has begun: the header before it does not name them.
    pub fn record_missing_nodes(&self, missing: &MissingNodes) -> Result<(), Error> {
        let mut missing = self.protection.redact_missing_nodes(missing);
        for node in &mut missing.nodes {
            node.reason = shorten(std::mem::take(&mut node.reason), REASON_CHARS_MAX);
        }
        for job in self.ancestors() {
            let mut record = job.record.lock();
            let state = &mut record.completeness;
            let all = state.missing.as_ref().map_or_else(|| missing.clone(), |known| known.union(&missing));
            if state.missing.as_deref() == Some(&all) {
                continue;
            }
            if state.has_begun_body {
                let message = format!("nodes failed after the answer had begun: {}", missing.names());
                return Err(Error::new(ErrorKind::Unavailable, message).with_hint("Repeat the call."));
            }
            state.missing = Some(Arc::new(all));
            state.is_stated = false;
        }
        self.report_step(QueryStep::NodesMissing { nodes: &missing });
        Ok(())
    }

    /// The nodes whose rows the answer lacks, if any. They are known before its first row.
    pub fn missing_nodes(&self) -> Option<Arc<MissingNodes>> {
        self.record.lock().completeness.missing.clone()
    }

    /// Declares that the content of the answer names the missing nodes.
    pub fn set_missing_nodes_stated(&self) {
        self.ancestors().for_each(|job| job.record.lock().completeness.is_stated = true);
    }

    /// The missing nodes that the content of the answer must still name. A body has a header for them.
    pub(crate) fn take_unstated_nodes(&self) -> Option<Arc<MissingNodes>> {
        let unstated = {
            let record = self.record.lock();
            let state = &record.completeness;
            state.missing.clone().filter(|_| !state.is_stated && !state.has_begun_body)
        };
        if unstated.is_some() {
            self.set_missing_nodes_stated();
        }
        unstated
    }

    pub(crate) fn set_body_begun(&self) {
        self.record.lock().completeness.has_begun_body = true;
    }
}
