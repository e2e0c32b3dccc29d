//! `tidegate://jobs/{id}`: one call of the caller, as in `list_jobs`.

use std::sync::Arc;

use async_trait::async_trait;
use tidegate_core::{
    CallOrigin, Caller, Completion, CompletionRequest, Error, Principal, TemplateVariables, TransportKind,
};
use tidegate_query::OutputOptions;
use tidegate_runtime::{
    Answer, Completer, Job, JobStatus, Resource, ResourceLister, ResourceTemplate, ResourceWatcher, RunningCall,
};

use super::{json_template, resource_from_template};
use crate::operations::{jobs_as_rows, unknown_job_error};
use crate::tool_context::ToolContext;
use crate::tool_definition::context_handler;

const TEMPLATE: &str = "tidegate://jobs/{id}";
/// Jobs in the list at most; others are found by completion and by `list_jobs`.
const JOBS_LISTED_MAX: usize = 100;

pub(crate) fn template(node: &Arc<ToolContext>) -> ResourceTemplate {
    let mut template = base_template(node);
    template.completer = Some(Arc::new(JobIdCompleter(node.clone())));
    template.lister = Some(Arc::new(JobLister(node.clone())));
    template.watcher = Some(Arc::new(JobWatcher(node.clone())));
    template
}

fn base_template(node: &Arc<ToolContext>) -> ResourceTemplate {
    json_template(
        TEMPLATE,
        "job",
        "Job",
        "One of your running or recent calls: its state, rows and bytes, as JSON.",
        context_handler(node, read_job),
    )
}

async fn read_job(node: Arc<ToolContext>, call: RunningCall) -> Result<Answer, Error> {
    let (jobs, id) = (node.jobs()?, call.variable("id").unwrap_or_default());
    let Some(status) = jobs.get(id, call.caller()) else {
        return Err(unknown_job_error(id, &jobs.list(call.caller()), &call));
    };
    Ok(node.executor.answer_rows(jobs_as_rows(&[status])?, OutputOptions::default()))
}

struct JobIdCompleter(Arc<ToolContext>);

#[async_trait]
impl Completer for JobIdCompleter {
    async fn complete(&self, request: &CompletionRequest, job: Arc<Job>) -> Result<Completion, Error> {
        let open = self.0.jobs()?.list(job.caller());
        let open = open.iter().filter(|other| !other.state.has_ended() && other.id != job.id());
        Ok(Completion::matching(open.map(|other| other.id.to_string()), &request.value))
    }
}

/// Lists open jobs only, so that ended ones do not crowd out other resources.
struct JobLister(Arc<ToolContext>);

#[async_trait]
impl ResourceLister for JobLister {
    async fn list(&self, principal: &Principal) -> Result<Vec<Resource>, Error> {
        let template = base_template(&self.0);
        // The address of the caller is unknown here, so anonymous callers, which are distinguished by address, find no
        // jobs.
        let origin = CallOrigin { transport: TransportKind::CommandLine, peer: None };
        let jobs = self.0.jobs()?.list(&Caller::new(Arc::new(principal.clone()), origin));
        let open = jobs.iter().filter(|job| !job.state.has_ended()).take(JOBS_LISTED_MAX);
        Ok(open.map(|job| job_resource(&template, job)).collect())
    }
}

fn job_resource(template: &ResourceTemplate, job: &JobStatus) -> Resource {
    let (kind, target) = &job.target;
    resource_from_template(
        template,
        &[&job.id.to_string()],
        target.clone(),
        Some(format!("A call of the {kind} {target}.")),
    )
}

/// Reports changes of the state, and of the number of rows or bytes.
struct JobWatcher(Arc<ToolContext>);

#[async_trait]
impl ResourceWatcher for JobWatcher {
    async fn version_tag(&self, variables: &TemplateVariables, caller: &Caller) -> Result<Option<String>, Error> {
        let Some(id) = variables.get("id") else { return Ok(None) };
        let version_tag =
            |job: JobStatus| format!("{} {} {} {}", job.state.name(), job.rows, job.bytes, job.result.is_some());
        Ok(self.0.jobs()?.get(id, caller).map(version_tag))
    }
}
