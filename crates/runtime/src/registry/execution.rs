//! The steps of a call from its route to its end, in the order of the list of [`super`]: look up, authorize, check
//! arguments; and what an admitted call does from its deadline on.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use parking_lot::Mutex;
use serde_json::Value;
use tidegate_core::{CallLimits, CallTarget, Completion, CompletionReference, Error, ErrorKind, JsonSchema, Violation};

use crate::entry::{Completer, Handler, Prompt, Tool, handler_fn, panic_to_error};
use crate::event::{AuditReservation, Event, EventDispatcher};
use crate::job::{Call, Job, JobState, Jobs};
use crate::limits::{AdmissionGuard, ReachedLimit};
use crate::reply::{Answer, AnswerMeta, ReplySender};
use crate::snapshot::{ResourceMatch, Snapshot, not_found};

pub(crate) struct Route {
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) limits: CallLimits,
    pub(crate) output_schema: Option<Arc<JsonSchema>>,
}

/// Finds the entry of `call`. Gives its arguments the types of the entry's schema, and its variables their values.
pub(crate) fn route(snapshot: &Snapshot, call: &mut Call) -> Result<Route, Error> {
    let caller = &call.caller;
    match &call.target {
        CallTarget::Tool(name) => {
            let tool = snapshot.tool(name, caller)?;
            Route::to_tool(tool, call)
        }
        CallTarget::Prompt(name) => {
            let prompt = snapshot.prompt(name, caller)?;
            // Texts are never null, so null counts as absent, as for tools.
            call.arguments.retain(|_, value| !value.is_null());
            check_prompt_arguments(prompt, call)?;
            Ok(Route::to_handler(prompt.handler.clone(), prompt.limits))
        }
        CallTarget::Resource(uri) => match snapshot.resource(uri, caller)? {
            ResourceMatch::Exact(resource) => Ok(Route::to_handler(resource.handler.clone(), resource.limits)),
            ResourceMatch::Template(template, variables) => {
                call.variables = variables;
                Ok(Route::to_handler(template.handler.clone(), template.limits))
            }
        },
        CallTarget::Completion(request) => {
            let (completer, limits) = match &request.reference {
                CompletionReference::Prompt(name) => {
                    let prompt = snapshot.prompt(name, caller)?;
                    (prompt.completer.clone(), prompt.limits)
                }
                CompletionReference::Resource(text) => {
                    let template = snapshot
                        .template(text, caller)
                        .ok_or_else(|| not_found("resource template", text, Vec::new()))?;
                    (template.completer.clone(), template.limits)
                }
            };
            Ok(Route::to_handler(completion_handler(completer), limits))
        }
    }
}

impl Route {
    /// The route to a tool that the caller of `call` may call.
    pub(crate) fn to_tool(tool: &Tool, call: &mut Call) -> Result<Self, Error> {
        let name = &tool.name;
        if call.request_body.is_some() && tool.request_body.is_none() {
            let message = format!("the tool {name:?} takes no body, only arguments");
            return Err(Error::new(ErrorKind::InvalidArguments, message));
        }
        let mut arguments = Value::Object(std::mem::take(&mut call.arguments));
        tool.call_schema()
            .coerce_and_check(&mut arguments)
            .map_err(|violations| invalid_arguments_error("tool", name, violations))?;
        if let Value::Object(checked) = arguments {
            call.arguments = match &tool.preset {
                Some(preset) => preset.complete(checked),
                None => checked,
            };
        }
        Ok(Self { output_schema: tool.output_schema.clone(), ..Self::to_handler(tool.handler.clone(), tool.limits) })
    }

    fn to_handler(handler: Arc<dyn Handler>, limits: CallLimits) -> Self {
        Self { handler, limits, output_schema: None }
    }
}

/// Answers with the values of `completer`. An entry without one has none.
fn completion_handler(completer: Option<Arc<dyn Completer>>) -> Arc<dyn Handler> {
    handler_fn(move |call| {
        let completer = completer.clone();
        async move {
            let completion = match (call.target(), completer) {
                (CallTarget::Completion(request), Some(completer)) => {
                    completer.complete(request, call.job().clone()).await?
                }
                _ => Completion::default(),
            };
            Ok(Answer::completion(completion))
        }
    })
}

fn invalid_arguments_error(kind: &str, name: &str, violations: Vec<Violation>) -> Error {
    Error::invalid_arguments(format!("the arguments of {kind} {name:?} are wrong:"), violations)
}

fn check_prompt_arguments(prompt: &Prompt, call: &Call) -> Result<(), Error> {
    let declared: BTreeSet<&str> = prompt.arguments.iter().map(|argument| argument.name.as_str()).collect();
    let violation = |path: &str, message: &str| Violation { path: path.to_owned(), message: message.to_owned() };
    let unknown = call.arguments.keys().filter(|name| !declared.contains(name.as_str()));
    let missing = prompt.arguments.iter().filter(|a| a.required && !call.arguments.contains_key(&a.name));
    let mistyped = call.arguments.iter().filter(|(_, value)| !value.is_string());
    let violations: Vec<Violation> = missing
        .map(|argument| violation(&argument.name, "is required"))
        .chain(unknown.map(|name| violation(name, "is no argument of this prompt")))
        .chain(mistyped.map(|(name, _)| violation(name, "must be a string")))
        .collect();
    if violations.is_empty() { Ok(()) } else { Err(invalid_arguments_error("prompt", &prompt.name, violations)) }
}

pub(crate) struct Execution {
    pub(crate) job: Arc<Job>,
    pub(crate) sender: ReplySender,
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) admission: Option<AdmissionGuard>,
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) events: EventDispatcher,
    pub(crate) audit_reservation: Mutex<Option<Box<dyn AuditReservation>>>,
    pub(crate) cancel_grace: Duration,
}

impl Execution {
    pub(crate) async fn run(mut self) {
        self.events.emit(Event::CallStarted { job: &self.job });
        // 4. deadline, with 5. audit, 6. permits and 7. run
        let outcome = match self.execute_within_limits().await {
            Ok(metadata) => Ok(AnswerMeta { missing_nodes: self.job.missing_nodes(), ..metadata }),
            Err(error) => {
                let error = self.explain_with_missing_nodes(error);
                self.job.report_error_detail(&error);
                Err(self.job.protection().redact_error(error))
            }
        };
        // 8. end
        let state = match &outcome {
            Ok(_) => JobState::Done,
            Err(error) => {
                self.job.set_failure(error);
                JobState::Failed(error.kind())
            }
        };
        self.job.set_state(state);
        self.jobs.close(&self.job);
        self.job.permits.release();
        self.admission = None;
        self.events.emit(Event::CallEnded { job: &self.job, outcome: state.name() });
        self.write_audit_record(state.name());
        if !self.job.lifetime.is_in_background() {
            self.sender.end(outcome).await;
        }
    }

    async fn execute_within_limits(&self) -> Result<AnswerMeta, Error> {
        let job = &self.job;
        let dropped_after_grace = async {
            job.cancelled().await;
            tokio::time::sleep(self.cancel_grace).await;
        };
        let result = tokio::select! {
            biased;
            result = AssertUnwindSafe(self.execute()).catch_unwind() =>
                result.unwrap_or_else(|panic| Err(panic_to_error(&*panic))),
            () = dropped_after_grace => Err(Error::cancelled()),
            () = job.lifetime.watch_client() => Err(Error::cancelled()),
            () = job.watch_deadline() => Err(Error::new(ErrorKind::TimedOut, "the call ran too long")),
        };
        // Emitted even if the answer was complete: the next call is refused.
        if let Some(ReachedLimit { level, measure, .. }) = job.usage().exceeded_limit() {
            self.events.emit(Event::LimitReached { caller: job.caller(), level, measure });
        }
        match result {
            Err(error) if job.is_cancelled() && error.kind() != ErrorKind::Internal => Err(self.cancellation_error()),
            result => result,
        }
    }

    async fn execute(&self) -> Result<AnswerMeta, Error> {
        // 5. audit
        self.reserve_audit_line().await?;
        // 6. permits
        self.acquire_permits().await?;
        // 7. run
        self.job.set_state(JobState::Running);
        tokio::select! {
            biased;
            result = self.run_handler() => result,
            () = self.job.usage().charge_time(&self.job.timer) => Err(Error::cancelled()),
        }
    }

    async fn reserve_audit_line(&self) -> Result<(), Error> {
        let Some(auditor) = self.events.auditor() else { return Ok(()) };
        let line = tokio::select! {
            biased;
            () = self.job.cancelled() => return Err(self.cancellation_error()),
            line = auditor.reserve() => line?,
        };
        *self.audit_reservation.lock() = Some(line);
        Ok(())
    }

    async fn acquire_permits(&self) -> Result<(), Error> {
        if !self.job.permits.are_needed() {
            return Ok(());
        }
        tokio::select! {
            biased;
            () = self.job.cancelled() => Err(self.cancellation_error()),
            acquired = self.job.permits.acquire() => acquired,
            // Runs only if no permit is free at once.
            () = self.report_waiting() => Err(self.cancellation_error()),
        }
    }

    async fn run_handler(&self) -> Result<AnswerMeta, Error> {
        let answer = self.handler.handle(self.sender.call().clone()).await?;
        let metadata = answer.send(&self.sender).await?;
        if !self.job.lifetime.is_in_background() {
            self.sender.send_missing_nodes_note().await?;
        }
        Ok(metadata)
    }

    /// Reports as progress why the call does not run yet; never resolves.
    async fn report_waiting(&self) {
        self.events.emit(Event::CallWaiting { job: &self.job });
        // A client that no longer reads has dropped the reply, which cancels the job.
        let _ = self.sender.call().progress(0.0, None, Some("waiting for other calls to end".to_owned())).await;
        std::future::pending().await
    }

    /// `error` of the call, which may have another cause than it seems if rows are missing.
    fn explain_with_missing_nodes(&self, error: Error) -> Error {
        let Some(note) = self.job.missing_nodes().map(|missing| missing.to_string()) else { return error };
        let hint = match error.hint() {
            // A call on behalf of this one has failed.
            Some(hint) if hint.contains(&note) => return error,
            Some(hint) => format!("{hint}\n{note}"),
            None => note,
        };
        error.with_hint(hint)
    }

    /// Writes the audit record of the call before its end becomes visible to the client.
    fn write_audit_record(&self, outcome: &'static str) {
        let Some(auditor) = self.events.auditor() else { return };
        match self.audit_reservation.lock().take() {
            Some(line) => line.write(&self.job, outcome),
            None => auditor.record_unreserved(&self.job, outcome),
        }
    }

    fn cancellation_error(&self) -> Error {
        if let Some(exceeded) = self.job.usage().exceeded_limit() {
            return exceeded.to_error();
        }
        self.job.lifetime.timeout_error().cloned().unwrap_or_else(Error::cancelled)
    }
}
